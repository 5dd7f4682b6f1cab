//! What people can play with: agents by id, trained or scripted, each with the game it plays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pace_games::{AgentSession, AnyGame, ConfigError, GAMES, Preset, ScriptedEncounter, Seat, Seed, Split};
use pace_learn::Agent;

use crate::beliefs::{BeliefSlot, slots_of_opinions, slots_of_pool};
use crate::error::PlayError;
use crate::latent_map::LatentMap;

/// One agent on offer.
pub struct PlayableAgent {
    /// By which it is asked for. Never a path.
    pub id: String,
    /// For people.
    pub label: String,
    /// The game it plays.
    pub game: Arc<dyn AnyGame>,
    /// What it has opinions about; no slots if it has none.
    pub slots: Vec<BeliefSlot>,
    /// Where its latents are drawn.
    pub map: Option<LatentMap>,
    /// Whether everybody chooses at once, so that the page may keep a beat; otherwise it waits for the person.
    pub is_simultaneous: bool,
    /// Tells one agent from another with the same id: an encounter can be played again only with the same one.
    pub fingerprint: String,
    pub(crate) kind: OfferKind,
    /// What the oracle reaches with each tuple of the test pool, as far as it was asked for.
    oracle: Mutex<BTreeMap<usize, f64>>,
}

pub(crate) enum OfferKind {
    Trained(Agent),
    Scripted(&'static str),
}

/// A trained agent as somebody loaded it.
pub struct LoadedAgent {
    /// By which it is to be asked for.
    pub id: String,
    /// For people.
    pub label: String,
    /// The game it was trained on.
    pub game: Arc<dyn AnyGame>,
    /// The agent.
    pub agent: Agent,
    /// Whether what it says about its peers was learned.
    pub identifies: bool,
    /// A hash of its weights.
    pub fingerprint: String,
}

impl PlayableAgent {
    /// A trained agent.
    pub fn trained(trained: LoadedAgent) -> PlayableAgent {
        let LoadedAgent { id, label, game, agent, identifies, fingerprint } = trained;
        let slots = if identifies && agent.n_identified() > 0 { slots_of_pool(&*game) } else { Vec::new() };
        let map = LatentMap::of(&agent, &*game);
        PlayableAgent {
            id,
            label,
            slots,
            map,
            is_simultaneous: is_simultaneous(&*game),
            fingerprint,
            kind: OfferKind::Trained(agent),
            game,
            oracle: Mutex::default(),
        }
    }

    /// A scripted ego that is told nothing.
    pub fn scripted(game: &Arc<dyn AnyGame>, name: &str) -> Result<PlayableAgent, PlayError> {
        let ego = game.uninformed_reference(name)?;
        let known = game.uninformed_names().into_iter().find(|known| *known == name);
        let spec = game.spec();
        Ok(PlayableAgent {
            id: format!("{}.{name}", spec.id),
            label: format!("{name} (scripted)"),
            slots: slots_of_opinions(&spec.peer_roles, &ego.beliefs()),
            map: None,
            is_simultaneous: is_simultaneous(&**game),
            fingerprint: format!("scripted-{}", spec.revision),
            kind: OfferKind::Scripted(known.expect("it was made by that name")),
            game: Arc::clone(game),
            oracle: Mutex::default(),
        })
    }

    /// A session of the agent with a tuple of the test pool; `people` play the seats of some of the peers.
    pub(crate) fn session(
        &self,
        tuple: usize,
        people: &[Seat],
        n_episodes: usize,
        seed: Seed,
    ) -> Result<AgentSession, ConfigError> {
        let name = match &self.kind {
            OfferKind::Trained(agent) => {
                return agent.session(&*self.game, Split::Test, tuple, people, n_episodes, seed);
            }
            OfferKind::Scripted(name) => name,
        };
        let encounter = self.game.encounter(Split::Test, tuple, people, n_episodes, seed)?;
        let mut ego = self.game.uninformed_reference(name)?;
        ego.begin_encounter();
        AgentSession::begin(encounter, ego, seed)
    }

    /// Whether it was trained.
    pub fn is_trained(&self) -> bool {
        matches!(self.kind, OfferKind::Trained(_))
    }

    /// Whether the game has a scripted ego called `oracle`.
    pub fn has_oracle(&self) -> bool {
        self.game.reference_names().contains(&"oracle")
    }

    /// The oracle's score, if [`PlayableAgent::oracle_score`] has computed it before.
    pub fn known_oracle_score(&self, tuple: usize) -> Option<f64> {
        self.oracle.lock().expect("nobody panics with it").get(&tuple).copied()
    }

    /// What an ego that knows its peers scores per episode on average when all of them are scripted.
    pub fn oracle_score(&self, tuple: usize) -> Result<f64, PlayError> {
        if let Some(score) = self.known_oracle_score(tuple) {
            return Ok(score);
        }
        let spec = self.game.spec();
        let n_episodes = spec.episodes_per_encounter;
        let mut total = 0.0;
        for encounter in 0..N_ORACLE_ENCOUNTERS {
            let seed = Seed::new(0).child("oracle", &[tuple as u64, encounter]);
            let encounter =
                ScriptedEncounter { reference: "oracle", split: Split::Test, tuple, n_episodes, seed };
            let outcomes = self.game.play(&encounter)?;
            total += outcomes.iter().map(|outcome| outcome.score(spec.metric)).sum::<f64>();
        }
        let score = total / (N_ORACLE_ENCOUNTERS as usize * n_episodes) as f64;
        self.oracle.lock().expect("nobody panics with it").insert(tuple, score);
        Ok(score)
    }
}

fn is_simultaneous(game: &dyn AnyGame) -> bool {
    let seat = Seat::of_peer(0);
    let encounter = game.encounter(Split::Test, 0, &[seat], 1, Seed::new(0));
    let asked = encounter.expect("every game has a test tuple").seats_to_ask();
    asked.contains(Seat::EGO) && asked.contains(seat)
}

/// Enough to know the oracle's score to a few hundredths.
const N_ORACLE_ENCOUNTERS: u64 = 8;

/// All agents on offer. The only way from an id that a client sends to an agent.
#[derive(Default)]
pub struct AgentCatalog {
    offers: Vec<Arc<PlayableAgent>>,
}

impl AgentCatalog {
    /// The scripted egos of every game, so that there is something to play with before anything is trained.
    pub fn scripted() -> Result<AgentCatalog, PlayError> {
        let mut offers = AgentCatalog::default();
        for entry in GAMES {
            let game: Arc<dyn AnyGame> = Arc::from(entry.open(Preset::Paper, &serde_json::Map::new())?);
            offers.add_scripted(&game)?;
        }
        Ok(offers)
    }

    /// Adds the scripted egos of a game.
    pub fn add_scripted(&mut self, game: &Arc<dyn AnyGame>) -> Result<(), PlayError> {
        for name in game.uninformed_names() {
            self.offers.push(Arc::new(PlayableAgent::scripted(game, name)?));
        }
        Ok(())
    }

    /// Puts a trained agent at the head of the list; a second one of the same name is called `NAME-2`.
    pub fn add_trained(&mut self, mut trained: LoadedAgent) {
        let (wanted, mut number) = (trained.id.clone(), 1);
        while self.offers.iter().any(|offer| offer.id == trained.id) {
            number += 1;
            trained.id = format!("{wanted}-{number}");
        }
        let n_trained = self.offers.iter().filter(|offer| offer.is_trained()).count();
        self.offers.insert(n_trained, Arc::new(PlayableAgent::trained(trained)));
    }

    /// All of them, trained ones first.
    pub fn all(&self) -> &[Arc<PlayableAgent>] {
        &self.offers
    }

    /// The one with this id.
    pub fn find(&self, id: &str) -> Result<&Arc<PlayableAgent>, PlayError> {
        self.offers
            .iter()
            .find(|offer| offer.id == id)
            .ok_or_else(|| PlayError::NoSuchOffer { found: id.chars().take(64).collect() })
    }
}

/// The part that a person may be asked to play.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AssignedRole {
    /// The kind of peer, in words.
    pub kind: String,
    /// The same as plain data; see `PeerSpec::kind_data`.
    pub data: serde_json::Value,
    /// All of its parameters.
    pub spec: serde_json::Value,
}

impl PlayableAgent {
    /// The part of the peer in this slot of a test tuple; none if there is no such tuple.
    pub fn part(&self, tuple: usize, slot: usize) -> Option<AssignedRole> {
        let mut pool = self.game.pool(Split::Test);
        let listing = (tuple < pool.tuples.len()).then(|| pool.tuples.swap_remove(tuple))?;
        Some(AssignedRole {
            kind: listing.kinds.get(slot)?.clone(),
            data: listing.kind_data.get(slot)?.clone(),
            spec: listing.specs.get(slot)?.clone(),
        })
    }
}
