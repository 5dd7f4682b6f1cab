//! A game in which an ego and two peers act in turn. Sessions and arenas report the same observations and actions of the peers.

use std::sync::{Arc, Mutex};

use pace_games::{
    Action, AgentSession, Arena, ConfigError, DisplayNames, Ego, Ending, Game, GameEntry, GameSpec,
    JointAction, Metric, MoveOutcome, NO_ACTION, NO_ACTIONS, Peer, PeerObservationMode, PeerPool, PeerSpec,
    PeerTuple, Preset, PresetConfig, Progress, RandomEgo, Reference, Seat, SeatSet, Seed, Split, StepBuffers,
    StepFeedback, Stream, check_contract, one_hot,
};
use serde::{Deserialize, Serialize};

/// The seats in the order of their turns. The first peer acts before the ego, and twice between two decisions of the ego.
const ORDER: [usize; 7] = [1, 0, 1, 2, 1, 0, 2];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

impl PresetConfig for NoKeys {
    fn preset(_preset: Preset) -> NoKeys {
        NoKeys {}
    }
}

/// The behaviour of a peer that always takes one action.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Always(Action);

impl PeerSpec for Always {
    fn describe(&self) -> String {
        format!("always {}", self.0)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Player(Always);

impl Peer<Turns> for Player {
    type Spec = Always;

    fn new(_game: &Turns, spec: &Always) -> Player {
        Player(spec.clone())
    }

    fn spec(&self) -> &Always {
        &self.0
    }

    fn begin_episode(&mut self, _game: &Turns) {}

    fn act(&mut self, _game: &Turns, _turn: &usize, _seat: Seat, _rng: &mut Stream) -> Action {
        self.0.0
    }
}

/// A game whose state is the number of turns so far. An observation is the seat and the number of the turn.
#[derive(Clone, Debug)]
struct Turns {
    keys: NoKeys,
    spec: GameSpec,
}

impl Game for Turns {
    const ID: &'static str = "turns";
    const README: &'static str = "Seats act in turn.";

    type Config = NoKeys;
    type State = usize;
    type Peer = Player;

    fn new(keys: NoKeys) -> Result<Turns, ConfigError> {
        let spec = GameSpec {
            id: Self::ID,
            title: "Turns",
            revision: 1,
            observation_size: 2,
            action_names: &["one", "two", "three"],
            peer_roles: vec!["first", "second"],
            episodes_per_encounter: 2,
            horizon_steps: 2,
            metric: Metric::Return,
            keypoint: "never",
            nouns: DisplayNames { episode: "round", episodes: "rounds", score: "reward", keypoint: "never" },
        };
        Ok(Turns { keys, spec })
    }

    fn config(&self) -> &NoKeys {
        &self.keys
    }

    fn spec(&self) -> &GameSpec {
        &self.spec
    }

    fn initial_state(&self, _rng: &mut Stream) -> usize {
        0
    }

    fn acting_seats(&self, turn: &usize) -> SeatSet {
        ORDER.get(*turn).map_or(SeatSet::NONE, |seat| SeatSet::only(Seat(*seat)))
    }

    fn apply(&self, turn: &mut usize, _actions: &JointAction) -> MoveOutcome {
        *turn += 1;
        let ending = (*turn == ORDER.len()).then_some(Ending::Finished);
        MoveOutcome { task_reward: 0.5, ending, keypoint_visited: false }
    }

    fn observe(&self, turn: &usize, seat: Seat, observation: &mut [f32]) {
        observation.copy_from_slice(&[seat.0 as f32, *turn as f32]);
    }

    fn check_state(&self, _turn: &usize) -> Result<(), ConfigError> {
        Ok(())
    }

    fn render(&self, turn: &usize) -> String {
        format!("turn {turn}")
    }

    fn pool(&self) -> PeerPool<Always> {
        let tuple = |first: Action, second: Action| PeerTuple {
            specs: vec![Always(first), Always(second)],
            classes: vec![0, 0],
        };
        PeerPool::new(vec![tuple(0, 1)], Vec::new(), vec![tuple(1, 2)]).expect("no tuple is in both")
    }

    fn sample_tuple(&self, _rng: &mut Stream) -> PeerTuple<Always> {
        self.pool().train()[0].clone()
    }

    fn references(&self) -> Vec<(&'static str, Reference<Turns>)> {
        vec![("random", RandomEgo::reference())]
    }
}

/// The fields of a [`StepFeedback`].
type Feedback = (Vec<Action>, Vec<f32>, f32);

/// An ego that always takes the first action and records its feedback.
struct FeedbackRecorder(Arc<Mutex<Vec<Feedback>>>);

impl Ego for FeedbackRecorder {
    fn begin_encounter(&mut self) {}

    fn action_probabilities(&mut self, _observation: &[f32], probabilities: &mut [f32]) {
        one_hot(0, probabilities);
    }

    fn record_action(&mut self, _observation: &[f32], _action: Action) {}

    fn observe_feedback(&mut self, feedback: &StepFeedback<'_>) {
        let StepFeedback { peer_actions, peer_observations, task_reward } = *feedback;
        let feedback = (peer_actions.to_vec(), peer_observations.to_vec(), task_reward);
        self.0.lock().expect("no test panics with it").push(feedback);
    }

    fn end_episode(&mut self, _terminal_observation: &[f32]) {}

    fn peer_observation_mode(&self) -> PeerObservationMode {
        PeerObservationMode::Recorded
    }
}

/// The feedback in a session in which `people` take the actions of the scripted peers.
fn feedback_in_session(people: &[Seat]) -> Vec<Feedback> {
    let game = GameEntry::of::<Turns>().open(Preset::Paper, &serde_json::Map::new()).expect("it has no keys");
    let encounter = game.encounter(Split::Test, 0, people, 2, Seed::new(1)).expect("a tuple");
    let feedback = Arc::default();
    let ego = Box::new(FeedbackRecorder(Arc::clone(&feedback)));
    let mut session = AgentSession::begin(encounter, ego, Seed::new(1)).expect("a distribution");
    let mut chosen = NO_ACTIONS;
    (chosen[1], chosen[2]) = (1, 2);
    while session.advance(&chosen).expect("distributions") == Progress::Moved {}
    assert!(session.outcomes().iter().all(|outcome| outcome.n_steps == 2), "the ego's decisions");
    std::mem::take(&mut *feedback.lock().expect("no test panics with it"))
}

#[test]
fn feedback_has_the_last_observation_and_action_of_every_acting_peer() {
    let expected: [Feedback; 2] = [
        // The first peer acted last on turn 4, the second on turn 3.
        (vec![1, 2], vec![1.0, 4.0, 2.0, 3.0], 2.0),
        // The second peer acted on turn 6, the first not at all.
        (vec![NO_ACTION, 2], vec![0.0, 0.0, 2.0, 6.0], 1.0),
    ];
    for people in [vec![], vec![Seat(1)], vec![Seat(2)], vec![Seat(1), Seat(2)]] {
        assert_eq!(feedback_in_session(&people), [expected.clone(), expected.clone()].concat(), "{people:?}");
    }
    let game = Turns::new(NoKeys {}).expect("it has no keys");
    let mut steps = StepBuffers::new(game.spec(), 1, PeerObservationMode::Recorded);
    let mut arena = Arena::<Turns>::new(game.clone(), 1);
    arena.begin(0, &game.pool().test()[0].specs, 2, Seed::new(1), steps.observation_mut(0));
    for (actions, observations, task_reward) in expected.iter().cycle().take(4) {
        arena.step(&[0], &mut steps.batch());
        let block = &steps;
        assert_eq!((&block.peer_actions, &block.peer_observations), (actions, observations));
        assert_eq!(block.task_rewards[0], *task_reward);
    }
    assert!(arena.idle()[0]);
}

#[test]
fn a_game_may_have_no_validation_peers() {
    let game = GameEntry::of::<Turns>().open(Preset::Paper, &serde_json::Map::new()).expect("it has no keys");
    assert_eq!(game.n_tuples(Split::Validation), 0);
    let error = game.encounter(Split::Validation, 0, &[], 1, Seed::new(1)).err().expect("no such peers");
    assert_eq!(
        error.to_string(),
        "the game has no validation peers; use another pool, or add such peers in its `Game::pool`"
    );
}

#[test]
fn turn_based_game_keeps_the_contract() {
    check_contract(&Turns::new(NoKeys {}).expect("it has no keys"), Seed::new(1)).expect("the contract");
}
