//! Assignment of agents and roles to participants: balanced over participants, and determined by the study's seed.

use pace_games::Seed;

use super::config::{Assignment, StudyConfig};
use crate::session::SEED_LIMIT;

/// The settings of one encounter of one participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EncounterAssignment {
    /// Index of the agent.
    pub agent: usize,
    /// Index of the test tuple whose peer the participant replaces.
    pub tuple: usize,
    /// Random seed of the encounter.
    pub seed: u64,
}

/// Settings of the encounter `number` of a participant. `arm` counts participants in the order in which they began to play.
pub(super) fn assign(config: &StudyConfig, arm: u64, number: usize, n_tuples: usize) -> EncounterAssignment {
    let seed = Seed::new(config.seed);
    let n_agents = config.agents.len();
    // A block has one participant per agent. Within a block every agent is the first of one participant. With `within` the
    // agents rotate from encounter to encounter, so that each has every position equally often.
    let (block, position) = (arm / n_agents as u64, (arm % n_agents as u64) as usize);
    let mut order: Vec<usize> = (0..n_agents).collect();
    seed.child("agents", &[block]).stream("order").shuffle(&mut order);
    let offset = match config.assignment {
        Assignment::Between => 0,
        Assignment::Within => number,
    };
    // Each participant goes through a shuffled list of the test tuples.
    let round = number / n_tuples;
    let mut tuples: Vec<usize> = (0..n_tuples).collect();
    seed.child("parts", &[arm, round as u64]).stream("order").shuffle(&mut tuples);
    let mut stream = seed.child("encounter", &[arm, number as u64]).stream("seed");
    EncounterAssignment {
        agent: order[(position + offset) % n_agents],
        tuple: tuples[number % n_tuples],
        seed: (stream.unit() * SEED_LIMIT as f64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::assign;
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
    fn agents_are_balanced_over_participants_and_positions() {
        for n_agents in 1..5 {
            for assignment in ["between", "within"] {
                let config = config(assignment, n_agents);
                for number in 0..6 {
                    let mut counts = vec![0; n_agents];
                    for arm in 0..(n_agents as u64 * 5) {
                        counts[assign(&config, arm, number, 9).agent] += 1;
                    }
                    assert_eq!(counts, vec![5; n_agents], "{assignment} {number}");
                }
            }
        }
    }

    #[test]
    fn between_keeps_the_agent_and_within_changes_it() {
        let agents = |assignment: &str, arm: u64| -> Vec<usize> {
            (0..6).map(|number| assign(&config(assignment, 3), arm, number, 9).agent).collect()
        };
        assert!(agents("between", 4).windows(2).all(|pair| pair[0] == pair[1]));
        assert!(agents("within", 4).windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(config("within", 2).assignment, Assignment::Within);
    }

    #[test]
    fn tuples_repeat_only_after_all_were_played() {
        let config = config("within", 2);
        let mut tuples: Vec<usize> = (0..9).map(|number| assign(&config, 3, number, 9).tuple).collect();
        tuples.sort_unstable();
        assert_eq!(tuples, (0..9).collect::<Vec<_>>());
        assert_eq!(assign(&config, 3, 1, 9), assign(&config, 3, 1, 9));
        assert_ne!(assign(&config, 3, 1, 9).seed, assign(&config, 4, 1, 9).seed);
    }
}
