//! cargo run --release -p pace-games --example new_game
//!
//! A complete game outside the crate: matching pennies against a peer with a fixed probability of heads.
//!
//! Both players choose a side at the same time; the ego wins a chip if the sides match and loses one if not.
//! An ego that counts the sides can win. An encounter has ten rounds.

use pace_games::{
    Action, ConfigError, DisplayNames, Ego, Ending, Game, GameSpec, JointAction, Metric, MoveOutcome, Peer,
    PeerPool, PeerSpec, PeerTuple, Preset, PresetConfig, RandomEgo, Reference, Seat, SeatSet, Seed, Stream,
    check_contract, one_hot, play_encounter,
};
use serde::{Deserialize, Serialize};

// The keys of the game, with a value for each preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PenniesConfig {
    episodes_per_encounter: usize,
}

impl PresetConfig for PenniesConfig {
    fn preset(_preset: Preset) -> PenniesConfig {
        PenniesConfig { episodes_per_encounter: 10 }
    }
}

// The state of an episode: the sides shown, if any. Plain data, so that it can be written, read and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    shown: Option<(Action, Action)>,
}

// The behaviour of a peer as data, and the peer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Habit {
    heads: f64,
}

impl PeerSpec for Habit {
    fn describe(&self) -> String {
        format!("shows heads with probability {}", self.heads)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shower(Habit);

const HEADS: Action = 0;
const TAILS: Action = 1;

impl Peer<Pennies> for Shower {
    type Spec = Habit;

    fn new(_game: &Pennies, spec: &Habit) -> Shower {
        Shower(spec.clone())
    }

    fn spec(&self) -> &Habit {
        &self.0
    }

    fn begin_episode(&mut self, _game: &Pennies) {}

    fn act(&mut self, _game: &Pennies, _round: &Round, _seat: Seat, rng: &mut Stream) -> Action {
        if rng.chance(self.0.heads) { HEADS } else { TAILS }
    }
}

// The game itself.
#[derive(Clone, Debug)]
pub struct Pennies {
    config: PenniesConfig,
    spec: GameSpec,
}

impl Game for Pennies {
    const ID: &'static str = "pennies";
    const README: &'static str =
        "Matching pennies against a peer with a habit. Observation: own side, the peer's side.";

    type Config = PenniesConfig;
    type State = Round;
    type Peer = Shower;

    fn new(config: PenniesConfig) -> Result<Pennies, ConfigError> {
        if config.episodes_per_encounter == 0 {
            return Err(ConfigError::bad_value("episodes_per_encounter", &0, "at least 1"));
        }
        let spec = GameSpec {
            id: Self::ID,
            title: "Matching pennies",
            revision: 1,
            observation_size: 4,
            action_names: &["heads", "tails"],
            peer_roles: vec!["opponent"],
            episodes_per_encounter: config.episodes_per_encounter,
            horizon_steps: 1,
            metric: Metric::Return,
            keypoint: "never",
            nouns: DisplayNames {
                episode: "round",
                episodes: "rounds",
                score: "chips per round",
                keypoint: "never",
            },
        };
        Ok(Pennies { config, spec })
    }

    fn config(&self) -> &PenniesConfig {
        &self.config
    }

    fn spec(&self) -> &GameSpec {
        &self.spec
    }

    fn initial_state(&self, _rng: &mut Stream) -> Round {
        Round { shown: None }
    }

    fn acting_seats(&self, round: &Round) -> SeatSet {
        if round.shown.is_none() { SeatSet::first(2) } else { SeatSet::NONE }
    }

    fn apply(&self, round: &mut Round, actions: &JointAction) -> MoveOutcome {
        round.shown = Some((actions[0], actions[1]));
        let task_reward = if actions[0] == actions[1] { 1.0 } else { -1.0 };
        MoveOutcome { task_reward, ending: Some(Ending::Finished), keypoint_visited: false }
    }

    fn observe(&self, round: &Round, seat: Seat, observation: &mut [f32]) {
        observation.fill(0.0);
        if let Some((ego, peer)) = round.shown {
            let (own, other) = if seat == Seat::EGO { (ego, peer) } else { (peer, ego) };
            observation[usize::from(own)] = 1.0;
            observation[2 + usize::from(other)] = 1.0;
        }
    }

    fn check_state(&self, round: &Round) -> Result<(), ConfigError> {
        match round.shown {
            Some((ego, peer)) if ego > TAILS || peer > TAILS => {
                let reason = format!("sides are 0 and 1, found {ego} and {peer}");
                Err(ConfigError::ImpossibleState { game: Self::ID, reason })
            }
            _ => Ok(()),
        }
    }

    fn render(&self, round: &Round) -> String {
        match round.shown {
            None => "both hands are closed".to_owned(),
            Some((ego, peer)) => {
                let name = |side: Action| self.spec.action_names[usize::from(side)];
                format!("ego {}, peer {}", name(ego), name(peer))
            }
        }
    }

    fn pool(&self) -> PeerPool<Habit> {
        let train = [0.1, 0.3, 0.6, 0.9].map(|heads| Habit { heads });
        // To choose settings with; the list may be empty.
        let validation = [0.4, 0.7].map(|heads| Habit { heads });
        let test = [0.2, 0.8].map(|heads| Habit { heads });
        PeerPool::of_single_peers(&train, &validation, &test).expect("no habit is in two of these")
    }

    fn sample_tuple(&self, rng: &mut Stream) -> PeerTuple<Habit> {
        PeerTuple { specs: vec![Habit { heads: rng.unit() }], classes: vec![0] }
    }

    fn references(&self) -> Vec<(&'static str, Reference<Pennies>)> {
        vec![
            ("bayes", Reference::Uninformed(|_| Box::new(Counter { heads: 0, tails: 0 }))),
            ("random", RandomEgo::reference()),
        ]
    }
}

// An ego that counts the sides that the peer has shown, and matches the more frequent one.
struct Counter {
    heads: usize,
    tails: usize,
}

impl Ego for Counter {
    fn begin_encounter(&mut self) {
        *self = Counter { heads: 0, tails: 0 };
    }

    fn action_probabilities(&mut self, _observation: &[f32], probabilities: &mut [f32]) {
        one_hot(if self.heads >= self.tails { HEADS } else { TAILS }, probabilities);
    }

    fn record_action(&mut self, _observation: &[f32], _action: Action) {}

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        if terminal_observation[2] == 1.0 {
            self.heads += 1;
        } else {
            self.tails += 1;
        }
    }
}

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let game = Pennies::new(PenniesConfig::preset(Preset::Paper))?;
    for check in check_contract(&game, Seed::new(1))? {
        println!("ok  {check}");
    }
    for (name, reference) in game.references() {
        let mut total = 0.0;
        for (index, tuple) in game.pool().test().iter().enumerate() {
            for encounter in 0..1000 {
                let seed = Seed::new(1).child("encounter", &[index as u64, encounter]);
                let outcomes = play_encounter(&game, &reference, &tuple.specs, 10, seed)?;
                total += outcomes.iter().map(|outcome| outcome.task_return).sum::<f64>();
            }
        }
        println!("{name:<7} wins {:+.3} chips per round", total / 20_000.0);
    }
    Ok(())
}
