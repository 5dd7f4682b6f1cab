//! Games by name: one line of `GAMES` makes a game known to every command, with its type erased.

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
    /// The files with which pages show it; see [`Game::PAGE`].
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

    /// The game under a preset, with some keys set otherwise.
    pub fn open(
        &self,
        preset: Preset,
        overrides: &Map<String, Value>,
    ) -> Result<Box<dyn AnyGame>, ConfigError> {
        (self.open)(preset, overrides)
    }
}

/// A game whose type is known to nobody but itself.
pub trait AnyGame: Send + Sync {
    /// The facts of the game.
    fn spec(&self) -> &GameSpec;
    /// See [`Game::LEGEND`].
    fn legend(&self) -> &'static [&'static str];
    /// All keys with their values.
    fn config(&self) -> Value;
    /// The peers of a split.
    fn pool(&self, split: Split) -> PoolListing;
    /// How many tuples a split has.
    fn n_tuples(&self, split: Split) -> usize;
    /// The names of the scripted egos.
    fn reference_names(&self) -> Vec<&'static str>;
    /// A scripted ego that is told nothing and answers alike at any time ([`Ego::is_memoryless`]); others are refused.
    fn memoryless_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError>;
    /// The names of the scripted egos that are told nothing.
    fn blind_names(&self) -> Vec<&'static str>;
    /// A scripted ego that is told nothing; others are refused.
    fn uninformed_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError>;
    /// A reference agent at the beginning of an encounter.
    fn reference_session(&self, encounter: &ScriptedEncounter<'_>) -> Result<AgentSession, ConfigError>;
    /// A reference agent plays one encounter to its end.
    fn play(&self, encounter: &ScriptedEncounter<'_>) -> Result<Vec<EpisodeOutcome>, ConfigError> {
        self.reference_session(encounter)?.play_out()
    }
    /// An encounter whose ego is asked from outside, and so are `people` in the seats of some of the peers.
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
    /// Plays the game against its contract; the names of the checks it passed, or the first that it broke.
    fn check_contract(&self, seed: Seed) -> Result<Vec<&'static str>, ContractViolation>;
}

/// An encounter of a game whose type is known to nobody but itself. It plays as a lane with the same seed does, and can be
/// looked at.
pub trait AnyEncounter: Send {
    /// The facts of the game.
    fn spec(&self) -> &GameSpec;
    /// See [`Encounter::seats_to_ask`].
    fn seats_to_ask(&self) -> SeatSet;
    /// See [`Encounter::play`].
    fn play(&mut self, chosen: &JointAction, peers: &mut PeerStepBuffers<'_>) -> EncounterMove;
    /// See [`Encounter::next_episode`].
    fn next_episode(&mut self);
    /// The episode that is being played, from 0.
    fn episode(&self) -> usize;
    /// Writes what a seat sees.
    fn observe(&self, seat: Seat, observation: &mut [f32]);
    /// Writes what a seat would see if nothing were hidden; see [`Game::observe_everything`].
    fn observe_everything(&self, seat: Seat, observation: &mut [f32]);
    /// See [`Game::expected_return`].
    fn expected_return(&self, answers: &[f32]) -> f64;
    /// Why the person in `seat` may not do this now; see [`Peer::forbidden_reason`].
    fn forbidden_reason(&self, seat: Seat, action: Action) -> Option<String>;
    /// The state as text for people.
    fn render(&self) -> String;
    /// The state from a viewpoint, as plain data; see [`Game::view`].
    fn view(&self, from: Viewpoint) -> Value;
    /// How the person in `seat` has played so far; see [`Game::behaviour_summary`].
    fn behaviour_summary(&self, seat: Seat) -> BehaviourSummary;
}

/// Who meets whom, and with which luck.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedEncounter<'a> {
    /// The scripted ego's name.
    pub reference: &'a str,
    /// The part of the pool.
    pub split: Split,
    /// The number of the tuple there.
    pub tuple: usize,
    /// How many episodes.
    pub n_episodes: usize,
    /// All randomness of the encounter.
    pub seed: Seed,
}

/// The peers of one split, for people and records.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PoolListing {
    /// The split's name.
    pub name: String,
    /// The hash of the whole pool, training and test.
    pub content_hash: String,
    /// Classes the identifier tells apart, per slot.
    pub n_classes: Vec<usize>,
    /// By slot and class, the traits of the peers of that class ([`PeerSpec::behaviour_vector`]).
    pub traits: Vec<Vec<Vec<f32>>>,
    /// The tuples in order.
    pub tuples: Vec<TupleListing>,
    /// See [`Game::sides`].
    #[serde(skip)]
    pub sides: Option<Symmetries>,
}

/// One tuple of peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TupleListing {
    /// In words.
    pub description: String,
    /// The kind of each peer, in words; see [`PeerSpec::kind`].
    pub kinds: Vec<String>,
    /// The same as plain data; see [`PeerSpec::kind_data`].
    pub kind_data: Vec<Value>,
    /// The identifier's class of each peer.
    pub classes: Vec<usize>,
    /// The traits of each peer; see [`PeerSpec::behaviour_vector`].
    pub traits: Vec<Vec<f32>>,
    /// What peers differ in, with a word for what it is here, by slot; see [`PeerSpec::factors`].
    pub aspects: Vec<Vec<(&'static str, String)>>,
    /// All parameters.
    pub specs: Value,
}

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
            Split::Test => self.pool.test().len(),
            Split::Uniform(n) => n,
        }
    }

    fn tuple(&self, split: Split, index: usize) -> Result<PeerTuple<SpecOf<G>>, ConfigError> {
        let n_tuples = self.count_tuples(split);
        if index >= n_tuples {
            return Err(ConfigError::NoSuchPeer {
                found: index,
                pool: split.to_string(),
                last: n_tuples - 1,
            });
        }
        Ok(match split {
            Split::Train => self.pool.train()[index].clone(),
            Split::Test => self.pool.test()[index].clone(),
            // From a fixed seed, so that peer 17 of `uniform:4000` is the same for everybody.
            Split::Uniform(_) => {
                self.game.draw_tuple(&mut Seed::new(0).child("family", &[index as u64]).stream("draw"))
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
                    aspects: tuple.specs.iter().map(PeerSpec::factors).collect(),
                    specs: serde_json::to_value(tuple.specs).expect("specs are plain data"),
                })
                .collect(),
            sides: self.game.sides(),
        }
    }

    fn n_tuples(&self, split: Split) -> usize {
        self.count_tuples(split)
    }

    fn reference_names(&self) -> Vec<&'static str> {
        self.game.references().into_iter().map(|(name, _)| name).collect()
    }

    fn memoryless_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        let fixed = |reference: &Reference<G>| match reference {
            Reference::Uninformed(make) => Some(make(&self.game)).filter(|ego| ego.is_memoryless()),
            Reference::Privileged(_) => None,
        };
        fixed(&self.reference(name)?).ok_or_else(|| {
            let all = self.game.references();
            let names = all.iter().filter(|(_, reference)| fixed(reference).is_some()).map(|(name, _)| *name);
            ConfigError::unknown("fixed scripted ego", name, names)
        })
    }

    fn blind_names(&self) -> Vec<&'static str> {
        let is_blind = |reference: &Reference<G>| matches!(reference, Reference::Uninformed(_));
        let all = self.game.references().into_iter();
        all.filter(|(_, reference)| is_blind(reference)).map(|(name, _)| name).collect()
    }

    fn uninformed_reference(&self, name: &str) -> Result<Box<dyn Ego>, ConfigError> {
        match self.reference(name)? {
            Reference::Uninformed(make) => Ok(make(&self.game)),
            Reference::Privileged(_) => {
                Err(ConfigError::unknown("scripted ego that is told nothing", name, self.blind_names()))
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

/// An encounter with the game that it is of.
pub(crate) struct OpenedEncounter<G: Game> {
    game: G,
    specs: Vec<SpecOf<G>>,
    encounter: Encounter<G>,
    /// The moves so far, if people make some of them.
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
