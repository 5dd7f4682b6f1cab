//! The interface of trained and scripted egos, and the types of reference agents and episode outcomes.
//!
//! The reference agents are in the folders of their games. An encounter of an ego is an `AgentSession`; averages over many
//! encounters are in pace-lab.

use serde::Serialize;
use serde_json::Value;

use crate::arena::PeerObservationMode;
use crate::config::ConfigError;
use crate::entry::OpenedEncounter;
use crate::game::{Action, Ending, Game, Metric};
use crate::peer::{PeerSpec, SpecOf};
use crate::seed::{Seed, Stream};
use crate::session::AgentSession;

/// An agent in the ego's seat, trained or scripted. It receives observations and the feedback on its decisions: no argument
/// could carry a peer's identity.
pub trait Ego: Send {
    /// Starts an encounter with new peers and forgets the previous ones.
    fn begin_encounter(&mut self);

    /// Writes the probability of each action for `observation`. A call does not change later play: it may be made for
    /// observations that never occur.
    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]);

    /// Records that the ego saw `observation` and took `action`.
    fn record_action(&mut self, observation: &[f32], action: Action);

    /// Receives the feedback on the last recorded action. Default: ignored; scripted egos use observations alone.
    fn observe_feedback(&mut self, _feedback: &StepFeedback<'_>) {}

    /// Ends the episode with its `terminal_observation`.
    fn end_episode(&mut self, terminal_observation: &[f32]);

    /// Whether the ego needs [`StepFeedback::peer_observations`].
    fn peer_observation_mode(&self) -> PeerObservationMode {
        PeerObservationMode::Skipped
    }

    /// The result of the last inference: at the last call of [`Ego::action_probabilities`], or at the end of the episode if
    /// that was later. `None` for an ego without a value and posteriors over training classes.
    fn inference(&self) -> Option<&Inference> {
        None
    }

    /// The probability of each kind of peer, by slot; empty for an ego without beliefs.
    fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        Vec::new()
    }

    /// Whether the action probabilities depend on the current observation alone.
    fn is_memoryless(&self) -> bool {
        false
    }
}

/// One kind of peer, and the probability that an ego assigns to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindBelief {
    /// The kind as text; see [`crate::PeerSpec::kind`].
    pub kind: String,
    /// The kind as plain data; see [`crate::PeerSpec::kind_data`].
    pub data: Value,
    /// The behaviour vector of the kind; see [`crate::PeerSpec::behaviour_vector`].
    pub traits: Vec<f32>,
    /// The ego's probability.
    pub probability: f32,
}

impl KindBelief {
    /// The belief that a peer is of the same kind as `spec`.
    pub fn of(spec: &impl PeerSpec, probability: f64) -> KindBelief {
        let probability = probability as f32;
        KindBelief { kind: spec.kind(), data: spec.kind_data(), traits: spec.behaviour_vector(), probability }
    }
}

/// A constructor of a reference agent. Learned agents are compared with it; its score is not a bound.
#[derive(Clone, Copy, Debug)]
pub enum Reference<G: Game> {
    /// An ego with the observations of any ego, and without information about its peers.
    Uninformed(fn(&G) -> Box<dyn Ego>),
    /// An ego that knows its peers and sees the whole state.
    Privileged(fn(&G, &[SpecOf<G>]) -> Box<dyn Ego>),
}

/// An ego that takes every action with the same probability.
#[derive(Clone, Copy, Debug)]
pub struct RandomEgo;

impl RandomEgo {
    /// The reference agent `random`, which every game has.
    pub fn reference<G: Game>() -> Reference<G> {
        Reference::Uninformed(|_| Box::new(RandomEgo))
    }
}

impl Ego for RandomEgo {
    fn begin_encounter(&mut self) {}

    fn action_probabilities(&mut self, _observation: &[f32], probabilities: &mut [f32]) {
        probabilities.fill(1.0 / probabilities.len() as f32);
    }

    fn record_action(&mut self, _observation: &[f32], _action: Action) {}

    fn end_episode(&mut self, _terminal_observation: &[f32]) {}

    fn is_memoryless(&self) -> bool {
        true
    }
}

/// Puts all probability on one action.
pub fn one_hot(action: Action, probabilities: &mut [f32]) {
    probabilities.fill(0.0);
    probabilities[usize::from(action)] = 1.0;
}

/// The outcome of one episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EpisodeOutcome {
    /// Sum of task rewards.
    pub task_return: f64,
    /// The exact expected return of the episode, where the game has a closed form.
    pub expected_return: Option<f64>,
    /// The ego's decisions.
    pub n_steps: usize,
    /// The reason for the end.
    pub ending: Ending,
    /// Whether the ego came to an informative place at least once.
    pub keypoint_visited: bool,
}

impl EpisodeOutcome {
    /// An episode without any move so far.
    pub(crate) const NEW: EpisodeOutcome = EpisodeOutcome {
        task_return: 0.0,
        expected_return: None,
        n_steps: 0,
        ending: Ending::Finished,
        keypoint_visited: false,
    };

    /// The score by the game's metric; for [`Metric::Return`] the expected return, where it is known.
    pub fn score(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Return => self.expected_return.unwrap_or(self.task_return),
            Metric::Success => f64::from(u8::from(self.ending == Ending::Succeeded)),
        }
    }
}

/// The outputs of an ego with a value function and an identifier for one observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inference {
    /// The probability of each action.
    pub probabilities: Vec<f32>,
    /// The expected discounted return.
    pub value: f32,
    /// The latent of the context; the hidden state for recurrent methods.
    pub latent: Vec<f32>,
    /// The posterior over the training classes of each peer; empty for methods without an identifier.
    pub posteriors: Vec<Vec<f32>>,
}

/// The consequences of a decision, as far as an ego may know them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepFeedback<'a> {
    /// The actions of all peers.
    pub peer_actions: &'a [Action],
    /// The observations on which the peers acted, one after the other; empty where they are not known.
    pub peer_observations: &'a [f32],
    /// The task reward.
    pub task_reward: f32,
}

/// Starts an encounter of a reference agent with these peers.
pub(crate) fn begin_reference<G: Game>(
    game: &G,
    reference: &Reference<G>,
    specs: &[SpecOf<G>],
    n_episodes: usize,
    seed: Seed,
) -> Result<AgentSession, ConfigError> {
    let (mut ego, sees_everything) = match reference {
        Reference::Uninformed(make) => (make(game), false),
        Reference::Privileged(make) => (make(game, specs), true),
    };
    ego.begin_encounter();
    let encounter = Box::new(OpenedEncounter::begin(game, specs, &[], n_episodes, seed));
    AgentSession::of_reference(encounter, ego, seed, sees_everything, game.decision_points())
}

/// Plays one encounter of a reference agent to its end. An ego whose output is not a distribution over actions is an error.
pub fn play_encounter<G: Game>(
    game: &G,
    reference: &Reference<G>,
    specs: &[SpecOf<G>],
    n_episodes: usize,
    seed: Seed,
) -> Result<Vec<EpisodeOutcome>, ConfigError> {
    begin_reference(game, reference, specs, n_episodes, seed)?.play_out()
}

/// Plays `n_encounters` encounters of the reference agent `name` with each test tuple, with seeds that `seed` gives for
/// (tuple, encounter). Returns the outcomes of all episodes.
#[cfg(test)]
pub(crate) fn play_test_pool<G: Game>(
    game: &G,
    name: &str,
    n_encounters: u64,
    seed: impl Fn(&[u64]) -> Seed,
) -> Vec<EpisodeOutcome> {
    let references = game.references();
    let (_, reference) = references.iter().find(|(known, _)| *known == name).expect("a known name");
    let mut outcomes = Vec::new();
    for (index, tuple) in game.pool().test().iter().enumerate() {
        for number in 0..n_encounters {
            let n_episodes = game.spec().episodes_per_encounter;
            let played =
                play_encounter(game, reference, &tuple.specs, n_episodes, seed(&[index as u64, number]));
            outcomes.extend(played.expect("a distribution"));
        }
    }
    outcomes
}

/// Samples an action. Training, evaluation and play of trained and scripted egos all sample here, so equal probabilities and
/// equal streams give equal actions everywhere.
///
/// Probabilities that are not finite, or all 0, are an error.
#[inline]
pub fn sample_action(probabilities: &[f32], rng: &mut Stream) -> Result<Action, ConfigError> {
    check_distribution(probabilities)?;
    let mut left = rng.unit() as f32;
    for (action, probability) in probabilities.iter().enumerate() {
        if left < *probability {
            return Ok(action as Action);
        }
        left -= probability;
    }
    // Rounding may leave a remainder after the last probability.
    let last = probabilities.iter().rposition(|probability| *probability > 0.0);
    Ok(last.expect("a distribution has a positive probability") as Action)
}

/// Returns an error for probabilities that are not finite, or all 0.
#[inline]
pub fn check_distribution(probabilities: &[f32]) -> Result<(), ConfigError> {
    if probabilities.iter().all(|probability| probability.is_finite())
        && probabilities.iter().any(|probability| *probability > 0.0)
    {
        return Ok(());
    }
    Err(ConfigError::NotADistribution { found: format!("{probabilities:?}") })
}

#[cfg(test)]
mod tests {
    use super::{Ego, Reference, play_encounter, sample_action};
    use crate::config::{ConfigError, Preset, PresetConfig};
    use crate::game::{Action, Game};
    use crate::kuhn_poker::{KuhnConfig, KuhnPoker};
    use crate::seed::Seed;

    /// An ego whose second action has the probability NaN.
    struct NotANumber;

    impl Ego for NotANumber {
        fn begin_encounter(&mut self) {}

        fn action_probabilities(&mut self, _observation: &[f32], probabilities: &mut [f32]) {
            probabilities.copy_from_slice(&[0.5, f32::NAN]);
        }

        fn record_action(&mut self, _observation: &[f32], _action: Action) {}

        fn end_episode(&mut self, _terminal_observation: &[f32]) {}
    }

    #[test]
    fn scripted_ego_with_non_finite_output_is_refused() {
        let game = KuhnPoker::new(KuhnConfig::preset(Preset::Paper)).expect("the preset");
        let reference = Reference::Uninformed(|_| Box::new(NotANumber));
        let pool = game.pool();
        let played = play_encounter(&game, &reference, &pool.test()[0].specs, 3, Seed::new(1));
        let error = played.expect_err("not a distribution");
        assert!(matches!(error, ConfigError::NotADistribution { .. }));
        assert!(error.to_string().contains("[0.5, NaN]"), "{error}");
    }

    #[test]
    fn only_distributions_are_sampled() {
        let mut rng = Seed::new(1).stream("ego");
        for refused in [[f32::NAN; 2], [0.5, f32::NAN], [f32::INFINITY, 0.0], [0.0, 0.0]] {
            assert!(sample_action(&refused, &mut rng).is_err(), "{refused:?}");
        }
        for _ in 0..1000 {
            assert_eq!(sample_action(&[0.0, 1.0, 0.0], &mut rng), Ok(1));
            // The remainder goes to the last action with a positive probability.
            assert!(sample_action(&[0.25, 0.25, 0.0], &mut rng).expect("a distribution") < 2);
        }
    }
}
