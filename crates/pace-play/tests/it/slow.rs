//! Slow decisions of an agent and slow oracle scores do not delay other sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pace_games::{
    Action, AgentSession, AnyArena, AnyEncounter, AnyGame, BehaviourSummary, ConfigError, ContractViolation,
    DecisionPoint, Ego, EncounterMove, GAMES, GameSpec, JointAction, KindBelief, PeerStepBuffers,
    PoolListing, Preset, ScriptedEncounter, Seat, SeatSet, Seed, Split, Viewpoint,
};
use pace_play::{AgentCatalog, ServerConfig};
use serde_json::{Map, Value, json};

use crate::host::Host;

/// Duration of a slow decision or oracle score.
const SLOW: Duration = Duration::from_millis(1000);
/// Maximum latency for other clients meanwhile.
const MAX_LATENCY: Duration = Duration::from_millis(700);

/// A game whose next decision, or next oracle score, is slow on request.
struct SlowGame {
    game: Arc<dyn AnyGame>,
    is_slow: Arc<AtomicBool>,
    /// Whether the game has no closed form of the oracle's score, so that the oracle has to play.
    needs_oracle: bool,
}

impl SlowGame {
    fn open(game: &str, needs_oracle: bool) -> (Arc<dyn AnyGame>, Arc<AtomicBool>) {
        let is_slow = Arc::new(AtomicBool::new(false));
        let game = SlowGame { game: open(game), is_slow: Arc::clone(&is_slow), needs_oracle };
        (Arc::new(game), is_slow)
    }
}

fn open(id: &str) -> Arc<dyn AnyGame> {
    let entry = GAMES.iter().find(|entry| entry.id == id).expect("a game");
    Arc::from(entry.open(Preset::Paper, &Map::new()).expect("its preset"))
}

fn wait_if(is_slow: &AtomicBool) {
    if is_slow.swap(false, Ordering::Relaxed) {
        std::thread::sleep(SLOW);
    }
}

struct SlowEgo {
    ego: Box<dyn Ego>,
    is_slow: Arc<AtomicBool>,
}

impl Ego for SlowEgo {
    fn begin_encounter(&mut self) {
        self.ego.begin_encounter();
    }

    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]) {
        wait_if(&self.is_slow);
        self.ego.action_probabilities(observation, probabilities);
    }

    fn record_action(&mut self, observation: &[f32], action: Action) {
        self.ego.record_action(observation, action);
    }

    fn end_episode(&mut self, terminal_observation: &[f32]) {
        self.ego.end_episode(terminal_observation);
    }

    fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        self.ego.beliefs()
    }
}

/// An encounter without a closed form of the oracle's score.
struct WithoutClosedForm(Box<dyn AnyEncounter>);

impl AnyEncounter for WithoutClosedForm {
    fn spec(&self) -> &GameSpec {
        self.0.spec()
    }

    fn seats_to_ask(&self) -> SeatSet {
        self.0.seats_to_ask()
    }

    fn play(&mut self, chosen: &JointAction, peers: &mut PeerStepBuffers<'_>) -> EncounterMove {
        self.0.play(chosen, peers)
    }

    fn next_episode(&mut self) {
        self.0.next_episode();
    }

    fn episode(&self) -> usize {
        self.0.episode()
    }

    fn observe(&self, seat: Seat, observation: &mut [f32]) {
        self.0.observe(seat, observation);
    }

    fn observe_everything(&self, seat: Seat, observation: &mut [f32]) {
        self.0.observe_everything(seat, observation);
    }

    fn expected_return(&self, answers: &[f32]) -> f64 {
        self.0.expected_return(answers)
    }

    fn forbidden_reason(&self, seat: Seat, action: Action) -> Option<String> {
        self.0.forbidden_reason(seat, action)
    }

    fn render(&self) -> String {
        self.0.render()
    }

    fn view(&self, from: Viewpoint) -> Value {
        self.0.view(from)
    }

    fn behaviour_summary(&self, seat: Seat) -> BehaviourSummary {
        BehaviourSummary { best_response_return: None, ..self.0.behaviour_summary(seat) }
    }
}

impl AnyGame for SlowGame {
    fn spec(&self) -> &GameSpec {
        self.game.spec()
    }

    fn legend(&self) -> &'static [&'static str] {
        self.game.legend()
    }

    fn config(&self) -> Value {
        self.game.config()
    }

    fn pool(&self, split: Split) -> PoolListing {
        self.game.pool(split)
    }

    fn n_tuples(&self, split: Split) -> usize {
        self.game.n_tuples(split)
    }

    fn reference_names(&self) -> Vec<&'static str> {
        self.game.reference_names()
    }

    fn memoryless_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        self.game.memoryless_reference(name)
    }

    fn uninformed_names(&self) -> Vec<&'static str> {
        self.game.uninformed_names()
    }

    fn uninformed_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        let ego = self.game.uninformed_reference(name)?;
        if self.needs_oracle {
            return Ok(ego);
        }
        Ok(Box::new(SlowEgo { ego, is_slow: Arc::clone(&self.is_slow) }))
    }

    fn reference_session(&self, encounter: &ScriptedEncounter<'_>) -> Result<AgentSession, ConfigError> {
        if self.needs_oracle {
            wait_if(&self.is_slow);
        }
        self.game.reference_session(encounter)
    }

    fn encounter(
        &self,
        split: Split,
        tuple: usize,
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> Result<Box<dyn AnyEncounter>, ConfigError> {
        let encounter = self.game.encounter(split, tuple, people, n_episodes, seed)?;
        Ok(if self.needs_oracle { Box::new(WithoutClosedForm(encounter)) } else { encounter })
    }

    fn constants(&self) -> Value {
        self.game.constants()
    }

    fn arena(&self, split: Split, n_lanes: usize) -> Box<dyn AnyArena> {
        self.game.arena(split, n_lanes)
    }

    fn decision_points(&self) -> Vec<DecisionPoint> {
        self.game.decision_points()
    }

    fn expected_return(&self, split: Split, tuple: usize, answers: &[f32]) -> Result<f64, ConfigError> {
        self.game.expected_return(split, tuple, answers)
    }

    fn check_contract(&self, seed: Seed) -> Result<Vec<&'static str>, ContractViolation> {
        self.game.check_contract(seed)
    }
}

/// A server with a slow Kuhn Poker and an unmodified Overcooked.
async fn host(needs_oracle: bool) -> (Host, Arc<AtomicBool>) {
    let (game, is_slow) = SlowGame::open("kuhn-poker", needs_oracle);
    let mut catalog = AgentCatalog::default();
    for game in [game, open("overcooked")] {
        catalog.add_scripted(&game).expect("scripted egos");
    }
    (Host::start_catalog(catalog, ServerConfig::default(), None).await, is_slow)
}

#[tokio::test]
async fn slow_decisions_delay_no_other_session_and_no_spectator() {
    let (host, is_slow) = host(false).await;
    let (slow, watch) = host.begin("kuhn-poker.random", 5).await;
    let (fast, _) = host.begin("overcooked.static", 1).await;
    let (mut slow, _) = host.join_session(&slow).await;
    let (mut fast, _) = host.join_session(&fast).await;
    is_slow.store(true, Ordering::Relaxed);
    let start = Instant::now();
    slow.send(json!({ "type": "act", "seq": 0, "action": 1 })).await;
    for seq in 0..3 {
        assert_eq!(fast.act(seq, 4).await["type"], "frames");
    }
    // A new session begins with a decision, too.
    host.begin("overcooked.static", 1).await;
    // A spectator gets the state before the action that the agent has not answered yet.
    let mut spectator = host.connect().await;
    spectator.send(json!({ "type": "watch", "token": watch })).await;
    assert_eq!(spectator.receive().await.expect("a welcome")["seq"], 0);
    let waited = start.elapsed();
    assert_eq!(slow.receive().await.expect("an answer")["type"], "frames");
    assert!(start.elapsed() >= SLOW, "the decision was slow: {:?}", start.elapsed());
    assert!(waited < MAX_LATENCY, "{waited:?}");
    host.stop().await;
}

#[tokio::test]
async fn slow_oracle_scores_delay_no_other_session_and_no_spectator() {
    let (host, is_slow) = host(true).await;
    let (slow, watch) = host.begin("kuhn-poker.random", 1).await;
    let (fast, _) = host.begin("overcooked.static", 1).await;
    let (mut slow, _) = host.join_session(&slow).await;
    let (mut fast, _) = host.join_session(&fast).await;
    is_slow.store(true, Ordering::Relaxed);
    let start = Instant::now();
    // Folding ends a hand at once, and betting ends it after one decision of the agent.
    let mut seq = 0;
    loop {
        let answer = slow.act(seq, seq % 2).await;
        seq = answer["seq"].as_u64().expect("a number") as usize;
        let last = answer["frames"].as_array().and_then(|frames| frames.last()).cloned().expect("a frame");
        if last["is_asked"] == false {
            break;
        }
    }
    for seq in 0..3 {
        assert_eq!(fast.act(seq, 4).await["type"], "frames");
    }
    let mut spectator = host.connect().await;
    spectator.send(json!({ "type": "watch", "token": watch })).await;
    assert_eq!(spectator.receive().await.expect("a welcome")["is_over"], true);
    let waited = start.elapsed();
    let over = slow.receive().await.expect("the end");
    assert!(over["type"] == "over" && over["summary"]["oracle"].is_number(), "{over}");
    assert!(start.elapsed() >= SLOW, "the score was slow: {:?}", start.elapsed());
    assert!(waited < MAX_LATENCY, "{waited:?}");
    host.stop().await;
}
