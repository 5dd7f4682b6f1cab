//! Egos: the interface that scripted and trained ones share, the reference agents, and their play.
//!
//! The references themselves live in their game's folder. An encounter of an ego is an `AgentSession`; averages over many
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

/// An agent in the ego's seat, trained or scripted. It is given observations and what followed its decisions: no argument could
/// carry a peer's identity.
pub trait Ego: Send {
    /// New peers sit down; everything known about the last ones is forgotten.
    fn begin_encounter(&mut self);

    /// How likely the ego is to take each action when it sees `observation` now. Asking is without consequence:
    /// it may be asked about observations that never come.
    fn action_probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]);

    /// The ego saw `observation` and took `action`.
    fn record_action(&mut self, observation: &[f32], action: Action);

    /// What followed the action that was taken last. Scripted egos learn from observations alone.
    fn observe_feedback(&mut self, _feedback: &StepFeedback<'_>) {}

    /// The episode ended with `terminal_observation`.
    fn end_episode(&mut self, terminal_observation: &[f32]);

    /// Whether [`StepFeedback::peer_observations`] must be given.
    fn peer_observation_mode(&self) -> PeerObservationMode {
        PeerObservationMode::Skipped
    }

    /// The result of the last inference: at the last decision that was asked for, or at the end of the episode if that came
    /// later. None for an ego without a value and posteriors over training classes.
    fn inference(&self) -> Option<&Inference> {
        None
    }

    /// What it takes each of its peers for, by slot; empty for an ego that has no opinion.
    fn beliefs(&self) -> Vec<Vec<KindBelief>> {
        Vec::new()
    }

    /// Whether it answers an observation alike at any time, whatever it was told before.
    fn is_memoryless(&self) -> bool {
        false
    }
}

/// One of the things that an ego holds a peer to be, and how likely it thinks that is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindBelief {
    /// The kind of peer, in words; see [`crate::PeerSpec::kind`].
    pub kind: String,
    /// The same as plain data; see [`crate::PeerSpec::kind_data`].
    pub data: Value,
    /// Its traits; see [`crate::PeerSpec::behaviour_vector`].
    pub traits: Vec<f32>,
    /// The ego's probability.
    pub probability: f32,
}

impl KindBelief {
    /// The opinion that a peer is of the same kind as `spec`.
    pub fn of(spec: &impl PeerSpec, probability: f64) -> KindBelief {
        let probability = probability as f32;
        KindBelief { kind: spec.kind(), data: spec.kind_data(), traits: spec.behaviour_vector(), probability }
    }
}

/// A reference agent, as a recipe to make it. Learned agents are compared with it; its score is no bound.
#[derive(Clone, Copy, Debug)]
pub enum Reference<G: Game> {
    /// Sees what any ego sees and is told nothing.
    Uninformed(fn(&G) -> Box<dyn Ego>),
    /// Is told who the peers are and sees everything.
    Privileged(fn(&G, &[SpecOf<G>]) -> Box<dyn Ego>),
}

/// Takes every action with the same probability.
#[derive(Clone, Copy, Debug)]
pub struct RandomEgo;

impl RandomEgo {
    /// The reference every game has.
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

/// Puts all probability on one action: the answer of an ego that is sure.
pub fn one_hot(action: Action, probabilities: &mut [f32]) {
    probabilities.fill(0.0);
    probabilities[usize::from(action)] = 1.0;
}

/// The outcome of one episode.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EpisodeOutcome {
    /// Sum of task rewards.
    pub task_return: f64,
    /// What the episode was worth before chance had its say, where the game knows a closed form.
    pub expected_return: Option<f64>,
    /// The ego's decisions.
    pub n_steps: usize,
    /// How it ended.
    pub ending: Ending,
    /// Whether the ego came to an informative place at least once.
    pub keypoint_visited: bool,
}

impl EpisodeOutcome {
    /// An episode of which nothing was played yet.
    pub(crate) const NEW: EpisodeOutcome = EpisodeOutcome {
        task_return: 0.0,
        expected_return: None,
        n_steps: 0,
        ending: Ending::Finished,
        keypoint_visited: false,
    };

    /// The number the game judges an episode by, free of chance where that is known.
    pub fn score(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Return => self.expected_return.unwrap_or(self.task_return),
            Metric::Success => f64::from(u8::from(self.ending == Ending::Succeeded)),
        }
    }
}

/// What an ego with a value function and an identifier infers when it sees an observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inference {
    /// How likely it is to take each action.
    pub probabilities: Vec<f32>,
    /// The discounted reward it expects.
    pub value: f32,
    /// The latent of its context; the hidden state where the method has one instead.
    pub latent: Vec<f32>,
    /// Its posterior over the training classes of each peer; empty if the method identifies nobody.
    pub posteriors: Vec<Vec<f32>>,
}

impl Inference {
    /// Samples an action; see [`sample_action`].
    pub fn draw(&self, rng: &mut Stream) -> Result<Action, ConfigError> {
        sample_action(&self.probabilities, rng)
    }
}

/// What followed a decision, as far as an ego may know it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepFeedback<'a> {
    /// What all peers did.
    pub peer_actions: &'a [Action],
    /// What they saw when they chose, one observation after the other; empty where that is not known.
    pub peer_observations: &'a [f32],
    /// The task reward.
    pub task_reward: f32,
}

/// A reference agent at the beginning of an encounter with these peers.
pub fn begin_reference<G: Game>(
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

/// A reference agent plays one encounter to its end. An ego whose output is not a distribution over actions is refused.
pub fn play_encounter<G: Game>(
    game: &G,
    reference: &Reference<G>,
    specs: &[SpecOf<G>],
    n_episodes: usize,
    seed: Seed,
) -> Result<Vec<EpisodeOutcome>, ConfigError> {
    begin_reference(game, reference, specs, n_episodes, seed)?.play_out()
}

/// Samples an action. Whatever plays an agent, trained or scripted, samples its actions here: the same probabilities and the
/// same stream give the same action in training, evaluation and play.
///
/// Probabilities that are not finite, or all 0, are refused.
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
    // Rounding may leave a remainder past the last one.
    let last = probabilities.iter().rposition(|probability| *probability > 0.0);
    Ok(last.expect("a distribution has a positive probability") as Action)
}

/// Refuses probabilities that are not finite, or all 0.
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

    /// The probability of its second action is not a number.
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
            // The rest that rounding leaves goes to the last action that is possible.
            assert!(sample_action(&[0.25, 0.25, 0.0], &mut rng).expect("a distribution") < 2);
        }
    }
}
