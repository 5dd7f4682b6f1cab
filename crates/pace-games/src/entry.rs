//! Type-erased games and encounters. One line of `GAMES` makes a game available to every command.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::arena::{AnyArena, Arena, ArenaOfPool};
use crate::config::{ConfigError, Preset, configure};
use crate::contract::{ContractViolation, check_contract};
use crate::ego::{Ego, EpisodeOutcome, Reference, begin_reference};
use crate::encounter::{Encounter, EncounterMove, PeerStepBuffers};
use crate::game::{
    Action, BehaviourSummary, DecisionPoint, Game, GameSpec, JointAction, Page, Seat, SeatSet, Viewpoint,
};
use crate::peer::{Peer, PeerSpec, PeerTuple, SpecOf};
use crate::pool::{PeerPool, Split};
use crate::seed::Seed;
use crate::session::AgentSession;
use crate::symmetry::Symmetries;

/// One line of `GAMES`.
#[derive(Clone, Copy, Debug)]
pub struct GameEntry {
    /// The id on the command line and in records.
    pub id: &'static str,
    /// Rules, layout of the observation and rewards, for people.
    pub readme: &'static str,
    /// See [`Game::TRAINING`].
    pub training: &'static str,
    /// See [`Game::PAGE`].
    pub page: Option<Page>,
    open: Open,
}

type Open = fn(Preset, &Map<String, Value>) -> Result<Box<dyn AnyGame>, ConfigError>;

impl GameEntry {
    /// The entry of a game.
    pub const fn of<G: Game>() -> GameEntry {
        GameEntry {
            id: G::ID,
            readme: G::README,
            training: G::TRAINING,
            page: G::PAGE,
            open: |preset, overrides| Ok(Box::new(Opened::<G>::new(G::new(configure(preset, overrides)?)?))),
        }
    }

    /// The game under a preset, with some keys overridden.
    pub fn open(
        &self,
        preset: Preset,
        overrides: &Map<String, Value>,
    ) -> Result<Box<dyn AnyGame>, ConfigError> {
        (self.open)(preset, overrides)
    }
}

/// A type-erased game.
pub trait AnyGame: Send + Sync {
    /// The facts of the game.
    fn spec(&self) -> &GameSpec;
    /// See [`Game::LEGEND`].
    fn legend(&self) -> &'static [&'static str];
    /// All keys with their values.
    fn config(&self) -> Value;
    /// The peers of a split.
    fn pool(&self, split: Split) -> PoolListing;
    /// The number of tuples of a split.
    fn n_tuples(&self, split: Split) -> usize;
    /// The names of the reference agents.
    fn reference_names(&self) -> Vec<&'static str>;
    /// An uninformed and memoryless reference agent ([`Ego::is_memoryless`]); an error for any other name.
    fn memoryless_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError>;
    /// The names of the uninformed reference agents ([`Reference::Uninformed`]).
    fn uninformed_names(&self) -> Vec<&'static str>;
    /// An uninformed reference agent; an error for any other name.
    fn uninformed_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError>;
    /// Starts an encounter of a reference agent.
    fn reference_session(&self, encounter: &ScriptedEncounter<'_>) -> Result<AgentSession, ConfigError>;
    /// Plays one encounter of a reference agent to its end.
    fn play(&self, encounter: &ScriptedEncounter<'_>) -> Result<Vec<EpisodeOutcome>, ConfigError> {
        self.reference_session(encounter)?.play_out()
    }
    /// An encounter in which the caller acts for the ego, and for the peers in the seats `people`.
    fn encounter(
        &self,
        split: Split,
        tuple: usize,
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> Result<Box<dyn AnyEncounter>, ConfigError>;
    /// See [`Game::constants`].
    fn constants(&self) -> Value;
    /// An arena for encounters with the tuples of `split`.
    fn arena(&self, split: Split, n_lanes: usize) -> Box<dyn AnyArena>;
    /// See [`Game::decision_points`].
    fn decision_points(&self) -> Vec<DecisionPoint>;
    /// See [`Game::expected_return`].
    fn expected_return(&self, split: Split, tuple: usize, answers: &[f32]) -> Result<f64, ConfigError>;
    /// See [`crate::check_contract`].
    fn check_contract(&self, seed: Seed) -> Result<Vec<&'static str>, ContractViolation>;
}

/// A type-erased encounter. With the same seed it plays like a lane of an arena, and its state can be shown.
pub trait AnyEncounter: Send {
    /// The facts of the game.
    fn spec(&self) -> &GameSpec;
    /// See [`Encounter::seats_to_ask`].
    fn seats_to_ask(&self) -> SeatSet;
    /// See [`Encounter::play`].
    fn play(&mut self, chosen: &JointAction, peers: &mut PeerStepBuffers<'_>) -> EncounterMove;
    /// See [`Encounter::next_episode`].
    fn next_episode(&mut self);
    /// The current episode, from 0.
    fn episode(&self) -> usize;
    /// See [`Game::observe`].
    fn observe(&self, seat: Seat, observation: &mut [f32]);
    /// See [`Game::observe_everything`].
    fn observe_everything(&self, seat: Seat, observation: &mut [f32]);
    /// See [`Game::expected_return`].
    fn expected_return(&self, answers: &[f32]) -> f64;
    /// See [`Peer::forbidden_reason`].
    fn forbidden_reason(&self, seat: Seat, action: Action) -> Option<String>;
    /// See [`Game::render`].
    fn render(&self) -> String;
    /// See [`Game::view`].
    fn view(&self, from: Viewpoint) -> Value;
    /// A summary of the moves in `seat` so far; see [`Game::behaviour_summary`].
    fn behaviour_summary(&self, seat: Seat) -> BehaviourSummary;
}

/// An encounter of a reference agent with one tuple of peers.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedEncounter<'a> {
    /// The name of the reference agent.
    pub reference: &'a str,
    /// The part of the pool.
    pub split: Split,
    /// The index of the tuple in the split.
    pub tuple: usize,
    /// The number of episodes.
    pub n_episodes: usize,
    /// The seed of the encounter.
    pub seed: Seed,
}

/// The peers of one split, for people and records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PoolListing {
    /// The split's name.
    pub name: String,
    /// The hash of the training and test peers; see [`PeerPool::content_hash`].
    pub content_hash: String,
    /// The number of classes of each slot; see [`PeerPool::n_classes`].
    pub n_classes: Vec<usize>,
    /// The behaviour vector of each class, by slot and class; see [`PeerSpec::behaviour_vector`].
    pub traits: Vec<Vec<Vec<f32>>>,
    /// The tuples in order.
    pub tuples: Vec<TupleListing>,
    /// See [`Game::symmetries`].
    #[serde(skip)]
    pub symmetries: Option<Symmetries>,
}

/// One tuple of peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TupleListing {
    /// The tuple as text.
    pub description: String,
    /// The kind of each peer as text; see [`PeerSpec::kind`].
    pub kinds: Vec<String>,
    /// The kind of each peer as plain data; see [`PeerSpec::kind_data`].
    pub kind_data: Vec<Value>,
    /// The identifier's class of each peer.
    pub classes: Vec<usize>,
    /// The behaviour vector of each peer; see [`PeerSpec::behaviour_vector`].
    pub traits: Vec<Vec<f32>>,
    /// The factors of variation of each peer and their values; see [`PeerSpec::factors`].
    #[serde(rename = "aspects")]
    pub factors: Vec<Vec<(&'static str, String)>>,
    /// All parameters.
    pub specs: Value,
}

/// A game with its pool, behind [`AnyGame`].
struct Opened<G: Game> {
    game: G,
    pool: PeerPool<SpecOf<G>>,
}

impl<G: Game> Opened<G> {
    fn new(game: G) -> Opened<G> {
        Opened { pool: game.pool(), game }
    }

    fn count_tuples(&self, split: Split) -> usize {
        match split {
            Split::Train => self.pool.train().len(),
            Split::Validation => self.pool.validation().len(),
            Split::Test => self.pool.test().len(),
            Split::Uniform(n) => n,
        }
    }

    fn tuple(&self, split: Split, index: usize) -> Result<PeerTuple<SpecOf<G>>, ConfigError> {
        let n_tuples = self.count_tuples(split);
        if index >= n_tuples {
            let pool = split.to_string();
            return Err(match n_tuples.checked_sub(1) {
                Some(last) => ConfigError::NoSuchPeer { found: index, pool, last },
                None => ConfigError::NoPeers { pool },
            });
        }
        Ok(match split {
            Split::Train => self.pool.train()[index].clone(),
            Split::Validation => self.pool.validation()[index].clone(),
            Split::Test => self.pool.test()[index].clone(),
            // From a fixed seed: peer 17 of `uniform:4000` is the same in every run.
            Split::Uniform(_) => {
                self.game.sample_tuple(&mut Seed::new(0).child("family", &[index as u64]).stream("draw"))
            }
        })
    }

    fn tuples(&self, split: Split) -> impl Iterator<Item = PeerTuple<SpecOf<G>>> {
        (0..self.count_tuples(split)).map(move |index| self.tuple(split, index).expect("in range"))
    }

    fn reference(&self, name: &str) -> Result<Reference<G>, ConfigError> {
        let references = self.game.references();
        let names = self.reference_names();
        references
            .into_iter()
            .find_map(|(known, reference)| (known == name).then_some(reference))
            .ok_or_else(|| ConfigError::unknown("reference agent", name, names))
    }
}

impl<G: Game> AnyGame for Opened<G> {
    fn spec(&self) -> &GameSpec {
        self.game.spec()
    }

    fn legend(&self) -> &'static [&'static str] {
        G::LEGEND
    }

    fn config(&self) -> Value {
        serde_json::to_value(self.game.config()).expect("a configuration is plain data")
    }

    fn pool(&self, split: Split) -> PoolListing {
        PoolListing {
            name: split.to_string(),
            content_hash: self.pool.content_hash(),
            n_classes: self.pool.n_classes().to_vec(),
            traits: self.pool.class_traits(),
            tuples: self
                .tuples(split)
                .map(|tuple| TupleListing {
                    description: tuple.describe(),
                    kinds: tuple.specs.iter().map(PeerSpec::kind).collect(),
                    kind_data: tuple.specs.iter().map(PeerSpec::kind_data).collect(),
                    classes: tuple.classes,
                    traits: tuple.specs.iter().map(PeerSpec::behaviour_vector).collect(),
                    factors: tuple.specs.iter().map(PeerSpec::factors).collect(),
                    specs: serde_json::to_value(tuple.specs).expect("specs are plain data"),
                })
                .collect(),
            symmetries: self.game.symmetries(),
        }
    }

    fn n_tuples(&self, split: Split) -> usize {
        self.count_tuples(split)
    }

    fn reference_names(&self) -> Vec<&'static str> {
        self.game.references().into_iter().map(|(name, _)| name).collect()
    }

    fn memoryless_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        let memoryless = |reference: &Reference<G>| match reference {
            Reference::Uninformed(make) => Some(make(&self.game)).filter(|ego| ego.is_memoryless()),
            Reference::Privileged(_) => None,
        };
        memoryless(&self.reference(name)?).ok_or_else(|| {
            let all = self.game.references();
            let all = all.iter().filter(|(_, reference)| memoryless(reference).is_some());
            ConfigError::unknown("memoryless reference agent", name, all.map(|(name, _)| *name))
        })
    }

    fn uninformed_names(&self) -> Vec<&'static str> {
        let is_uninformed = |reference: &Reference<G>| matches!(reference, Reference::Uninformed(_));
        let all = self.game.references().into_iter();
        all.filter(|(_, reference)| is_uninformed(reference)).map(|(name, _)| name).collect()
    }

    fn uninformed_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        match self.reference(name)? {
            Reference::Uninformed(make) => Ok(make(&self.game)),
            Reference::Privileged(_) => {
                Err(ConfigError::unknown("uninformed reference agent", name, self.uninformed_names()))
            }
        }
    }

    fn reference_session(&self, encounter: &ScriptedEncounter<'_>) -> Result<AgentSession, ConfigError> {
        let tuple = self.tuple(encounter.split, encounter.tuple)?;
        let reference = self.reference(encounter.reference)?;
        begin_reference(&self.game, &reference, &tuple.specs, encounter.n_episodes, encounter.seed)
    }

    fn encounter(
        &self,
        split: Split,
        tuple: usize,
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> Result<Box<dyn AnyEncounter>, ConfigError> {
        let specs = self.tuple(split, tuple)?.specs;
        Ok(Box::new(OpenedEncounter::begin(&self.game, &specs, people, n_episodes, seed)))
    }

    fn constants(&self) -> Value {
        self.game.constants()
    }

    fn arena(&self, split: Split, n_lanes: usize) -> Box<dyn AnyArena> {
        Box::new(ArenaOfPool {
            arena: Arena::new(self.game.clone(), n_lanes),
            tuples: self.tuples(split).map(|tuple| tuple.specs).collect(),
        })
    }

    fn decision_points(&self) -> Vec<DecisionPoint> {
        self.game.decision_points()
    }

    fn expected_return(&self, split: Split, tuple: usize, answers: &[f32]) -> Result<f64, ConfigError> {
        Ok(self.game.expected_return(&self.tuple(split, tuple)?.specs, answers))
    }

    fn check_contract(&self, seed: Seed) -> Result<Vec<&'static str>, ContractViolation> {
        check_contract(&self.game, seed)
    }
}

/// An encounter with its game, behind [`AnyEncounter`].
pub(crate) struct OpenedEncounter<G: Game> {
    game: G,
    specs: Vec<SpecOf<G>>,
    encounter: Encounter<G>,
    /// The state before each move and its actions, for behaviour summaries; `None` in encounters without people.
    moves: Option<Vec<(G::State, JointAction)>>,
}

impl<G: Game> OpenedEncounter<G> {
    /// See [`Encounter::begin_with_people`].
    pub(crate) fn begin(
        game: &G,
        specs: &[SpecOf<G>],
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> OpenedEncounter<G> {
        OpenedEncounter {
            encounter: Encounter::begin_with_people(game, specs, people, n_episodes, seed),
            moves: (!people.is_empty()).then(Vec::new),
            specs: specs.to_vec(),
            game: game.clone(),
        }
    }
}

impl<G: Game> AnyEncounter for OpenedEncounter<G> {
    fn spec(&self) -> &GameSpec {
        self.game.spec()
    }

    fn seats_to_ask(&self) -> SeatSet {
        self.encounter.seats_to_ask(&self.game)
    }

    fn play(&mut self, chosen: &JointAction, peers: &mut PeerStepBuffers<'_>) -> EncounterMove {
        let before = self.moves.is_some().then(|| self.encounter.state().clone());
        let played = self.encounter.play(&self.game, chosen, peers);
        if let (Some(moves), Some(state)) = (&mut self.moves, before) {
            moves.push((state, played.actions));
        }
        played
    }

    fn next_episode(&mut self) {
        self.encounter.next_episode(&self.game);
    }

    fn episode(&self) -> usize {
        self.encounter.episode()
    }

    fn observe(&self, seat: Seat, observation: &mut [f32]) {
        self.game.observe(self.encounter.state(), seat, observation);
    }

    fn observe_everything(&self, seat: Seat, observation: &mut [f32]) {
        self.game.observe_everything(self.encounter.state(), seat, observation);
    }

    fn expected_return(&self, answers: &[f32]) -> f64 {
        self.game.expected_return(&self.specs, answers)
    }

    fn forbidden_reason(&self, seat: Seat, action: Action) -> Option<String> {
        let peer = self.encounter.peers().get(seat.0.checked_sub(1)?)?;
        peer.forbidden_reason(&self.game, self.encounter.state(), seat, action)
    }

    fn render(&self) -> String {
        self.game.render(self.encounter.state())
    }

    fn view(&self, from: Viewpoint) -> Value {
        self.game.view(self.encounter.state(), from)
    }

    fn behaviour_summary(&self, seat: Seat) -> BehaviourSummary {
        self.game.behaviour_summary(seat, self.moves.as_deref().unwrap_or_default())
    }
}
