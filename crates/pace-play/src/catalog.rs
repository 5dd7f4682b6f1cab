//! The agents that people can play with, trained or scripted, by id, each with its game.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pace_games::{AgentSession, AnyGame, ConfigError, GAMES, Preset, ScriptedEncounter, Seat, Seed, Split};
use pace_learn::Agent;

use crate::beliefs::{BeliefSlot, slots_of_beliefs, slots_of_pool};
use crate::error::PlayError;
use crate::latent_map::LatentMap;

/// An agent that people can play with.
pub struct PlayableAgent {
    /// Id by which clients request it. Never a path.
    pub id: String,
    /// Name shown to people.
    pub label: String,
    /// The game it plays.
    pub game: Arc<dyn AnyGame>,
    /// The peers and kinds that its beliefs are about. Empty if it has no beliefs.
    pub slots: Vec<BeliefSlot>,
    /// Map of its latent space. `None` if it has no latent.
    pub map: Option<LatentMap>,
    /// Whether all players move at once. The page may then run at a fixed rate; otherwise it waits for the person.
    pub is_simultaneous: bool,
    /// Hash that changes with the agent. A session can be replayed only by an agent with the same fingerprint.
    pub fingerprint: String,
    pub(crate) kind: AgentKind,
    /// The oracle's score with each tuple of the test pool, computed on request.
    oracle: Mutex<BTreeMap<usize, f64>>,
}

pub(crate) enum AgentKind {
    Trained(Agent),
    Scripted(&'static str),
}

/// A trained agent, loaded from a run.
pub struct LoadedAgent {
    /// Id by which clients request it.
    pub id: String,
    /// Name shown to people.
    pub label: String,
    /// The game it was trained on.
    pub game: Arc<dyn AnyGame>,
    /// The agent.
    pub agent: Agent,
    /// Whether its peer identifier was trained.
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
            kind: AgentKind::Trained(agent),
            game,
            oracle: Mutex::default(),
        }
    }

    /// A scripted ego without privileged information.
    pub fn scripted(game: &Arc<dyn AnyGame>, name: &str) -> Result<PlayableAgent, PlayError> {
        let ego = game.uninformed_reference(name)?;
        let known = game.uninformed_names().into_iter().find(|known| *known == name);
        let spec = game.spec();
        Ok(PlayableAgent {
            id: format!("{}.{name}", spec.id),
            label: format!("{name} (scripted)"),
            slots: slots_of_beliefs(&spec.peer_roles, &ego.beliefs()),
            map: None,
            is_simultaneous: is_simultaneous(&**game),
            fingerprint: format!("scripted-{}", spec.revision),
            kind: AgentKind::Scripted(known.expect("the ego was created under this name")),
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
            AgentKind::Trained(agent) => {
                return agent.session(&*self.game, Split::Test, tuple, people, n_episodes, seed);
            }
            AgentKind::Scripted(name) => name,
        };
        let encounter = self.game.encounter(Split::Test, tuple, people, n_episodes, seed)?;
        let mut ego = self.game.uninformed_reference(name)?;
        ego.begin_encounter();
        AgentSession::begin(encounter, ego, seed)
    }

    /// Whether this is a trained agent, not a scripted ego.
    pub fn is_trained(&self) -> bool {
        matches!(self.kind, AgentKind::Trained(_))
    }

    /// Whether the game has a scripted ego called `oracle`.
    pub(crate) fn has_oracle(&self) -> bool {
        self.game.reference_names().contains(&"oracle")
    }

    /// The oracle's score, if [`PlayableAgent::oracle_score`] has computed it before.
    pub(crate) fn known_oracle_score(&self, tuple: usize) -> Option<f64> {
        self.oracle.lock().expect("no thread panics while it holds this lock").get(&tuple).copied()
    }

    /// The oracle's mean score per episode with the scripted peers of this test tuple.
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
        self.oracle.lock().expect("no thread panics while it holds this lock").insert(tuple, score);
        Ok(score)
    }
}

fn is_simultaneous(game: &dyn AnyGame) -> bool {
    let seat = Seat::of_peer(0);
    let encounter = game.encounter(Split::Test, 0, &[seat], 1, Seed::new(0));
    let asked = encounter.expect("every game has a test tuple").seats_to_ask();
    asked.contains(Seat::EGO) && asked.contains(seat)
}

/// Encounters per oracle score; the standard error is then a few hundredths.
const N_ORACLE_ENCOUNTERS: u64 = 8;

/// All agents that people can play with. Ids sent by clients are resolved only here.
#[derive(Default)]
pub struct AgentCatalog {
    agents: Vec<Arc<PlayableAgent>>,
}

impl AgentCatalog {
    /// The scripted egos of every game.
    pub fn scripted() -> Result<AgentCatalog, PlayError> {
        let mut catalog = AgentCatalog::default();
        for entry in GAMES {
            let game: Arc<dyn AnyGame> = Arc::from(entry.open(Preset::Paper, &serde_json::Map::new())?);
            catalog.add_scripted(&game)?;
        }
        Ok(catalog)
    }

    /// Adds the scripted egos of a game.
    pub fn add_scripted(&mut self, game: &Arc<dyn AnyGame>) -> Result<(), PlayError> {
        for name in game.uninformed_names() {
            self.agents.push(Arc::new(PlayableAgent::scripted(game, name)?));
        }
        Ok(())
    }

    /// Adds a trained agent after the other trained agents and before the scripted egos. A second agent with the id `NAME`
    /// becomes `NAME-2`.
    pub fn add_trained(&mut self, mut trained: LoadedAgent) {
        let (id, mut number) = (trained.id.clone(), 1);
        while self.agents.iter().any(|agent| agent.id == trained.id) {
            number += 1;
            trained.id = format!("{id}-{number}");
        }
        let n_trained = self.agents.iter().filter(|agent| agent.is_trained()).count();
        self.agents.insert(n_trained, Arc::new(PlayableAgent::trained(trained)));
    }

    /// All agents, the trained ones first.
    pub fn all(&self) -> &[Arc<PlayableAgent>] {
        &self.agents
    }

    /// The agent with this id.
    pub fn find(&self, id: &str) -> Result<&Arc<PlayableAgent>, PlayError> {
        self.agents
            .iter()
            .find(|agent| agent.id == id)
            .ok_or_else(|| PlayError::UnknownAgent { found: id.chars().take(64).collect() })
    }
}

/// The behaviour that a person is asked to play: that of the scripted peer in their seat.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct AssignedRole {
    /// Name of the kind of peer.
    pub kind: String,
    /// The kind as data; see `PeerSpec::kind_data`.
    pub data: serde_json::Value,
    /// All parameters of the peer.
    pub spec: serde_json::Value,
}

impl PlayableAgent {
    /// The behaviour of the peer in this slot of a test tuple. `None` if the tuple does not exist.
    pub fn assigned_role(&self, tuple: usize, slot: usize) -> Option<AssignedRole> {
        let mut pool = self.game.pool(Split::Test);
        let listing = (tuple < pool.tuples.len()).then(|| pool.tuples.swap_remove(tuple))?;
        Some(AssignedRole {
            kind: listing.kinds.get(slot)?.clone(),
            data: listing.kind_data.get(slot)?.clone(),
            spec: listing.specs.get(slot)?.clone(),
        })
    }
}
