//! Rollout: encounters with every training tuple, written to a batch.
//!
//! They are whole, unless the keys ask for a fixed number of steps (`rollout_steps`). Then a rollout ends within encounters, which
//! the next rollout continues: it plays their actions so far again, in the same game with the same seed, and so computes their
//! contexts with its weights. Between two rollouts an encounter is therefore a list of actions ([`CarriedEncounter`]).

use std::ops::Range;

use pace_games::{Action, AnyGame, Boundary, ConfigError, Seed, Split};
use serde::{Deserialize, Serialize};

use crate::batch::{DecisionRow, LaneWriter};
use crate::config::{ExplorationMode, TrainConfig};
use crate::network::{Actor, NetworkDims};
use crate::policy_runner::PolicyRunner;
use crate::train::IterationContext;

/// The lanes of a rollout that one thread plays.
pub(crate) struct RolloutShard<A: Actor> {
    runner: PolicyRunner<A>,
    /// The indices of this shard's lanes among all lanes, whose number is `n_all`.
    lanes: Range<usize>,
    n_all: usize,
    /// The training tuple of each of them.
    tuples: Vec<usize>,
    /// The highest posterior of each peer's class so far, by lane and slot.
    highest: Vec<f32>,
    /// The current encounter of every lane, in rollouts of a fixed number of steps; between rollouts those that go on.
    current: Vec<Option<CarriedEncounter>>,
    /// The error that ended the last play.
    pub(crate) failure: Option<ConfigError>,
}

/// An encounter that continues in the next rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CarriedEncounter {
    /// The iteration in which it began, and its number there, which determine its seed.
    iteration: u64,
    number: u64,
    /// The ego's actions so far, in the game's numbering.
    actions: Vec<Action>,
    /// The highest posterior of each peer's class so far, as bits.
    highest: Vec<u32>,
    /// The part of the context that is not computed again ([`Actor::carry`]), as bits.
    memory: Vec<u32>,
}

fn to_bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn from_bits(bits: &[u32]) -> Vec<f32> {
    bits.iter().map(|bits| f32::from_bits(*bits)).collect()
}

impl CarriedEncounter {
    /// Whether it can be one of a game and an actor with these sizes.
    pub(crate) fn fits(&self, max_decisions: usize, n_actions: usize, n_slots: usize, memory: usize) -> bool {
        (1..max_decisions).contains(&self.actions.len())
            && self.actions.iter().all(|action| usize::from(*action) < n_actions)
            && self.highest.len() == n_slots
            && self.memory.len() == memory
    }
}

impl<A: Actor> RolloutShard<A> {
    /// Divides the lanes of a rollout, with these tuples in turn, into shards of nearly equal size.
    pub(crate) fn split(
        game: &dyn AnyGame,
        actor: &A,
        config: &TrainConfig,
        training_tuples: &[usize],
    ) -> Vec<RolloutShard<A>> {
        cut_encounters(training_tuples, config.encounters_per_tuple, config.shards)
            .map(|(lanes, tuples)| RolloutShard {
                runner: new_runner(game, actor, tuples.len()),
                highest: vec![0.0; tuples.len() * actor.spec().slots.len()],
                current: vec![None; tuples.len()],
                failure: None,
                n_all: training_tuples.len() * config.encounters_per_tuple,
                tuples,
                lanes,
            })
            .collect()
    }

    pub(crate) fn n_lanes(&self) -> usize {
        self.tuples.len()
    }

    /// The encounters that go on in the next rollout, by lane.
    pub(crate) fn carried(&self) -> &[Option<CarriedEncounter>] {
        &self.current
    }

    pub(crate) fn set_carried(&mut self, carried: &[Option<CarriedEncounter>]) {
        self.current = carried.to_vec();
    }

    /// Plays the rollout of an iteration and writes each lane with its own writer. Returns an error if the actor's output is not a
    /// distribution over actions.
    pub(crate) fn play(
        &mut self,
        actor: &A,
        classes: &[Vec<usize>],
        at: &IterationContext<'_>,
        writers: &mut [LaneWriter<'_>],
    ) -> Result<(), ConfigError> {
        let (n_steps, n_slots) = (at.config.rollout_steps, actor.spec().slots.len());
        if n_steps > 0 {
            // Encounters of the last rollout are still running in the lanes.
            self.runner = new_runner(at.game, actor, self.n_lanes());
        }
        let none = vec![None; self.n_lanes()];
        let carried = std::mem::replace(&mut self.current, none);
        self.repeat(actor, classes, at, &carried, writers);
        for (lane, carried) in carried.into_iter().enumerate() {
            let number = self.lanes.start + lane;
            let Some(carried) = carried else {
                self.open(actor, lane, at, (at.iteration, number as u64), writers);
                continue;
            };
            writers[lane].mark_as_earlier();
            self.runner.resume(actor, lane, &from_bits(&carried.memory));
            let seed = Seed::new(at.seed).child("rollout", &[at.iteration]);
            self.runner.reseed(lane, seed.child("carried", &[number as u64]));
            self.highest[lane * n_slots..][..n_slots].copy_from_slice(&from_bits(&carried.highest));
            self.current[lane] = Some(carried);
        }
        let mut n_opened = vec![1; self.n_lanes()];
        let mut step = 0;
        while (n_steps == 0 || step < n_steps) && self.runner.select_actions(actor)? {
            for lane in self.runner.active() {
                actor.save_state(self.runner.state(), *lane, &mut writers[*lane].saved_states);
            }
            self.step(actor, classes, at.config, writers);
            step += 1;
            if n_steps == 0 {
                continue;
            }
            for lane in self.runner.active().to_vec() {
                let encounter = self.current[lane].as_mut().expect("the lane has an encounter");
                encounter.actions.push(self.runner.game_actions()[lane]);
                if self.runner.steps().boundaries[lane] != Boundary::EncounterEnd {
                    continue;
                }
                self.current[lane] = None;
                if step < n_steps {
                    let number = self.lanes.start + lane + n_opened[lane] * self.n_all;
                    n_opened[lane] += 1;
                    self.open(actor, lane, at, (at.iteration, number as u64), writers);
                }
            }
        }
        if n_steps > 0 && self.runner.forward_policy(actor) {
            self.cut(actor, writers);
        }
        Ok(())
    }

    /// Starts an encounter in a lane: the one with this number of this iteration.
    fn open(
        &mut self,
        actor: &A,
        lane: usize,
        at: &IterationContext<'_>,
        (iteration, number): (u64, u64),
        writers: &mut [LaneWriter<'_>],
    ) {
        let (tuple, n_slots) = (self.tuples[lane], actor.spec().slots.len());
        let seed = Seed::new(at.seed).child("rollout", &[iteration]).child("encounter", &[number]);
        self.runner.begin(actor, lane, tuple, actor.spec().training_episodes, seed);
        self.runner.reveal_tuple(actor, lane, tuple, seed);
        writers[lane].open_encounter(tuple, self.runner.side(lane));
        self.highest[lane * n_slots..][..n_slots].fill(0.0);
        if at.config.rollout_steps > 0 {
            let (actions, highest, memory) = (Vec::new(), Vec::new(), Vec::new());
            self.current[lane] = Some(CarriedEncounter { iteration, number, actions, highest, memory });
        }
    }

    /// Plays the actions so far of carried encounters again. The encounters start one after the other, so that all of them arrive
    /// at their next decision together.
    fn repeat(
        &mut self,
        actor: &A,
        classes: &[Vec<usize>],
        at: &IterationContext<'_>,
        carried: &[Option<CarriedEncounter>],
        writers: &mut [LaneWriter<'_>],
    ) {
        let actions: Vec<&[Action]> =
            carried.iter().map(|one| one.as_ref().map_or(&[][..], |one| &one.actions)).collect();
        let longest = actions.iter().map(|actions| actions.len()).max().unwrap_or(0);
        for step in 0..longest {
            for (lane, carried) in carried.iter().enumerate() {
                if let Some(CarriedEncounter { iteration, number, actions, .. }) = carried
                    && actions.len() + step == longest
                {
                    self.open(actor, lane, at, (*iteration, *number), writers);
                }
            }
            let action = |lane: usize| actions[lane][step + actions[lane].len() - longest];
            if self.runner.repeat_actions(actor, action) {
                self.step(actor, classes, at.config, writers);
            }
        }
    }

    /// Steps the lanes with the chosen actions and writes their rows.
    fn step(
        &mut self,
        actor: &A,
        classes: &[Vec<usize>],
        config: &TrainConfig,
        writers: &mut [LaneWriter<'_>],
    ) {
        let (spec, runner) = (actor.spec(), &mut self.runner);
        let n_slots = spec.slots.len();
        let NetworkDims { observation: size, n_actions, n_peers } = spec.sizes;
        runner.step(actor);
        let (steps, outputs) = (runner.steps(), runner.outputs());
        let peer_values = runner.peer_observations().len() / runner.active().len();
        let mut terminal_observations = runner.terminal_observations().chunks_exact(size);
        for (row, &lane) in runner.active().iter().enumerate() {
            // Eq. 6, from the latent the action was chosen with: the identifier's probability of the true peers.
            let mut confidence = 0.0;
            for (slot, class) in classes[self.tuples[lane]].iter().enumerate().take(n_slots) {
                let class = spec.class_from(runner.side(lane), slot, *class);
                let now = actor.confidence(outputs, row, slot, class);
                let highest = &mut self.highest[lane * n_slots + slot];
                *highest = highest.max(now);
                confidence += match config.exploration_mode {
                    ExplorationMode::Instant => now,
                    ExplorationMode::RunningMax => *highest,
                };
            }
            let action = runner.ego_actions()[row];
            let log_probabilities = &runner.log_probabilities()[row * n_actions..][..n_actions];
            writers[lane].add(&DecisionRow {
                observation: &runner.observations()[row * size..][..size],
                action,
                peer_actions: &runner.peer_actions()[row * n_peers..][..n_peers],
                peer_observations: &runner.peer_observations()[row * peer_values..][..peer_values],
                log_probability: log_probabilities[usize::from(action)],
                value: outputs.values[row],
                task_reward: steps.task_rewards[lane],
                exploration_reward: confidence / n_slots.max(1) as f32,
                keypoint_visited: steps.keypoints_visited[lane],
            });
            if steps.boundaries[lane] != Boundary::WithinEpisode {
                let terminal = terminal_observations.next().expect("one for every episode that ended");
                let ending = steps.endings[lane].expect("an episode that ended has an ending");
                writers[lane].end_episode(terminal, ending);
            }
        }
    }

    /// Ends the rollout in the lanes whose encounters go on, after a forward pass of their next decisions.
    fn cut(&mut self, actor: &A, writers: &mut [LaneWriter<'_>]) {
        let (runner, n_slots) = (&self.runner, actor.spec().slots.len());
        let observations = runner.observations().chunks_exact(actor.spec().sizes.observation);
        for ((lane, observation), value) in
            runner.active().iter().zip(observations).zip(&runner.outputs().values)
        {
            writers[*lane].cut(observation, *value);
            let mut memory = Vec::new();
            actor.carry(runner.state(), *lane, &mut memory);
            let encounter = self.current[*lane].as_mut().expect("a lane that continues has an encounter");
            encounter.memory = to_bits(&memory);
            encounter.highest = to_bits(&self.highest[lane * n_slots..][..n_slots]);
        }
    }
}

fn new_runner<A: Actor>(game: &dyn AnyGame, actor: &A, n_lanes: usize) -> PolicyRunner<A> {
    PolicyRunner::new(game, Split::Train, n_lanes, actor, None, actor.spec().rollout_sight)
}

/// Divides encounters, with these tuples in turn, into at most `n_shards` shards of nearly equal size. Returns the indices of
/// each shard's encounters, and their tuples.
pub(crate) fn cut_encounters(
    training_tuples: &[usize],
    encounters_per_tuple: usize,
    n_shards: usize,
) -> impl Iterator<Item = (Range<usize>, Vec<usize>)> {
    let n_encounters = training_tuples.len() * encounters_per_tuple;
    let n_shards = n_shards.min(n_encounters);
    (0..n_shards).map(move |shard| {
        let encounters = n_encounters * shard / n_shards..n_encounters * (shard + 1) / n_shards;
        let tuples = encounters.clone().map(|encounter| training_tuples[encounter % training_tuples.len()]);
        (encounters.clone(), tuples.collect())
    })
}

#[cfg(test)]
mod tests {
    use pace_games::{GAMES, PoolListing, Preset, Split};
    use serde_json::{Map, Value};

    use crate::batch::Batch;
    use crate::config::{ExplorationMode, TrainConfig};
    use crate::methods::PaceNet;
    use crate::network::{Actor, Network};
    use crate::ppo::Ppo;
    use crate::preset::paper_keys;
    use crate::train::IterationContext;

    /// Calls `check` with a batch of every game, from initial weights after `change`.
    fn for_every_game(
        exploration_mode: ExplorationMode,
        change: impl Fn(&mut PaceNet),
        check: impl Fn(&str, &PoolListing, &Batch),
    ) {
        for entry in GAMES {
            let keys = Map::from_iter([("episodes_per_encounter".to_owned(), Value::from(4))]);
            let game = entry.open(Preset::Paper, &keys).expect("every game has this key");
            let config =
                TrainConfig { encounters_per_tuple: 1, exploration_mode, ..paper_keys(entry.id, "pace") };
            let pool = game.pool(Split::Train);
            let mut ppo = Ppo::<PaceNet>::new(&*game, &pool, &config, 1, 1).expect("good keys");
            change(&mut ppo.learner.net);
            let at = IterationContext { game: &*game, config: &config, seed: 1, iteration: 0, steps: 0 };
            check(entry.id, &pool, &ppo.play(&at).expect("finite weights"));
        }
    }

    #[test]
    fn a_batch_has_the_chosen_tuples_and_no_others() {
        for entry in GAMES {
            let game = entry.open(Preset::Paper, &Map::new()).expect("a preset");
            let pool = game.pool(Split::Train);
            let met = |train_tuples: &[usize]| -> Vec<usize> {
                let preset = paper_keys(entry.id, "pace");
                let train_tuples = train_tuples.to_vec();
                let config = TrainConfig { encounters_per_tuple: 1, train_tuples, ..preset };
                let mut ppo = Ppo::<PaceNet>::new(&*game, &pool, &config, 1, 2).expect("good keys");
                let at = IterationContext { game: &*game, config: &config, seed: 1, iteration: 0, steps: 0 };
                let batch = ppo.play(&at).expect("finite weights");
                batch.tuples.into_iter().map(|tuple| tuple as usize).collect()
            };
            let n_tuples = pool.tuples.len();
            assert!(met(&[]).into_iter().eq(0..n_tuples), "{}", entry.id);
            assert_eq!(met(&[n_tuples - 1]), [n_tuples - 1]);
            assert_eq!(met(&[2, 0]), [2, 0]);
        }
    }

    #[test]
    fn encounters_start_in_the_canonical_frame() {
        let entry = GAMES.iter().find(|entry| entry.id == "predator-prey").expect("a game");
        let keys = Map::from_iter([("rotated_tuples".to_owned(), Value::from(true))]);
        let game = entry.open(Preset::Paper, &keys).expect("good keys");
        let pool = game.pool(Split::Train);
        let sides = pool.symmetries.clone().expect("a square");
        for canonical_frame in [true, false] {
            let config =
                TrainConfig { encounters_per_tuple: 1, canonical_frame, ..paper_keys(entry.id, "pace") };
            let mut ppo = Ppo::<PaceNet>::new(&*game, &pool, &config, 1, 1).expect("good keys");
            let at = IterationContext { game: &*game, config: &config, seed: 1, iteration: 0, steps: 0 };
            let batch = ppo.play(&at).expect("finite weights");
            let size = game.spec().observation_size;
            let first_sides: Vec<usize> = (0..batch.n_encounters())
                .map(|encounter| {
                    sides.canonical(&batch.observations[batch.decisions(encounter).start * size..][..size])
                })
                .collect();
            let contains = |sides: &[usize], side: usize| sides.contains(&side);
            let batch_sides: Vec<usize> = batch.sides.iter().map(|side| usize::from(*side)).collect();
            for side in 1..4 {
                assert_eq!(contains(&first_sides, side), !canonical_frame);
                assert_eq!(contains(&batch_sides, side), canonical_frame);
            }
        }
    }

    /// Makes the identifier's posteriors nearly 0 or 1.
    fn sharpen(net: &mut PaceNet) {
        fill_identifier(net, &mut |weight| weight * 1e4);
    }

    fn fill_identifier(net: &mut PaceNet, value: &mut dyn FnMut(f32) -> f32) {
        let tensors = net.spec().layout.tensors().to_vec();
        for tensor in tensors.iter().filter(|tensor| tensor.name.starts_with("identifier")) {
            net.weights_mut()[tensor.id.range()].iter_mut().for_each(|weight| *weight = value(*weight));
        }
    }

    #[test]
    fn the_exploration_reward_is_a_probability() {
        for mode in [ExplorationMode::Instant, ExplorationMode::RunningMax] {
            for_every_game(mode, sharpen, |id, _, batch| {
                let rewards = &batch.exploration_rewards;
                assert!(rewards.iter().all(|reward| (0.0..=1.0).contains(reward)), "{id}");
                // The posteriors are nearly 0 or 1, so both ends of the range occur.
                let is_near = |end: f32| rewards.iter().any(|reward| (reward - end).abs() < 0.01);
                assert!(is_near(0.0) && is_near(1.0), "{id}");
            });
        }
    }

    #[test]
    fn a_uniform_posterior_gives_one_over_the_number_of_classes() {
        let flatten = |net: &mut PaceNet| fill_identifier(net, &mut |_| 0.0);
        for_every_game(ExplorationMode::Instant, flatten, |id, pool, batch| {
            let n_classes = &pool.n_classes;
            let chance = n_classes.iter().map(|n| 1.0 / *n as f32).sum::<f32>() / n_classes.len() as f32;
            // The mean over the peers of 1 / number of classes.
            match id {
                "kuhn-poker" => assert_eq!(chance, 1.0 / 40.0),
                "overcooked" => assert_eq!(chance, 1.0 / 18.0),
                "predator-prey" => assert!((chance - 1.0 / 3.0).abs() < 1e-6),
                _ => {}
            }
            let rewards = &batch.exploration_rewards;
            assert!(rewards.iter().all(|reward| (reward - chance).abs() < 1e-6), "{id}: not {chance}");
        });
    }

    #[test]
    fn the_running_maximum_never_falls_within_an_encounter() {
        let has_fall = |batch: &Batch| {
            (0..batch.n_encounters()).any(|encounter| {
                let rewards = &batch.exploration_rewards[batch.decisions(encounter)];
                rewards.windows(2).any(|pair| pair[1] < pair[0])
            })
        };
        for_every_game(ExplorationMode::Instant, sharpen, |id, _, batch| assert!(has_fall(batch), "{id}"));
        for_every_game(ExplorationMode::RunningMax, sharpen, |id, _, batch| {
            assert!(!has_fall(batch), "{id}");
        });
    }
}
