//! Sessions of trained agents.
//!
//! The session itself is `pace_games::AgentSession`, which scripted egos use, too. Many encounters of one agent at once are in
//! `policy_runner`; the tests there check that both choose the same actions.

use pace_games::{AgentSession, AnyGame, ConfigError, Seat, Seed, Split};

use crate::agent::Agent;

impl Agent {
    /// Starts a session of this agent with a tuple of peers, in which people play in the seats `people`. It plays like a lane of
    /// `adapt` with the same seed. Returns an error if the agent's output is not a distribution over actions.
    pub fn session(
        &self,
        game: &dyn AnyGame,
        split: Split,
        tuple: usize,
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> Result<AgentSession, ConfigError> {
        let encounter = game.encounter(split, tuple, people, n_episodes, seed)?;
        AgentSession::begin(encounter, Box::new(self.encounter_seeded(seed)), seed)
    }
}

#[cfg(test)]
mod tests {
    use pace_games::{AnyGame, GAMES, GameEntry, Preset, Seed, Split, find_game};
    use serde_json::{Map, Value};

    use crate::adapt::{AdaptConfig, adapt};
    use crate::agent::Agent;
    use crate::config::TrainConfig;
    use crate::methods::{METHODS, Method};
    use crate::preset::paper_keys;
    use crate::train::Trainer;

    const N_EPISODES: usize = 3;

    fn open(entry: &GameEntry, keys: &[(&str, usize)]) -> Box<dyn AnyGame> {
        let keys = keys.iter().copied().chain([("episodes_per_encounter", N_EPISODES)]);
        let keys = keys.map(|(key, value)| (key.to_owned(), Value::from(value)));
        entry.open(Preset::Paper, &Map::from_iter(keys)).expect("good keys")
    }

    /// An agent with first weights.
    fn agent(entry: &GameEntry, method: &Method, keys: &[(&str, usize)]) -> Agent {
        let preset = paper_keys(entry.id, method.id);
        let mut config = TrainConfig { encoder_width: 16, hidden_width: 16, ..preset };
        if let Some(keys) = &mut config.gscu {
            (keys.belief_steps, keys.conservative) = (5, "random".to_owned());
        }
        Trainer::new(method, open(entry, keys), config, 7, 1).expect("good keys").agent()
    }

    /// Compares the episodes of every encounter of `adapt` with those of a session.
    fn check(label: &str, agent: &Agent, game: &dyn AnyGame) {
        let config = AdaptConfig::new(Split::Test, 1, N_EPISODES, 5);
        for outcome in adapt(agent, game, &config, 2).expect("finite weights") {
            let seed = Seed::new(5).child("encounter", &[outcome.tuple as u64, 0]);
            let session = agent.session(game, Split::Test, outcome.tuple, &[], N_EPISODES, seed);
            let alone = session.expect("finite weights").play_out().expect("finite weights");
            assert_eq!(alone.len(), outcome.episodes.len());
            for (alone, adapted) in alone.iter().zip(&outcome.episodes) {
                let facts = (alone.n_steps, alone.ending, alone.keypoint_visited);
                assert_eq!(facts, (adapted.n_steps, adapted.ending, adapted.keypoint_visited), "{label}");
                // Lanes keep rewards in single precision.
                assert!((alone.task_return - adapted.task_return).abs() < 1e-4, "{label}");
            }
        }
    }

    #[test]
    fn sessions_play_the_encounters_of_adaptation() {
        for (entry, method) in
            GAMES.iter().flat_map(|entry| METHODS.iter().map(move |method| (entry, method)))
        {
            let label = format!("{} in {}", method.id, entry.id);
            check(&label, &agent(entry, method, &[]), &*open(entry, &[]));
        }
    }

    #[test]
    fn sessions_with_fewer_peers_than_in_training_play_like_lanes() {
        let entry = find_game("predator-prey").expect("a game");
        for method in METHODS {
            let of_five = agent(entry, method, &[("n_peers", 5)]);
            let among_three = open(entry, &[("n_peers", 3), ("observation_slots", 5)]);
            check(method.id, &of_five, &*among_three);
        }
    }
}
