//! Who meets whom: agents and parts in an order that is balanced over participants and follows from the study's seed.

use pace_games::Seed;

use super::config::{Assignment, StudyConfig};
use crate::session::SEED_LIMIT;

/// One encounter of one participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// The index of the agent.
    pub agent: usize,
    /// The test tuple whose part the participant plays.
    pub tuple: usize,
    /// All chance of the encounter.
    pub seed: u64,
}

/// The encounter `number` of the participant that was the `arm`-th to begin.
pub(super) fn plan(config: &StudyConfig, arm: u64, number: usize, n_tuples: usize) -> Plan {
    let seed = Seed::new(config.seed);
    let n_agents = config.agents.len();
    // Participants come in blocks of as many as there are agents. Within a block every agent is first once; where a
    // participant meets several, they follow each other in turn, so that each is met equally often at every place.
    let (block, place) = (arm / n_agents as u64, (arm % n_agents as u64) as usize);
    let mut order: Vec<usize> = (0..n_agents).collect();
    seed.child("agents", &[block]).stream("order").shuffle(&mut order);
    let turn = match config.assignment {
        Assignment::Between => 0,
        Assignment::Within => number,
    };
    // Parts likewise: each participant goes through a shuffled list of them.
    let round = number / n_tuples;
    let mut tuples: Vec<usize> = (0..n_tuples).collect();
    seed.child("parts", &[arm, round as u64]).stream("order").shuffle(&mut tuples);
    let mut chance = seed.child("encounter", &[arm, number as u64]).stream("seed");
    Plan {
        agent: order[(place + turn) % n_agents],
        tuple: tuples[number % n_tuples],
        seed: (chance.unit() * SEED_LIMIT as f64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::plan;
    use crate::study::config::{Assignment, StudyConfig};

    fn config(assignment: &str, n_agents: usize) -> StudyConfig {
        let agents: Vec<String> = (0..n_agents).map(|agent| format!("\"a{agent}\"")).collect();
        let text = format!(
            "id = \"s\"\ntitle = \"t\"\nconsent = \"c\"\nagents = [{}]\nassignment = \"{assignment}\"\nencounters = 6\n\
             seed = 4\ncompletion_code = \"x\"",
            agents.join(", ")
        );
        StudyConfig::from_toml("study.toml", &text).expect("a study")
    }

    #[test]
    fn agents_are_balanced_over_participants_and_places() {
        for n_agents in 1..5 {
            for assignment in ["between", "within"] {
                let config = config(assignment, n_agents);
                for number in 0..6 {
                    let mut counts = vec![0; n_agents];
                    for arm in 0..(n_agents as u64 * 5) {
                        counts[plan(&config, arm, number, 9).agent] += 1;
                    }
                    assert_eq!(counts, vec![5; n_agents], "{assignment} {number}");
                }
            }
        }
    }

    #[test]
    fn between_keeps_an_agent_and_within_changes_it() {
        let agents = |assignment: &str, arm: u64| -> Vec<usize> {
            (0..6).map(|number| plan(&config(assignment, 3), arm, number, 9).agent).collect()
        };
        assert!(agents("between", 4).windows(2).all(|pair| pair[0] == pair[1]));
        assert!(agents("within", 4).windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(config("within", 2).assignment, Assignment::Within);
    }

    #[test]
    fn no_part_comes_twice_before_all_have_come() {
        let config = config("within", 2);
        let mut tuples: Vec<usize> = (0..9).map(|number| plan(&config, 3, number, 9).tuple).collect();
        tuples.sort_unstable();
        assert_eq!(tuples, (0..9).collect::<Vec<_>>());
        assert_eq!(plan(&config, 3, 1, 9), plan(&config, 3, 1, 9));
        assert_ne!(plan(&config, 3, 1, 9).seed, plan(&config, 4, 1, 9).seed);
    }
}
