//! Peer pools: disjoint sets of training, validation and test tuples.
//!
//! Each game defines its own pool in `Game::pool`.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::peer::{PeerSpec, PeerTuple};

/// A part of a pool, or a sample of the whole parameter space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The training tuples.
    Train,
    /// The validation tuples, with which settings and checkpoints are chosen.
    Validation,
    /// The test tuples, which are used neither for training nor for choices.
    Test,
    /// This many tuples, sampled from the whole parameter space of peers.
    Uniform(usize),
}

impl FromStr for Split {
    type Err = ConfigError;

    /// Reads `train`, `validation`, `test` or `uniform:N`.
    fn from_str(text: &str) -> Result<Split, ConfigError> {
        match text {
            "train" => Ok(Split::Train),
            "validation" => Ok(Split::Validation),
            "test" => Ok(Split::Test),
            _ => match text.strip_prefix("uniform:").map(str::parse) {
                Some(Ok(n)) if (1..=1_000_000).contains(&n) => Ok(Split::Uniform(n)),
                Some(_) => Err(ConfigError::BadPoolSize { found: text.to_owned() }),
                None => Err(ConfigError::unknown("pool", text, ["train", "validation", "test", "uniform:N"])),
            },
        }
    }
}

impl Display for Split {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Split::Train => formatter.write_str("train"),
            Split::Validation => formatter.write_str("validation"),
            Split::Test => formatter.write_str("test"),
            Split::Uniform(n) => write!(formatter, "uniform:{n}"),
        }
    }
}

/// Training, validation and test tuples of one game. [`PeerPool::new`] is the only constructor: no tuple is in two of these lists.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerPool<S> {
    train: Vec<PeerTuple<S>>,
    test: Vec<PeerTuple<S>>,
    n_classes: Vec<usize>,
    #[serde(skip)]
    validation: Vec<PeerTuple<S>>,
}

impl<S: PeerSpec> PeerPool<S> {
    /// Checks that the tuples fit together: equally many slots, classes in range, no tuple in two lists. `validation` may be
    /// empty.
    pub fn new(
        train: Vec<PeerTuple<S>>,
        validation: Vec<PeerTuple<S>>,
        test: Vec<PeerTuple<S>>,
    ) -> Result<PeerPool<S>, ConfigError> {
        let n_slots = train.first().map_or(0, |tuple| tuple.specs.len());
        if n_slots == 0 || test.is_empty() {
            return Err(ConfigError::EmptyPool);
        }
        for tuple in train.iter().chain(&validation).chain(&test) {
            if tuple.specs.len() != n_slots || tuple.classes.len() != n_slots {
                return Err(ConfigError::RaggedPool { n_slots, found: tuple.specs.len() });
            }
        }
        refuse_common("test", &test, "training", &train)?;
        refuse_common("validation", &validation, "training", &train)?;
        refuse_common("validation", &validation, "test", &test)?;
        let n_classes = (0..n_slots)
            .map(|slot| train.iter().map(|tuple| tuple.classes[slot] + 1).max().expect("not empty"))
            .collect();
        Ok(PeerPool { train, test, n_classes, validation })
    }

    /// The pool of a game with one peer. Every peer is a class of its own. `validation` may be empty.
    pub fn of_single_peers(train: &[S], validation: &[S], test: &[S]) -> Result<PeerPool<S>, ConfigError> {
        let tuples = |specs: &[S]| {
            let specs = specs.iter().cloned().enumerate();
            specs.map(|(class, spec)| PeerTuple { specs: vec![spec], classes: vec![class] }).collect()
        };
        PeerPool::new(tuples(train), tuples(validation), tuples(test))
    }

    /// The training tuples.
    pub fn train(&self) -> &[PeerTuple<S>] {
        &self.train
    }

    /// The validation tuples; empty in a game that has none.
    pub fn validation(&self) -> &[PeerTuple<S>] {
        &self.validation
    }

    /// The test tuples.
    pub fn test(&self) -> &[PeerTuple<S>] {
        &self.test
    }

    /// All tuples: training, validation, test.
    pub fn all(&self) -> impl Iterator<Item = &PeerTuple<S>> {
        self.train.iter().chain(&self.validation).chain(&self.test)
    }

    /// The behaviour vector of each class of the training peers, by slot and class.
    pub(crate) fn class_traits(&self) -> Vec<Vec<Vec<f32>>> {
        let peer = |slot: usize, class: usize| {
            let tuple = self.train.iter().find(|tuple| tuple.classes[slot] == class);
            tuple.map_or_else(Vec::new, |tuple| tuple.specs[slot].behaviour_vector())
        };
        let classes = |(slot, n): (usize, &usize)| (0..*n).map(|class| peer(slot, class)).collect();
        self.n_classes.iter().enumerate().map(classes).collect()
    }

    /// The number of classes of the training peers in each slot.
    pub fn n_classes(&self) -> &[usize] {
        &self.n_classes
    }

    /// A hash of every parameter of every training and test peer, in order. Equal hashes mean equal training and test pools.
    pub fn content_hash(&self) -> String {
        let text = serde_json::to_string(self).expect("specs are plain data");
        blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
    }
}

/// Refuses a tuple that is also in another list.
fn refuse_common<S: PeerSpec>(
    pool: &'static str,
    tuples: &[PeerTuple<S>],
    other_pool: &'static str,
    others: &[PeerTuple<S>],
) -> Result<(), ConfigError> {
    let is_common = |tuple: &PeerTuple<S>| others.iter().any(|other| other.specs == tuple.specs);
    match tuples.iter().position(is_common) {
        Some(index) => {
            Err(ConfigError::PeerInTwoPools { pool, index, peer: tuples[index].describe(), other_pool })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::PeerPool;
    use crate::kuhn_poker::KuhnSpec;

    fn pool(train: &[f64], validation: &[f64], test: &[f64]) -> Result<PeerPool<KuhnSpec>, String> {
        let specs =
            |values: &[f64]| values.iter().map(|xi| KuhnSpec { xi: *xi, eta: 0.5 }).collect::<Vec<_>>();
        PeerPool::of_single_peers(&specs(train), &specs(validation), &specs(test))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_tuple_in_two_lists_is_refused() {
        let refused = |train: &[f64], validation: &[f64], test: &[f64], words: &str| {
            let error = pool(train, validation, test).expect_err("refused");
            assert!(error.contains(words), "{error}");
        };
        refused(&[0.1, 0.2], &[], &[0.3, 0.2], "test tuple 1 (");
        refused(&[0.1, 0.2], &[0.1], &[0.3], "validation tuple 0 (");
        refused(&[0.1, 0.2], &[0.1], &[0.3], "is also in the training pool");
        refused(&[0.1, 0.2], &[0.4, 0.3], &[0.3], "validation tuple 1 (");
        refused(&[0.1, 0.2], &[0.4, 0.3], &[0.3], "is also in the test pool");
        pool(&[0.1], &[0.2], &[0.3]).expect("disjoint");
    }

    #[test]
    fn validation_peers_are_optional_and_not_in_the_hash() {
        let without = pool(&[0.1], &[], &[0.3]).expect("validation peers are optional");
        let with = pool(&[0.1], &[0.2], &[0.3]).expect("disjoint");
        assert_eq!(without.content_hash(), with.content_hash());
        assert_eq!((without.validation().len(), with.validation().len()), (0, 1));
    }
}
