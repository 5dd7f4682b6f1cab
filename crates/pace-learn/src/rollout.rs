//! Rollout: whole encounters with every training tuple, written down as a batch.

use pace_games::{AnyGame, Boundary, Ending, Seed, Split};

use crate::batch::Batch;
use crate::config::{ExplorationMode, TrainConfig};
use crate::crew::Crew;
use crate::methods::PaceNet;

/// The part of the rollout that one shard does.
pub(crate) struct RolloutShard {
    crew: Crew,
    /// The encounters of this shard, by their number in the batch.
    encounters: std::ops::Range<usize>,
    lanes: Vec<Batch>,
    /// The highest posterior of each peer's class so far, by lane and slot.
    highest: Vec<f32>,
    pub(crate) batch: Batch,
}

impl RolloutShard {
    /// Cuts the encounters of a batch into shards of nearly equal size.
    pub(crate) fn split(
        game: &dyn AnyGame,
        net: &PaceNet,
        config: &TrainConfig,
        n_encounters: usize,
    ) -> Vec<RolloutShard> {
        let n_shards = config.shards.min(n_encounters);
        (0..n_shards)
            .map(|shard| {
                let encounters = n_encounters * shard / n_shards..n_encounters * (shard + 1) / n_shards;
                RolloutShard {
                    crew: Crew::new(game, Split::Train, encounters.len(), net, config, None),
                    lanes: vec![Batch::default(); encounters.len()],
                    highest: vec![0.0; encounters.len() * net.slots().len()],
                    batch: Batch::default(),
                    encounters,
                }
            })
            .collect()
    }

    /// Plays every encounter of the shard to its end.
    pub(crate) fn play(
        &mut self,
        net: &PaceNet,
        parameters: &[f32],
        config: &TrainConfig,
        n_episodes: usize,
        classes: &[Vec<usize>],
        seed: Seed,
    ) {
        let slots = net.slots();
        self.highest.fill(0.0);
        for (lane, encounter) in self.encounters.clone().enumerate() {
            let tuple = encounter % classes.len();
            self.crew.begin(lane, tuple, n_episodes, seed.child("encounter", &[encounter as u64]));
            self.lanes[lane] = Batch::default();
            self.lanes[lane].open_encounter(tuple as u32);
        }
        let (size, n_actions) = (net.observation_size(), net.n_actions());
        let mut steps_in_episode = vec![0u32; self.crew.n_lanes()];
        let mut keypoint_visited = vec![false; self.crew.n_lanes()];
        while self.crew.decide(net, parameters) {
            self.crew.advance(net, parameters);
            let block = self.crew.block();
            for (row, &lane) in self.crew.active().iter().enumerate() {
                let record = &mut self.lanes[lane];
                let action = self.crew.action(lane);
                record.observations.extend_from_slice(&self.crew.observations()[row * size..][..size]);
                record.actions.push(action);
                record.context_actions.push(self.crew.context_actions()[row]);
                let logs = &self.crew.log_probabilities()[row * n_actions..][..n_actions];
                record.log_probabilities.push(logs[usize::from(action)]);
                record.values.push(self.crew.rows.values()[row]);
                record.task_rewards.push(block.task_rewards[lane]);
                // Eq. 6, from the latent the action was chosen with: how sure the identifier is of the true peers.
                let posteriors = &self.crew.rows.posteriors()[row * net.n_posteriors()..];
                let mut confidence = 0.0;
                for (index, slot) in slots.iter().enumerate() {
                    let now = posteriors[slot.start + classes[record.tuples[0] as usize][index]];
                    let highest = &mut self.highest[lane * slots.len() + index];
                    *highest = highest.max(now);
                    confidence += match config.exploration_mode {
                        ExplorationMode::Instant => now,
                        ExplorationMode::RunningMax => *highest,
                    };
                }
                record.exploration_rewards.push(confidence / slots.len() as f32);
                steps_in_episode[lane] += 1;
                keypoint_visited[lane] |= block.keypoints_visited[lane];
                if block.boundaries[lane] != Boundary::WithinEpisode {
                    record
                        .terminal_observations
                        .extend_from_slice(&block.terminal_observations[lane * size..][..size]);
                    record.episode_lengths.push(std::mem::take(&mut steps_in_episode[lane]));
                    record.keypoints_visited.push(std::mem::take(&mut keypoint_visited[lane]));
                    record.successes.push(block.endings[lane] == Some(Ending::Succeeded));
                }
            }
        }
        self.batch = Batch::default();
        for lane in &mut self.lanes {
            self.batch.append(lane);
        }
    }
}
