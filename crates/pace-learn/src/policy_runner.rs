//! Many lanes with the same actor as ego. A loop selects actions and steps the lanes until all encounters are over.
//!
//! The results are recorded by `rollout` for training, by `adapt` for evaluation, and by GSCU's first stage in `methods::gscu`.

use pace_games::{
    Action, AnyArena, AnyGame, Boundary, ConfigError, NO_ACTION, PeerObservationMode, Seed, Split,
    StepBuffers, Stream, SymmetryTransform, sample_action,
};
use pace_nn::loss::softmax_rows;

use crate::network::{Actor, Decisions, LaneStates, NetworkDims, PolicyOutputs};

/// An arena, the contexts of its egos, and all buffers of a step.
pub(crate) struct PolicyRunner<A: Actor> {
    arena: Box<dyn AnyArena>,
    /// The reports of the last step, one row per lane.
    steps: StepBuffers,
    state: A::State,
    rngs: Vec<Option<Stream>>,
    /// The index of each ego's symmetry transform; 0 if the actor uses none.
    sides: Vec<usize>,
    /// The lanes with a running encounter, in order. Each has one row in the buffers below.
    active: Vec<usize>,
    observations: Vec<f32>,
    outputs: PolicyOutputs,
    log_probabilities: Vec<f32>,
    probabilities: Vec<f32>,
    ego_actions: Vec<Action>,
    peer_actions: Vec<Action>,
    peer_observations: Vec<f32>,
    task_rewards: Vec<f32>,
    /// One action per lane in the game's numbering. Actions of idle lanes are ignored.
    actions: Vec<Action>,
    terminal_observations: Vec<f32>,
    ended: Vec<usize>,
}

impl<A: Actor> PolicyRunner<A> {
    pub(crate) fn new(
        game: &dyn AnyGame,
        split: Split,
        n_lanes: usize,
        actor: &A,
        window: Option<usize>,
        peer_observation_mode: PeerObservationMode,
    ) -> PolicyRunner<A> {
        PolicyRunner {
            arena: game.arena(split, n_lanes),
            steps: StepBuffers::new(game.spec(), n_lanes, peer_observation_mode),
            state: actor.new_state(n_lanes, window),
            rngs: vec![None; n_lanes],
            sides: vec![0; n_lanes],
            active: Vec::new(),
            observations: Vec::new(),
            outputs: PolicyOutputs::default(),
            log_probabilities: Vec::new(),
            probabilities: Vec::new(),
            ego_actions: Vec::new(),
            peer_actions: Vec::new(),
            peer_observations: Vec::new(),
            task_rewards: Vec::new(),
            actions: vec![0; n_lanes],
            terminal_observations: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Starts an encounter with a tuple in a lane, with an empty context.
    pub(crate) fn begin(&mut self, actor: &A, lane: usize, tuple: usize, n_episodes: usize, seed: Seed) {
        actor.begin(&mut self.state, lane, seed);
        self.switch(lane, tuple, n_episodes, seed);
        let spec = actor.spec();
        if let Some(sides) = &spec.sides {
            let size = spec.sizes.observation;
            self.sides[lane] = sides.canonical(&self.steps.observations[lane * size..][..size]);
        }
    }

    /// Starts an encounter with other peers in a lane, and keeps the context and the symmetry transform.
    pub(crate) fn switch(&mut self, lane: usize, tuple: usize, n_episodes: usize, seed: Seed) {
        self.arena.begin(lane, tuple, n_episodes, seed, self.steps.observation_mut(lane));
        self.rngs[lane] = Some(seed.stream("ego"));
    }

    /// Reveals the tuple of a lane to the actor, with a seed for randomness that occurs only in training.
    pub(crate) fn reveal_tuple(&mut self, actor: &A, lane: usize, tuple: usize, seed: Seed) {
        actor.reveal_tuple(&mut self.state, lane, tuple, seed);
    }

    /// The index of a lane's symmetry transform.
    pub(crate) fn side(&self, lane: usize) -> usize {
        self.sides[lane]
    }

    /// Translates predicted classes of a lane's peers from the canonical frame to the game's numbering.
    pub(crate) fn true_classes(&self, actor: &A, lane: usize, classes_seen: Vec<usize>) -> Vec<usize> {
        let Some(transform) = actor.spec().transform(self.sides[lane]) else { return classes_seen };
        classes_seen
            .into_iter()
            .enumerate()
            .map(|(slot, class)| transform.to_game_class(slot, class))
            .collect()
    }

    /// The lanes of the last decisions.
    pub(crate) fn active(&self) -> &[usize] {
        &self.active
    }

    /// The observations of the last decisions, one row per active lane.
    pub(crate) fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// The actor's outputs for these observations.
    pub(crate) fn outputs(&self) -> &PolicyOutputs {
        &self.outputs
    }

    /// The log-probability of each action, one row per active lane.
    pub(crate) fn log_probabilities(&self) -> &[f32] {
        &self.log_probabilities
    }

    /// The chosen actions, one per active lane.
    pub(crate) fn ego_actions(&self) -> &[Action] {
        &self.ego_actions
    }

    /// The terminal observations of the episodes that ended in the last step, in the order of the lanes.
    pub(crate) fn terminal_observations(&self) -> &[f32] {
        &self.terminal_observations
    }

    /// The actions of all peers in the last step, one row per active lane.
    pub(crate) fn peer_actions(&self) -> &[Action] {
        &self.peer_actions
    }

    /// The observations of all peers when they chose in the last step, one row per active lane; empty if not recorded.
    pub(crate) fn peer_observations(&self) -> &[f32] {
        &self.peer_observations
    }

    /// The reports of the last step, one row per lane.
    pub(crate) fn steps(&self) -> &StepBuffers {
        &self.steps
    }

    /// The contexts of all lanes.
    pub(crate) fn state(&self) -> &A::State {
        &self.state
    }

    /// Copies of the contexts of these lanes.
    pub(crate) fn select_contexts(&self, lanes: &[usize]) -> A::State {
        self.state.select(lanes)
    }

    /// Clears the context of a lane between two episodes.
    pub(crate) fn clear_context(&mut self, actor: &A, lane: usize) {
        actor.clear_context(&mut self.state, lane);
    }

    /// Clears the context of a lane except for the finished episode.
    pub(crate) fn keep_last_episode(&mut self, actor: &A, lane: usize) {
        actor.keep_last_episode(&mut self.state, lane);
    }

    /// Gives the ego of a lane another random stream.
    pub(crate) fn reseed(&mut self, lane: usize, seed: Seed) {
        self.rngs[lane] = Some(seed.stream("ego"));
    }

    /// The last actions in the game's numbering, one per lane.
    pub(crate) fn game_actions(&self) -> &[Action] {
        &self.actions
    }

    /// Sets the part of a lane's context that was carried over from the last rollout.
    pub(crate) fn resume(&mut self, actor: &A, lane: usize, carried: &[f32]) {
        actor.resume(&mut self.state, lane, carried);
    }

    /// Passes the observations of all active lanes through the actor. Returns `false` when all encounters are over.
    pub(crate) fn forward_policy(&mut self, actor: &A) -> bool {
        let spec = actor.spec();
        let size = spec.sizes.observation;
        self.active.clear();
        let idle = self.arena.idle();
        self.active.extend((0..idle.len()).filter(|lane| !idle[*lane]));
        if self.active.is_empty() {
            return false;
        }
        self.observations.clear();
        for lane in &self.active {
            let observation = &self.steps.observations[lane * size..][..size];
            append_transformed(spec.transform(self.sides[*lane]), observation, &mut self.observations);
        }
        actor.forward_policy(&self.observations, &self.active, &mut self.state, &mut self.outputs);
        true
    }

    /// Passes the observations of all active lanes through the actor, and chooses actions that were played before. `action` gives
    /// that of a lane in the game's numbering. Returns `false` when all encounters are over.
    pub(crate) fn repeat_actions(&mut self, actor: &A, action: impl Fn(usize) -> Action) -> bool {
        if !self.forward_policy(actor) {
            return false;
        }
        // The rows of a step have log-probabilities, which are not needed again.
        self.log_probabilities.resize(self.active.len() * actor.spec().sizes.n_actions, 0.0);
        self.ego_actions.clear();
        for lane in &self.active {
            let (action, transform) = (action(*lane), actor.spec().transform(self.sides[*lane]));
            self.ego_actions.push(transform.map_or(action, |transform| transform.transform_action(action)));
            self.actions[*lane] = action;
        }
        true
    }

    /// Computes the action probabilities of all active lanes and samples the actions. Returns `false` when all encounters are
    /// over, and an error if the actor's output is not a distribution over actions.
    pub(crate) fn select_actions(&mut self, actor: &A) -> Result<bool, ConfigError> {
        if !self.forward_policy(actor) {
            return Ok(false);
        }
        let (spec, n_rows) = (actor.spec(), self.active.len());
        let n_actions = spec.sizes.n_actions;
        self.log_probabilities.resize(n_rows * n_actions, 0.0);
        self.probabilities.resize(n_rows * n_actions, 0.0);
        let logits = &self.outputs.logits[..n_rows * n_actions];
        softmax_rows(logits, &[n_actions], &mut self.log_probabilities, &mut self.probabilities);
        self.ego_actions.clear();
        for (row, lane) in self.active.iter().enumerate() {
            let rng = self.rngs[*lane].as_mut().expect("a lane that decides has begun");
            let probabilities = &mut self.probabilities[row * n_actions..][..n_actions];
            // Sampled in the game's order of actions, like in sessions.
            let transform = spec.transform(self.sides[*lane]);
            if let Some(transform) = transform {
                transform.to_game_actions(probabilities);
            }
            let action = sample_action(probabilities, rng)?;
            self.ego_actions.push(transform.map_or(action, |transform| transform.transform_action(action)));
            self.actions[*lane] = action;
        }
        Ok(true)
    }

    /// Steps the lanes with the chosen actions and updates the contexts.
    pub(crate) fn step(&mut self, actor: &A) {
        let spec = actor.spec();
        let NetworkDims { observation: size, n_peers, .. } = spec.sizes;
        self.arena.step(&self.actions, &mut self.steps.batch());
        let steps = &self.steps;
        // An evaluation may have fewer peers than training. The missing peers never act.
        let n_met = steps.peer_actions.len() / self.actions.len();
        self.peer_actions.clear();
        self.peer_observations.clear();
        self.task_rewards.clear();
        self.terminal_observations.clear();
        self.ended.clear();
        for lane in &self.active {
            let done = steps.peer_actions[lane * n_met..][..n_met].iter().copied();
            self.peer_actions.extend(done.chain(std::iter::repeat(NO_ACTION)).take(n_peers));
            self.task_rewards.push(steps.task_rewards[*lane]);
            if !steps.peer_observations.is_empty() {
                let seen = steps.peer_observations[lane * n_met * size..][..n_met * size].iter().copied();
                self.peer_observations.extend(seen.chain(std::iter::repeat(0.0)).take(n_peers * size));
            }
            if steps.boundaries[*lane] != Boundary::WithinEpisode {
                self.ended.push(*lane);
                let observation = &steps.terminal_observations[lane * size..][..size];
                append_transformed(
                    spec.transform(self.sides[*lane]),
                    observation,
                    &mut self.terminal_observations,
                );
            }
        }
        let decisions = Decisions {
            observations: &self.observations,
            ego_actions: &self.ego_actions,
            peer_actions: &self.peer_actions,
            peer_observations: &self.peer_observations,
            task_rewards: &self.task_rewards,
        };
        actor.update_contexts(&decisions, &self.active, &mut self.state);
        if !self.ended.is_empty() {
            actor.end_episodes(&self.terminal_observations, &self.ended, &mut self.state);
        }
    }
}

/// Appends an observation to `transformed`, after the symmetry transform if there is one.
#[inline]
pub(crate) fn append_transformed(
    transform: Option<&SymmetryTransform>,
    observation: &[f32],
    transformed: &mut Vec<f32>,
) {
    match transform {
        None => transformed.extend_from_slice(observation),
        Some(transform) => transform.transform_observation(observation, transformed),
    }
}

#[cfg(test)]
mod tests {
    use pace_games::{Action, AnyGame, ConfigError, GAMES, Preset, Seed, Split};
    use serde_json::{Map, Value};

    use super::PolicyRunner;
    use crate::adapt::{AdaptConfig, adapt};
    use crate::agent::Agent;
    use crate::config::TrainConfig;
    use crate::methods::{GscuNet, LiliNet, PaceNet, RecurrentNet, find_method};
    use crate::nets::TransformerEncoder;
    use crate::network::Network;
    use crate::preset::resolve;

    const N_EPISODES: usize = 3;

    /// A decision: the bits of the probabilities, and the sampled action.
    type Choice = (Vec<u32>, Action);

    fn choice(probabilities: &[f32], action: Action) -> Choice {
        (probabilities.iter().map(|probability| probability.to_bits()).collect(), action)
    }

    fn seed_of(tuple: usize) -> Seed {
        Seed::new(5).child("encounter", &[tuple as u64])
    }

    /// Plays an encounter with each tuple, all in one runner.
    fn choices_of_lanes<N: Network>(
        net: &N,
        game: &dyn AnyGame,
        tuples: &[usize],
    ) -> Result<Vec<Vec<Choice>>, ConfigError> {
        let sight = net.spec().adaptation_sight;
        let mut runner = PolicyRunner::new(game, Split::Test, tuples.len(), net, None, sight);
        for (lane, tuple) in tuples.iter().enumerate() {
            runner.begin(net, lane, *tuple, N_EPISODES, seed_of(*tuple));
        }
        let mut choices = vec![Vec::new(); tuples.len()];
        while runner.select_actions(net)? {
            let probabilities = runner.probabilities.chunks_exact(net.spec().sizes.n_actions);
            for (lane, probabilities) in runner.active.iter().zip(probabilities) {
                choices[*lane].push(choice(probabilities, runner.actions[*lane]));
            }
            runner.step(net);
        }
        Ok(choices)
    }

    /// Plays an encounter with one tuple in a session.
    fn choices_of_session(
        agent: &Agent,
        game: &dyn AnyGame,
        tuple: usize,
    ) -> Result<Vec<Choice>, ConfigError> {
        let mut session = agent.session(game, Split::Test, tuple, &[], N_EPISODES, seed_of(tuple))?;
        let mut choices = Vec::new();
        loop {
            let decision = session.moment().decision;
            choices.extend(decision.map(|decision| choice(decision.probabilities, decision.action)));
            if !session.step()? {
                return Ok(choices);
            }
        }
    }

    /// Calls `check` with an initial network for every game, after `change` of every weight of its policy head.
    fn for_every_game<N: Network>(
        method: &str,
        preset: Preset,
        change: impl Fn(&mut f32),
        check: impl Fn(&str, N, &dyn AnyGame),
    ) {
        for entry in GAMES {
            let keys = Map::from_iter([("episodes_per_encounter".to_owned(), Value::from(N_EPISODES))]);
            let game = entry.open(Preset::Paper, &keys).expect("every game has this key");
            let (_, resolved) =
                resolve(entry, find_method(method).expect("a method"), preset).expect("good presets");
            let config = TrainConfig { encoder_width: 16, hidden_width: 16, ..resolved };
            let mut net = N::new(game.spec(), &game.pool(Split::Train), &config);
            net.initialise(Seed::new(2));
            let head = net.spec().policy_head[0].clone();
            net.weights_mut()[head].iter_mut().for_each(&change);
            check(&format!("{method} {} in {}", preset.name(), entry.id), net, &*game);
        }
    }

    fn check_choices<N: Network>(method: &str, preset: Preset) {
        // With initial weights all actions have about the same probability.
        for_every_game::<N>(
            method,
            preset,
            |weight| *weight *= 100.0,
            |label, net, game| {
                let tuples: Vec<usize> = (0..game.n_tuples(Split::Test)).collect();
                let together = choices_of_lanes(&net, game, &tuples).expect("distributions");
                let agent = Agent::new(net.clone());
                for (tuple, together) in tuples.iter().zip(&together) {
                    let in_session = choices_of_session(&agent, game, *tuple).expect("distributions");
                    let alone = choices_of_lanes(&net, game, &[*tuple]).expect("distributions");
                    assert!(in_session == alone[0], "{label}, tuple {tuple}: a lane alone");
                    // With other lanes the order of sums may differ, but no action does.
                    let actions =
                        |choices: &[Choice]| choices.iter().map(|choice| choice.1).collect::<Vec<_>>();
                    assert_eq!(
                        actions(&in_session),
                        actions(together),
                        "{label}, tuple {tuple}: a lane of many"
                    );
                }
            },
        );
    }

    #[test]
    fn lanes_and_sessions_choose_the_same_actions() {
        check_choices::<PaceNet>("pace", Preset::Paper);
        check_choices::<PaceNet<TransformerEncoder>>("pace-tf", Preset::Paper);
        // With dropout in evaluation.
        check_choices::<PaceNet<TransformerEncoder>>("pace-tf", Preset::Reference);
        check_choices::<RecurrentNet<false>>("generalist", Preset::Paper);
        check_choices::<RecurrentNet<true>>("liam", Preset::Paper);
        check_choices::<LiliNet>("lili", Preset::Paper);
        check_choices::<GscuNet>("gscu", Preset::Paper);
        check_choices::<GscuNet>("gscu", Preset::Reference);
    }

    #[test]
    fn non_finite_output_is_refused_in_lanes_sessions_and_adaptation() {
        for_every_game::<PaceNet>(
            "pace",
            Preset::Paper,
            |weight| *weight = f32::NAN,
            |label, net, game| {
                let lanes = choices_of_lanes(&net, game, &[0]).expect_err(label);
                let agent = Agent::new(net);
                let in_session = choices_of_session(&agent, game, 0).expect_err(label);
                let config = AdaptConfig::new(Split::Test, 1, N_EPISODES, 1);
                let adapted = adapt(&agent, game, &config, 2).expect_err(label);
                assert!(matches!(lanes, ConfigError::NotADistribution { .. }), "{label}: {lanes}");
                assert_eq!((&in_session, &adapted), (&lanes, &lanes), "{label}");
                assert!(lanes.to_string().contains("NaN"), "{lanes}");
            },
        );
    }
}
