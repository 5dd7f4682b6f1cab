//! What differs between methods; the rest is Algorithm 1.

mod pace;
#[cfg(test)]
mod pace_tests;

pub(crate) use pace::{ActRows, ChunkRows, LossWeights, PaceNet, UpdateJob, UpdateShard, UpdateSums};

/// A way to train, as a change of keys over PACE.
#[derive(Clone, Copy, Debug)]
pub struct Method {
    /// The id on the command line and in records.
    pub id: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    adjust: fn(&mut crate::config::TrainConfig),
}

impl Method {
    /// Sets the keys that make the method what it is.
    pub fn adjust(&self, config: &mut crate::config::TrainConfig) {
        (self.adjust)(config);
    }
}

/// Every method that can be trained, in the column order of every table.
pub const METHODS: &[Method] = &[
    Method {
        id: "pace",
        summary: "context encoder, peer identification, exploration reward",
        adjust: |_| {},
    },
    Method {
        id: "pace-reward",
        summary: "PACE without the exploration reward",
        adjust: |config| config.exploration_weight = 0.0,
    },
    Method {
        id: "pace-reward-aux",
        summary: "PACE without exploration reward, identification and warm-up",
        adjust: |config| {
            config.exploration_weight = 0.0;
            config.auxiliary_weight = 0.0;
            config.warm_up_steps = 0;
        },
    },
];

/// The method with this id.
pub fn find_method(id: &str) -> Result<&'static Method, pace_games::GameError> {
    METHODS
        .iter()
        .find(|method| method.id == id)
        .ok_or_else(|| pace_games::GameError::unknown("method", id, METHODS.iter().map(|method| method.id)))
}
