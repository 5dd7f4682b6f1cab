//! Beliefs of an agent as a page shows them: probabilities of the kinds of each peer, action probabilities, value estimate and
//! position on the map of latents.

use pace_games::{AnyGame, KindBelief, Moment, Split};
use serde::Serialize;
use serde_json::Value;

use crate::catalog::PlayableAgent;

/// The kinds of one peer that an agent distinguishes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeliefSlot {
    /// Role of the peer in the game.
    pub role: &'static str,
    /// The kinds, in the order of the probabilities in [`BeliefFrame::slots`].
    pub kinds: Vec<BeliefKind>,
    /// The kind of each training class. Empty for scripted egos, whose beliefs are about kinds.
    #[serde(skip)]
    kind_of_class: Vec<usize>,
}

/// One kind of peer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeliefKind {
    /// Name for people.
    pub name: String,
    /// The kind as data; see `PeerSpec::kind_data`.
    pub data: Value,
    /// Its behaviour vector; see `PeerSpec::behaviour_vector`.
    pub traits: Vec<f32>,
}

/// The beliefs of an agent at one time step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BeliefFrame {
    /// Probability of each kind, by slot.
    pub slots: Vec<Vec<f32>>,
    /// Action probabilities. `None` if the agent had no decision.
    pub probabilities: Option<Vec<f32>>,
    /// Value estimate: expected discounted reward.
    pub value: Option<f32>,
    /// Position of its latent on the map.
    pub place: Option<[f32; 2]>,
}

/// The slots of an agent that was trained with a game's training pool. Classes of the same kind are merged.
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

/// The slots of a scripted ego, from its initial beliefs.
pub(crate) fn slots_of_beliefs(roles: &[&'static str], beliefs: &[Vec<KindBelief>]) -> Vec<BeliefSlot> {
    let slot = |(role, beliefs): (&&'static str, &Vec<KindBelief>)| BeliefSlot {
        role,
        kinds: beliefs
            .iter()
            .map(|KindBelief { kind, data, traits, .. }| BeliefKind {
                name: kind.clone(),
                data: data.clone(),
                traits: traits.clone(),
            })
            .collect(),
        kind_of_class: Vec::new(),
    };
    roles.iter().zip(beliefs).map(slot).collect()
}

impl BeliefFrame {
    /// The agent's beliefs at a moment at which it has observed or decided something.
    pub(crate) fn of(agent: &PlayableAgent, moment: &Moment<'_>) -> BeliefFrame {
        let decision = moment.decision;
        let inference = moment.inference();
        let slots = match inference {
            Some(inference) => by_kind(&agent.slots, &inference.posteriors),
            None => {
                let of_slot = |kinds: Vec<KindBelief>| {
                    kinds.into_iter().map(|kind| rounded(kind.probability)).collect()
                };
                moment.beliefs().into_iter().map(of_slot).collect()
            }
        };
        BeliefFrame {
            slots,
            probabilities: decision
                .map(|decision| decision.probabilities.iter().map(|share| rounded(*share)).collect()),
            value: decision.and(inference).map(|inference| rounded(inference.value)),
            place: agent.map.as_ref().zip(inference).map(|(map, inference)| map.place(&inference.latent)),
        }
    }
}

/// The probability of each kind, by slot: the sum over the classes of that kind.
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

/// Rounds to four digits, which is more than a page shows.
fn rounded(value: f32) -> f32 {
    (value * 1e4).round() / 1e4
}

/// The most likely kind of one peer, and the time since when it has been the most likely.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct IdentificationTracker {
    best: Option<usize>,
    since: (usize, usize),
    probability: f32,
}

impl IdentificationTracker {
    /// Updates the tracker with the probability of each kind. `now` is the episode and its number of moves.
    pub(crate) fn update(&mut self, kinds: &[f32], now: (usize, usize)) {
        let best = (0..kinds.len()).rev().max_by(|one, other| kinds[*one].total_cmp(&kinds[*other]));
        // A kind close to the uniform probability does not count as identified.
        let best = best.filter(|best| kinds[*best] > 1.5 / kinds.len() as f32);
        if best != self.best {
            self.since = now;
        }
        self.best = best;
        self.probability = best.map_or(0.0, |best| kinds[best]);
    }

    /// The most likely kind, its probability and the time since when. `None` if no kind is clearly the most likely.
    pub(crate) fn best(&self) -> Option<(usize, f32, (usize, usize))> {
        self.best.map(|best| (best, self.probability, self.since))
    }
}
