//! The peers of Predator-Prey-W: predators that chase one prey, and prey that walk a fixed path.
//!
//! Their tuples are in `pools`.

pub(crate) mod predator;
pub(crate) mod prey;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::PredatorPrey;
use super::bodies::{MAX_PREY, World};
use crate::game::{Action, Seat};
use crate::peer::{Peer, PeerSpec};
use crate::seed::Stream;

/// The behaviour of one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PredatorPreySpec {
    /// A predator that always chases the same prey.
    Predator {
        /// The index of that prey among the prey.
        prefers: usize,
    },
    /// A prey that walks back and forth on one of the eight paths, on a practice line or on a validation path.
    Prey {
        /// The path, 0 to 7; practice lines have numbers from 8, validation paths from 40.
        path: usize,
    },
}

impl PeerSpec for PredatorPreySpec {
    fn describe(&self) -> String {
        match self {
            PredatorPreySpec::Predator { prefers } => {
                format!("predator after prey {}", prey::letter(*prefers))
            }
            PredatorPreySpec::Prey { path } if *path < prey::N_PATHS => {
                format!("prey on path {path} ({})", prey::path_name(*path))
            }
            PredatorPreySpec::Prey { path } => {
                let is_line = !prey::VALIDATION_PATHS.contains(path);
                let (noun, place) = if is_line { ("line", "") } else { ("path", "beside ") };
                format!("prey on {noun} {path} ({place}{})", prey::path_name(prey::official_path(*path)))
            }
        }
    }

    /// A practice line is of the same kind as the side along which it runs, a validation path as the path around a corner
    /// from which it was moved.
    fn kind(&self) -> String {
        match self {
            PredatorPreySpec::Predator { .. } => self.describe(),
            PredatorPreySpec::Prey { path } => {
                PredatorPreySpec::Prey { path: prey::official_path(*path) }.describe()
            }
        }
    }

    fn kind_data(&self) -> Value {
        match self {
            PredatorPreySpec::Predator { prefers } => json!({ "prefers": prefers }),
            PredatorPreySpec::Prey { path } => {
                let path = prey::official_path(*path);
                json!({ "path": path, "place": prey::path_name(path) })
            }
        }
    }

    /// For a predator, 1 for its prey and 0 for the others; for a prey, the middle of its path.
    fn behaviour_vector(&self) -> Vec<f32> {
        match self {
            PredatorPreySpec::Predator { prefers } => {
                (0..MAX_PREY).map(|prey| f32::from(u8::from(prey == *prefers))).collect()
            }
            PredatorPreySpec::Prey { path } => {
                prey::middle(*path).map(|place| (place as f32 + 1.0) / 2.0).to_vec()
            }
        }
    }
}

/// A peer in an encounter. It sees the whole state.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredatorPreyPeer {
    spec: PredatorPreySpec,
    /// The next waypoint of a prey; 0 for a predator.
    waypoint: usize,
}

impl PredatorPreyPeer {
    /// The next waypoint of a prey, 0 to 3.
    pub fn waypoint(&self) -> usize {
        self.waypoint
    }

    /// This peer with another next waypoint.
    pub fn heading_for(mut self, waypoint: usize) -> PredatorPreyPeer {
        assert!(waypoint < prey::N_WAYPOINTS, "a path has {} waypoints, found {waypoint}", prey::N_WAYPOINTS);
        self.waypoint = waypoint;
        self
    }
}

impl Peer<PredatorPrey> for PredatorPreyPeer {
    type Spec = PredatorPreySpec;

    fn new(game: &PredatorPrey, spec: &PredatorPreySpec) -> PredatorPreyPeer {
        match *spec {
            PredatorPreySpec::Predator { prefers } => {
                let n_prey = game.agent_counts().n_prey;
                assert!(prefers < n_prey, "a predator prefers prey {prefers} of {n_prey}");
            }
            PredatorPreySpec::Prey { path } => {
                let n_paths = prey::VALIDATION_PATHS.end;
                assert!(path < n_paths, "there are {n_paths} paths, found {path}");
            }
        }
        PredatorPreyPeer { spec: *spec, waypoint: 0 }
    }

    fn spec(&self) -> &PredatorPreySpec {
        &self.spec
    }

    fn begin_episode(&mut self, _game: &PredatorPrey) {
        self.waypoint = 0;
    }

    #[inline]
    fn act(&mut self, game: &PredatorPrey, world: &World, seat: Seat, _rng: &mut Stream) -> Action {
        let position = world.agents[seat.0].position;
        match self.spec {
            PredatorPreySpec::Predator { prefers } => {
                predator::act(position, world.agents[game.agent_counts().n_predators + prefers].position)
            }
            PredatorPreySpec::Prey { path } => prey::act(position, path, &mut self.waypoint),
        }
    }
}
