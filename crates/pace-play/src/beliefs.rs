//! What an agent thinks, in the form that a page shows: opinions about each peer by kind, action probabilities, expected value
//! and a place on the map of latents.

use pace_games::{AnyGame, KindBelief, Moment, Split};
use serde::Serialize;
use serde_json::Value;

use crate::catalog::PlayableAgent;

/// What an agent may think of one peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeliefSlot {
    /// What the peer is.
    pub role: &'static str,
    /// The kinds it may be of.
    pub kinds: Vec<BeliefKind>,
    /// The kind of each training class, where opinions are about classes.
    #[serde(skip)]
    kind_of_class: Vec<usize>,
}

/// One kind of peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeliefKind {
    /// In words.
    pub name: String,
    /// The same as plain data; see `PeerSpec::kind_data`.
    pub data: Value,
    /// How such a peer behaves; see `PeerSpec::behaviour_vector`.
    pub traits: Vec<f32>,
}

/// What an agent thinks at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeliefFrame {
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
pub(crate) fn slots_of_pool(game: &dyn AnyGame) -> Vec<BeliefSlot> {
    let pool = game.pool(Split::Train);
    let slot = |(slot, role): (usize, &&'static str)| {
        let mut kinds: Vec<BeliefKind> = Vec::new();
        let kind_of_class = (0..pool.n_classes[slot])
            .map(|class| {
                let tuple = pool.tuples.iter().find(|tuple| tuple.classes[slot] == class);
                let name = tuple.map_or_else(|| format!("class {class}"), |tuple| tuple.kinds[slot].clone());
                let data = tuple.map_or(Value::Null, |tuple| tuple.kind_data[slot].clone());
                kinds.iter().position(|known| known.name == name).unwrap_or_else(|| {
                    kinds.push(BeliefKind { name, data, traits: pool.traits[slot][class].clone() });
                    kinds.len() - 1
                })
            })
            .collect();
        BeliefSlot { role, kinds, kind_of_class }
    };
    game.spec().peer_roles.iter().enumerate().map(slot).collect()
}

/// The slots of a scripted ego, by the opinions it starts with.
pub(crate) fn slots_of_opinions(roles: &[&'static str], opinions: &[Vec<KindBelief>]) -> Vec<BeliefSlot> {
    let slot = |(role, opinions): (&&'static str, &Vec<KindBelief>)| BeliefSlot {
        role,
        kinds: opinions
            .iter()
            .map(|KindBelief { kind, data, traits, .. }| BeliefKind {
                name: kind.clone(),
                data: data.clone(),
                traits: traits.clone(),
            })
            .collect(),
        kind_of_class: Vec::new(),
    };
    roles.iter().zip(opinions).map(slot).collect()
}

impl BeliefFrame {
    /// What the agent thinks at a moment that concerns it.
    pub(crate) fn of(offer: &PlayableAgent, moment: &Moment<'_>) -> BeliefFrame {
        let decision = moment.decision;
        let inference = moment.inference();
        let slots = match inference {
            Some(inference) => by_kind(&offer.slots, &inference.posteriors),
            None => {
                let of_slot = |opinions: Vec<KindBelief>| {
                    opinions.into_iter().map(|opinion| rounded(opinion.probability)).collect()
                };
                moment.beliefs().into_iter().map(of_slot).collect()
            }
        };
        BeliefFrame {
            slots,
            probabilities: decision
                .map(|decision| decision.probabilities.iter().map(|share| rounded(*share)).collect()),
            value: decision.and(inference).map(|inference| rounded(inference.value)),
            place: offer.map.as_ref().zip(inference).map(|(map, inference)| map.place(&inference.latent)),
        }
    }
}

/// The probability of each kind, by slot: classes of one kind count together.
fn by_kind(slots: &[BeliefSlot], posteriors: &[Vec<f32>]) -> Vec<Vec<f32>> {
    let of_slot = |(slot, posterior): (&BeliefSlot, &Vec<f32>)| {
        let mut kinds = vec![0.0; slot.kinds.len()];
        for (class, probability) in posterior.iter().enumerate() {
            kinds[slot.kind_of_class[class]] += probability;
        }
        kinds.into_iter().map(rounded).collect()
    };
    slots.iter().zip(posteriors).map(of_slot).collect()
}

/// Four digits are more than anybody sees.
fn rounded(value: f32) -> f32 {
    (value * 1e4).round() / 1e4
}

/// When an agent came to the opinion it holds of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct IdentificationTracker {
    best: Option<usize>,
    since: (usize, usize),
    probability: f32,
}

impl IdentificationTracker {
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
