//! Who meets the ego: the training tuples and the test tuples, kept apart.
//!
//! Which tuples these are is each game's business (`Game::pool`).

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::config::ConfigError;
use crate::peer::{PeerSpec, PeerTuple};

/// The part of a pool, or the whole family it was drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    /// The tuples the ego is trained with.
    Train,
    /// The tuples it meets for the first time when it is tested.
    Test,
    /// This many fresh draws from the whole family of peers.
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

/// Training and test tuples of one game. Made only by [`PeerPool::new`], so a value of this type is the proof that
/// no test tuple is in the training part.
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

    /// The tuples the ego is trained with.
    pub fn train(&self) -> &[PeerTuple<S>] {
        &self.train
    }

    /// The tuples the ego is tested with.
    pub fn test(&self) -> &[PeerTuple<S>] {
        &self.test
    }

    /// By slot and class, the traits of the training peers of that class.
    pub fn class_traits(&self) -> Vec<Vec<Vec<f32>>> {
        let peer = |slot: usize, class: usize| {
            let tuple = self.train.iter().find(|tuple| tuple.classes[slot] == class);
            tuple.map_or_else(Vec::new, |tuple| tuple.specs[slot].behaviour_vector())
        };
        let classes = |(slot, n): (usize, &usize)| (0..*n).map(|class| peer(slot, class)).collect();
        self.n_classes.iter().enumerate().map(classes).collect()
    }

    /// How many classes the identifier tells apart in each slot.
    pub fn n_classes(&self) -> &[usize] {
        &self.n_classes
    }

    /// A hash of every parameter of every peer, in order: two pools with the same hash are the same pool.
    pub fn content_hash(&self) -> String {
        let text = serde_json::to_string(self).expect("specs are plain data");
        blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
    }
}
