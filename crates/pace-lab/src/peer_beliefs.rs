//! An agent's beliefs about its peers: its posteriors over training classes, summed over the classes of each kind.

use pace_games::{AnyGame, Inference, Split, TupleListing};
use serde_json::Value;

/// A step of an encounter: the episode and the number of decisions before it in that episode, both from 0.
pub type EpisodeStep = (usize, usize);

/// An agent's beliefs about every peer of an encounter.
pub struct PeerBeliefs {
    slots: Vec<PeerBelief>,
}

/// An agent's belief about one peer.
pub struct PeerBelief {
    /// The role of the peer in the game.
    pub role: &'static str,
    kinds: Vec<String>,
    kind_data: Vec<Value>,
    kind_of_class: Vec<usize>,
    /// The behaviour vector of each class.
    traits: Vec<Vec<f32>>,
    /// The index of the peer's true kind, if a training peer has this kind.
    truth: Option<usize>,
    /// The kinds with their probabilities, most likely first; empty before the first update.
    ranking: Vec<(usize, f32)>,
    /// The step since which the first of them has been the most likely.
    since: EpisodeStep,
}

/// The most likely kind of a peer.
#[derive(Clone, Debug)]
pub struct Guess {
    /// The name of the kind.
    pub kind: String,
    /// The probability of the kind.
    pub probability: f32,
    /// Whether it is the true kind; `None` if no training peer has the true kind.
    pub is_right: Option<bool>,
}

impl PeerBeliefs {
    /// Creates beliefs without probabilities about the peers in `met`.
    pub fn new(game: &dyn AnyGame, met: &TupleListing) -> PeerBeliefs {
        let pool = game.pool(Split::Train);
        let slots = game.spec().peer_roles.iter().enumerate().map(|(slot, role)| {
            let mut kinds: Vec<String> = Vec::new();
            let mut kind_data = Vec::new();
            let kind_of_class = (0..pool.n_classes[slot])
                .map(|class| {
                    let peer = pool.tuples.iter().find(|tuple| tuple.classes[slot] == class);
                    let kind = peer.map_or_else(|| format!("class {class}"), |peer| peer.kinds[slot].clone());
                    kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                        kind_data.push(peer.map_or(Value::Null, |peer| peer.kind_data[slot].clone()));
                        kinds.push(kind);
                        kinds.len() - 1
                    })
                })
                .collect();
            let truth = kinds.iter().position(|kind| *kind == met.kinds[slot]);
            let traits = pool.traits.get(slot).cloned().unwrap_or_default();
            PeerBelief {
                role,
                kinds,
                kind_data,
                kind_of_class,
                traits,
                truth,
                ranking: Vec::new(),
                since: (0, 0),
            }
        });
        PeerBeliefs { slots: slots.collect() }
    }

    /// Updates the beliefs with the posteriors of the agent at step `now`.
    pub fn update(&mut self, inference: &Inference, now: EpisodeStep) {
        for (slot, posterior) in self.slots.iter_mut().zip(&inference.posteriors) {
            let mut ranking: Vec<(usize, f32)> = (0..slot.kinds.len()).map(|kind| (kind, 0.0)).collect();
            for (class, probability) in posterior.iter().enumerate() {
                ranking[slot.kind_of_class[class]].1 += probability;
            }
            ranking.sort_by(|one, other| other.1.total_cmp(&one.1));
            let first = |ranking: &[(usize, f32)]| ranking.first().map(|(kind, _)| *kind);
            if first(&ranking) != first(&slot.ranking) {
                slot.since = now;
            }
            slot.ranking = ranking;
        }
    }

    /// The belief about each peer, by slot.
    pub fn slots(&self) -> &[PeerBelief] {
        &self.slots
    }

    /// One line per peer: the most likely kind, the step since which it is the most likely, and whether it is right.
    pub fn summary_lines(&self, episode_noun: &str) -> Vec<String> {
        let line = |slot: &PeerBelief| {
            let guess = slot.ranked().next()?;
            let (episode, n_steps) = slot.since;
            let since = match n_steps {
                0 => format!("since {episode_noun} {} began", episode + 1),
                _ => format!("since step {n_steps} of {episode_noun} {}", episode + 1),
            };
            let (role, kind) = (slot.role, guess.kind);
            Some(match guess.is_right {
                Some(true) => format!("{role}: identified {since}"),
                Some(false) => format!("{role}: not identified; most likely {kind}, {since}"),
                None => format!("{role}: no such peer in training; most likely {kind}, {since}"),
            })
        };
        self.slots.iter().filter_map(line).collect()
    }
}

impl PeerBelief {
    /// The kinds, as text and as plain data, each with the mean behaviour vector of its classes.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &Value, Vec<f32>)> {
        self.kinds.iter().enumerate().map(|(kind, name)| {
            let classes = self.kind_of_class.iter().zip(&self.traits).filter(|(of, _)| **of == kind);
            let rows: Vec<&Vec<f32>> = classes.map(|(_, traits)| traits).collect();
            let n_traits = rows.first().map_or(0, |row| row.len());
            let mean = |place: usize| rows.iter().map(|row| row[place]).sum::<f32>() / rows.len() as f32;
            (name.as_str(), &self.kind_data[kind], (0..n_traits).map(mean).collect())
        })
    }

    /// The index of the peer's true kind in [`PeerBelief::kinds`], if a training peer has this kind.
    pub fn truth(&self) -> Option<usize> {
        self.truth
    }

    /// The probability of each kind, in the order of [`PeerBelief::kinds`]; empty before the first update.
    pub fn probabilities(&self) -> impl Iterator<Item = f32> {
        let mut probabilities = vec![0.0; self.ranking.len()];
        self.ranking.iter().for_each(|(kind, probability)| probabilities[*kind] = *probability);
        probabilities.into_iter()
    }

    /// The kinds with their probabilities, most likely first.
    pub fn ranked(&self) -> impl Iterator<Item = Guess> {
        self.ranking.iter().map(|(kind, probability)| Guess {
            kind: self.kinds[*kind].clone(),
            probability: *probability,
            is_right: self.truth.map(|truth| truth == *kind),
        })
    }
}

#[cfg(test)]
mod tests {
    use pace_games::{Inference, Preset, Split, find_game};
    use serde_json::Map;

    use super::PeerBeliefs;

    fn inference(posteriors: Vec<Vec<f32>>) -> Inference {
        Inference { posteriors, ..Inference::default() }
    }

    #[test]
    fn classes_of_one_kind_are_summed_and_the_last_change_of_belief_is_kept() {
        let game = find_game("overcooked").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
        let game = game.expect("a game");
        // Training peers 0 and 9 have the preference of test peer 0; peer 4 has another one.
        let mut beliefs = PeerBeliefs::new(&*game, &game.pool(Split::Test).tuples[0]);
        assert_eq!(beliefs.slots()[0].kinds.len(), 9);
        assert!(beliefs.summary_lines("episode").is_empty());
        let posterior = |shares: &[(usize, f32)]| {
            let mut posterior = vec![0.0; 18];
            shares.iter().for_each(|(class, share)| posterior[*class] = *share);
            inference(vec![posterior])
        };
        beliefs.update(&posterior(&[(4, 0.6), (0, 0.3), (9, 0.1)]), (0, 0));
        assert_eq!(
            beliefs.summary_lines("episode"),
            ["cook: not identified; most likely Lettuce and Carrot, since episode 1 began"]
        );
        beliefs.update(&posterior(&[(4, 0.4), (0, 0.3), (9, 0.3)]), (0, 7));
        beliefs.update(&posterior(&[(4, 0.1), (0, 0.9)]), (3, 0));
        let best = beliefs.slots()[0].ranked().next().expect("a guess");
        assert_eq!(
            (&best.kind[..], best.probability, best.is_right),
            ("Potato and Broccoli", 0.9, Some(true))
        );
        assert_eq!(beliefs.summary_lines("episode"), ["cook: identified since step 7 of episode 1"]);
    }

    #[test]
    fn a_kind_without_training_peers_cannot_be_identified() {
        let game = find_game("kuhn-poker").and_then(|entry| entry.open(Preset::Paper, &Map::new()));
        let game = game.expect("a game");
        let mut beliefs = PeerBeliefs::new(&*game, &game.pool(Split::Test).tuples[0]);
        beliefs.update(&inference(vec![vec![1.0 / 40.0; 40]]), (2, 1));
        assert_eq!(beliefs.slots()[0].ranked().next().expect("a guess").is_right, None);
        assert!(
            beliefs.summary_lines("hand")[0]
                .starts_with("opponent: no such peer in training; most likely bluffs J")
        );
        // An agent without an identifier has no beliefs.
        let mut blank = PeerBeliefs::new(&*game, &game.pool(Split::Test).tuples[0]);
        blank.update(&inference(Vec::new()), (0, 0));
        assert!(blank.summary_lines("hand").is_empty());
    }
}
