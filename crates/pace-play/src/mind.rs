//! What an agent thinks, in the form that a page shows: opinions about each peer by kind, action probabilities, expected value
//! and a place on the map of latents.

use pace_games::{AnyGame, Ego, Opinion, Split};
use pace_learn::{Aftermath, Agent, AgentEncounter, Thought};
use serde::Serialize;
use serde_json::Value;

use crate::latent_map::LatentMap;
use crate::offer::{Offer, OfferKind};

/// What an agent may think of one peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MindSlot {
    /// What the peer is.
    pub role: &'static str,
    /// The kinds it may be of.
    pub kinds: Vec<MindKind>,
    /// The kind of each training class, where opinions are about classes.
    #[serde(skip)]
    kind_of_class: Vec<usize>,
}

/// One kind of peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MindKind {
    /// In words.
    pub name: String,
    /// The same as plain data; see `PeerSpec::kind_data`.
    pub data: Value,
    /// How such a peer behaves; see `PeerSpec::traits`.
    pub traits: Vec<f32>,
}

/// What an agent thinks at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MindFrame {
    /// By slot, how likely each kind is.
    pub slots: Vec<Vec<f32>>,
    /// How likely it was to take each action; nothing where it had nothing to decide.
    pub probabilities: Option<Vec<f32>>,
    /// The discounted reward it expects.
    pub value: Option<f32>,
    /// Its latent's place on the map.
    pub place: Option<[f32; 2]>,
}

/// The slots of an agent that was trained with a game's training pool; classes of one kind are one.
pub(crate) fn slots_of_pool(game: &dyn AnyGame) -> Vec<MindSlot> {
    let pool = game.pool(Split::Train);
    let slot = |(slot, role): (usize, &&'static str)| {
        let mut kinds: Vec<MindKind> = Vec::new();
        let kind_of_class = (0..pool.n_classes[slot])
            .map(|class| {
                let tuple = pool.tuples.iter().find(|tuple| tuple.classes[slot] == class);
                let name = tuple.map_or_else(|| format!("class {class}"), |tuple| tuple.kinds[slot].clone());
                let data = tuple.map_or(Value::Null, |tuple| tuple.kind_data[slot].clone());
                kinds.iter().position(|known| known.name == name).unwrap_or_else(|| {
                    kinds.push(MindKind { name, data, traits: pool.traits[slot][class].clone() });
                    kinds.len() - 1
                })
            })
            .collect();
        MindSlot { role, kinds, kind_of_class }
    };
    game.spec().peer_roles.iter().enumerate().map(slot).collect()
}

/// The slots of a scripted ego, by the opinions it starts with.
pub(crate) fn slots_of_opinions(roles: &[&'static str], opinions: &[Vec<Opinion>]) -> Vec<MindSlot> {
    let slot = |(role, opinions): (&&'static str, &Vec<Opinion>)| MindSlot {
        role,
        kinds: opinions
            .iter()
            .map(|Opinion { kind, data, traits, .. }| MindKind {
                name: kind.clone(),
                data: data.clone(),
                traits: traits.clone(),
            })
            .collect(),
        kind_of_class: Vec::new(),
    };
    roles.iter().zip(opinions).map(slot).collect()
}

/// An agent in play, trained or scripted.
pub(crate) enum Player {
    Trained(AgentEncounter),
    Scripted(Box<dyn Ego>),
}

impl Player {
    pub(crate) fn seated(offer: &Offer, seed: pace_games::Seed) -> Player {
        match &offer.kind {
            OfferKind::Trained(agent) => Player::Trained(Agent::encounter_with(agent, seed)),
            OfferKind::Scripted(name) => {
                let mut ego = offer.game.blind_ego(name).expect("an offer has been made before");
                ego.begin_encounter();
                Player::Scripted(ego)
            }
        }
    }

    /// What it thinks of an observation: what the page shows, and the probabilities to draw from.
    pub(crate) fn think(&mut self, offer: &Offer, observation: &[f32]) -> MindFrame {
        match self {
            Player::Trained(encounter) => {
                mind_of_thought(&offer.slots, offer.map.as_ref(), encounter.think(observation))
            }
            Player::Scripted(ego) => {
                let mut probabilities = vec![0.0; offer.game.spec().n_actions()];
                ego.probabilities(observation, &mut probabilities);
                let of_slot = |opinions: Vec<Opinion>| {
                    opinions.into_iter().map(|opinion| rounded(opinion.probability)).collect()
                };
                MindFrame {
                    slots: ego.opinions().into_iter().map(of_slot).collect(),
                    probabilities: Some(probabilities),
                    value: None,
                    place: None,
                }
            }
        }
    }

    pub(crate) fn acted(&mut self, observation: &[f32], action: pace_games::Action) {
        match self {
            Player::Trained(encounter) => encounter.acted(observation, action),
            Player::Scripted(ego) => ego.acted(observation, action),
        }
    }

    pub(crate) fn told(&mut self, aftermath: &Aftermath<'_>) {
        if let Player::Trained(encounter) = self {
            encounter.told(aftermath);
        }
    }

    pub(crate) fn end_episode(&mut self, terminal_observation: &[f32]) {
        match self {
            Player::Trained(encounter) => encounter.end_episode(terminal_observation),
            Player::Scripted(ego) => ego.end_episode(terminal_observation),
        }
    }
}

fn mind_of_thought(slots: &[MindSlot], map: Option<&LatentMap>, thought: Thought) -> MindFrame {
    let by_kind = |(slot, posterior): (&MindSlot, &Vec<f32>)| {
        let mut kinds = vec![0.0; slot.kinds.len()];
        for (class, probability) in posterior.iter().enumerate() {
            kinds[slot.kind_of_class[class]] += probability;
        }
        kinds.into_iter().map(rounded).collect()
    };
    MindFrame {
        slots: slots.iter().zip(&thought.posteriors).map(by_kind).collect(),
        value: Some(rounded(thought.value)),
        place: map.map(|map| map.place(&thought.latent)),
        probabilities: Some(thought.probabilities),
    }
}

/// Four digits are more than anybody sees.
pub(crate) fn rounded(value: f32) -> f32 {
    (value * 1e4).round() / 1e4
}

/// When an agent came to the opinion it holds of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Recognition {
    best: Option<usize>,
    since: (usize, usize),
    probability: f32,
}

impl Recognition {
    /// The agent thinks, after this many moves of this episode.
    pub(crate) fn consider(&mut self, kinds: &[f32], now: (usize, usize)) {
        let best = (0..kinds.len()).rev().max_by(|one, other| kinds[*one].total_cmp(&kinds[*other]));
        // One that is hardly likelier than by chance is no opinion.
        let best = best.filter(|best| kinds[*best] > 1.5 / kinds.len() as f32);
        if best != self.best {
            self.since = now;
        }
        self.best = best;
        self.probability = best.map_or(0.0, |best| kinds[best]);
    }

    pub(crate) fn best(&self) -> Option<(usize, f32, (usize, usize))> {
        self.best.map(|best| (best, self.probability, self.since))
    }
}
