//! PO-Overcooked: a cooperative game with one peer.
#![doc = include_str!("README.md")]

mod kitchen;
mod page;
mod peers;
mod planner;
mod recipes;
mod references;
#[cfg(test)]
mod tests;
mod view;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use kitchen::{CUTTING_BOARD, Cell, Cook, DELIVERY_TILE, Facing, Handled, Kitchen, N_OBJECTS, Object};
pub use peers::{CookPeer, CookSpec, Event, EventKind, HumanLikeNoise, NextAction};
pub use recipes::{GoalProgress, Ingredient, Recipe};
pub use view::OBSERVATION_SIZE;

use crate::config::{ConfigError, Preset, PresetConfig};
use crate::ego::Reference;
use crate::game::{
    BehaviourSummary, DisplayNames, Ending, Game, GameSpec, JointAction, Metric, MoveOutcome, Page, Seat,
    SeatSet, Viewpoint,
};
use crate::peer::PeerTuple;
use crate::pool::PeerPool;
use crate::seed::Stream;

/// The keys of PO-Overcooked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OvercookedConfig {
    /// Episodes per encounter, N_eps.
    pub episodes_per_encounter: usize,
    /// Steps after which an episode ends without success.
    pub horizon_steps: usize,
    /// The cost of every step.
    pub step_cost: f64,
    /// The set from which a peer samples its random actions.
    pub peer_random_action: RandomAction,
    /// The treatment of an event that the horizon interrupted.
    pub peer_event_across_episodes: AcrossEpisodes,
    /// The origin of the peers.
    pub pool: PoolKind,
    /// The number of dishes among the training peers: 9, 6, 4 or 2.
    pub pool_recipes: usize,
    /// The set of dishes.
    pub recipes: RecipeBook,
    /// The kitchen.
    pub grid: Grid,
}

/// The set from which a peer samples its random actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomAction {
    /// All six actions, as in the paper.
    Any,
    /// Stay and the four moves, as in the authors' code.
    Moves,
}

/// The treatment of an event that the horizon interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AcrossEpisodes {
    /// The peer forgets it: every episode starts without an event.
    Cleared,
    /// The peer continues it in the next episode, as in the authors' code. This may spoil that episode.
    Kept,
}

/// The origin of the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PoolKind {
    /// The authors' pools: every dish twice in training, once in test.
    Official,
    /// Peers sampled from the whole parameter space with a fixed seed.
    Uniform,
    /// The authors' training peers, and test peers with human-like errors, pauses and route changes.
    HumanLike,
}

/// The set of dishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecipeBook {
    /// Every left ingredient with every right one.
    Cross,
}

/// The kitchen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grid {
    /// Two sides, divided by a full column of counters.
    FullDivider,
}

impl PresetConfig for OvercookedConfig {
    fn preset(preset: Preset) -> OvercookedConfig {
        let (peer_random_action, peer_event_across_episodes) = match preset {
            Preset::Paper | Preset::Best => (RandomAction::Any, AcrossEpisodes::Cleared),
            Preset::Reference => (RandomAction::Moves, AcrossEpisodes::Kept),
        };
        OvercookedConfig {
            episodes_per_encounter: 5,
            horizon_steps: 40,
            step_cost: 0.2,
            peer_random_action,
            peer_event_across_episodes,
            pool: PoolKind::Official,
            pool_recipes: 9,
            recipes: RecipeBook::Cross,
            grid: Grid::FullDivider,
        }
    }
}

impl OvercookedConfig {
    fn check(&self) -> Result<(), ConfigError> {
        crate::config::check_episodes(self.episodes_per_encounter)?;
        if !(1..=10_000).contains(&self.horizon_steps) {
            return Err(ConfigError::bad_value(
                "horizon_steps",
                &self.horizon_steps,
                "a number from 1 to 10000",
            ));
        }
        if !(0.0..=10.0).contains(&self.step_cost) {
            return Err(ConfigError::bad_value("step_cost", &self.step_cost, "a number from 0 to 10"));
        }
        if !peers::POOL_RECIPES.contains(&self.pool_recipes) {
            return Err(ConfigError::bad_value("pool_recipes", &self.pool_recipes, "9, 6, 4 or 2"));
        }
        if self.pool == PoolKind::Uniform && self.pool_recipes != 9 {
            let expected = "9 with the uniform pool; fewer dishes are for the official one";
            return Err(ConfigError::bad_value("pool_recipes", &self.pool_recipes, expected));
        }
        Ok(())
    }
}

/// The game.
#[derive(Clone, Debug)]
pub struct Overcooked {
    config: OvercookedConfig,
    spec: GameSpec,
}

impl Game for Overcooked {
    const ID: &'static str = "overcooked";
    const README: &'static str = include_str!("README.md");
    const TRAINING: &'static str = include_str!("training.toml");
    const LEGEND: &'static [&'static str] = &view::LEGEND;
    const PAGE: Option<Page> =
        Some(Page { script: include_str!("page.js"), style: include_str!("page.css") });

    type Config = OvercookedConfig;
    type State = Kitchen;
    type Peer = CookPeer;

    fn new(config: OvercookedConfig) -> Result<Overcooked, ConfigError> {
        config.check()?;
        let spec = GameSpec {
            id: Self::ID,
            title: "PO-Overcooked",
            revision: 1,
            observation_size: OBSERVATION_SIZE,
            action_names: &["stay", "left", "right", "down", "up", "interact"],
            peer_roles: vec!["cook"],
            episodes_per_encounter: config.episodes_per_encounter,
            horizon_steps: config.horizon_steps,
            metric: Metric::Success,
            keypoint: "the ego is in the lower room, where it sees which ingredient the peer moves",
            nouns: DisplayNames {
                episode: "episode",
                episodes: "episodes",
                score: "success",
                keypoint: "lower room",
            },
        };
        Ok(Overcooked { config, spec })
    }

    fn config(&self) -> &OvercookedConfig {
        &self.config
    }

    fn spec(&self) -> &GameSpec {
        &self.spec
    }

    #[inline]
    fn initial_state(&self, rng: &mut Stream) -> Kitchen {
        Kitchen::initial(rng)
    }

    #[inline]
    fn acting_seats(&self, kitchen: &Kitchen) -> SeatSet {
        if usize::from(kitchen.n_steps) >= self.config.horizon_steps || kitchen.is_delivered() {
            SeatSet::NONE
        } else {
            SeatSet::first(2)
        }
    }

    #[inline]
    fn apply(&self, kitchen: &mut Kitchen, actions: &JointAction) -> MoveOutcome {
        let reward = kitchen.step([actions[0], actions[1]]);
        // A delivery in the last step is a success, not a timeout.
        let ending = if kitchen.is_delivered() {
            Some(Ending::Succeeded)
        } else if usize::from(kitchen.n_steps) >= self.config.horizon_steps {
            Some(Ending::TimedOut)
        } else {
            None
        };
        MoveOutcome {
            task_reward: reward - self.config.step_cost,
            ending,
            keypoint_visited: !kitchen.cooks[Seat::EGO.0].cell.is_upper(),
        }
    }

    #[inline]
    fn observe(&self, kitchen: &Kitchen, seat: Seat, observation: &mut [f32]) {
        view::observe(kitchen, seat, view::Sight::OwnRoom, observation);
    }

    fn observe_everything(&self, kitchen: &Kitchen, seat: Seat, observation: &mut [f32]) {
        view::observe(kitchen, seat, view::Sight::Everywhere, observation);
    }

    fn check_state(&self, kitchen: &Kitchen) -> Result<(), ConfigError> {
        match kitchen.contradiction(self.config.horizon_steps) {
            None => Ok(()),
            Some(reason) => Err(ConfigError::ImpossibleState { game: Self::ID, reason }),
        }
    }

    fn render(&self, kitchen: &Kitchen) -> String {
        view::render(kitchen)
    }

    fn constants(&self) -> Value {
        page::constants(self)
    }

    fn view(&self, kitchen: &Kitchen, from: Viewpoint) -> Value {
        page::view(kitchen, from)
    }

    fn behaviour_summary(&self, seat: Seat, moves: &[(Kitchen, JointAction)]) -> BehaviourSummary {
        page::behaviour_summary(seat, moves)
    }

    fn pool(&self) -> PeerPool<CookSpec> {
        peers::pool(&self.config)
    }

    fn sample_tuple(&self, rng: &mut Stream) -> PeerTuple<CookSpec> {
        PeerTuple { specs: vec![peers::sampled_spec(rng)], classes: vec![0] }
    }

    fn references(&self) -> Vec<(&'static str, Reference<Overcooked>)> {
        references::references()
    }
}
