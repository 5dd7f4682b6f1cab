//! Peer pools: disjoint sets of training tuples and test tuples.
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
    /// The test tuples, which no training uses.
    Test,
    /// This many tuples, sampled from the whole parameter space of peers.
    Uniform(usize),
}

impl FromStr for Split {
    type Err = ConfigError;

    /// Reads `train`, `test` or `uniform:N`.
    fn from_str(text: &str) -> Result<Split, ConfigError> {
        match text {
            "train" => Ok(Split::Train),
            "test" => Ok(Split::Test),
            _ => match text.strip_prefix("uniform:").map(str::parse) {
                Some(Ok(n)) if (1..=1_000_000).contains(&n) => Ok(Split::Uniform(n)),
                Some(_) => Err(ConfigError::BadPoolSize { found: text.to_owned() }),
                None => Err(ConfigError::unknown("pool", text, ["train", "test", "uniform:N"])),
            },
        }
    }
}

impl Display for Split {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Split::Train => formatter.write_str("train"),
            Split::Test => formatter.write_str("test"),
            Split::Uniform(n) => write!(formatter, "uniform:{n}"),
        }
    }
}

/// Training and test tuples of one game. [`PeerPool::new`] is the only constructor: no test tuple is a training tuple.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerPool<S> {
    train: Vec<PeerTuple<S>>,
    test: Vec<PeerTuple<S>>,
    n_classes: Vec<usize>,
}

impl<S: PeerSpec> PeerPool<S> {
    /// Checks that the tuples fit together: equally many slots, classes in range, no test tuple among the training tuples.
    pub fn new(train: Vec<PeerTuple<S>>, test: Vec<PeerTuple<S>>) -> Result<PeerPool<S>, ConfigError> {
        let n_slots = train.first().map_or(0, |tuple| tuple.specs.len());
        if n_slots == 0 || test.is_empty() {
            return Err(ConfigError::EmptyPool);
        }
        for tuple in train.iter().chain(&test) {
            if tuple.specs.len() != n_slots || tuple.classes.len() != n_slots {
                return Err(ConfigError::RaggedPool { n_slots, found: tuple.specs.len() });
            }
        }
        for (index, tuple) in test.iter().enumerate() {
            if train.iter().any(|other| other.specs == tuple.specs) {
                return Err(ConfigError::TestPeerInTraining { index, peer: tuple.describe() });
            }
        }
        let n_classes = (0..n_slots)
            .map(|slot| train.iter().map(|tuple| tuple.classes[slot] + 1).max().expect("not empty"))
            .collect();
        Ok(PeerPool { train, test, n_classes })
    }

    /// The pool of a game with one peer. Every peer is a class of its own.
    pub fn of_single_peers(train: &[S], test: &[S]) -> Result<PeerPool<S>, ConfigError> {
        let tuples = |specs: &[S]| {
            let specs = specs.iter().cloned().enumerate();
            specs.map(|(class, spec)| PeerTuple { specs: vec![spec], classes: vec![class] }).collect()
        };
        PeerPool::new(tuples(train), tuples(test))
    }

    /// The training tuples.
    pub fn train(&self) -> &[PeerTuple<S>] {
        &self.train
    }

    /// The test tuples.
    pub fn test(&self) -> &[PeerTuple<S>] {
        &self.test
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

    /// A hash of every parameter of every peer, in order. Equal hashes mean equal pools.
    pub fn content_hash(&self) -> String {
        let text = serde_json::to_string(self).expect("specs are plain data");
        blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
    }
}
