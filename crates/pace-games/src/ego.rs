//! Scripted egos: the interface they share with learned ones, the reference agents, and their play.
//!
//! The references themselves live in their game's folder. Averages over many encounters are the lab's business.

use serde::Serialize;
use serde_json::Value;

use crate::config::GameError;
use crate::encounter::{EgoStep, Encounter, PeerViews};
use crate::game::{Action, Boundary, Ending, Game, Metric, NO_ACTION, Seat};
use crate::peer::{PeerSpec, SpecOf};
use crate::seed::{Seed, Stream};

/// An agent in the ego's seat. It is given observations and nothing else: no argument could carry a peer's identity.
pub trait Ego: Send {
    /// New peers sit down; everything known about the last ones is forgotten.
    fn begin_encounter(&mut self);

    /// How likely the ego is to take each action when it sees `observation` now. Asking is without consequence:
    /// it may be asked about observations that never come.
    fn probabilities(&mut self, observation: &[f32], probabilities: &mut [f32]);

    /// The ego saw `observation` and took `action`.
    fn acted(&mut self, observation: &[f32], action: Action);

    /// The episode ended with `terminal_observation`.
    fn end_episode(&mut self, terminal_observation: &[f32]);

    /// What it takes each of its peers for, by slot; empty for an ego that has no opinion.
    fn opinions(&self) -> Vec<Vec<Opinion>> {
        Vec::new()
    }

    /// Whether it answers an observation alike at any time, whatever it was told before.
    fn is_fixed(&self) -> bool {
        false
    }
}

/// One of the things that an ego holds a peer to be, and how likely it thinks that is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Opinion {
    /// The kind of peer, in words; see [`crate::PeerSpec::kind`].
    pub kind: String,
    /// The same as plain data; see [`crate::PeerSpec::kind_data`].
    pub data: Value,
    /// Its traits; see [`crate::PeerSpec::traits`].
    pub traits: Vec<f32>,
    /// The ego's probability.
    pub probability: f32,
}

impl Opinion {
    /// The opinion that a peer is of the same kind as `spec`.
    pub fn of(spec: &impl PeerSpec, probability: f64) -> Opinion {
        let probability = probability as f32;
        Opinion { kind: spec.kind(), data: spec.kind_data(), traits: spec.traits(), probability }
    }
}

/// A reference agent, as a recipe to make it. Learned agents are compared with it; its score is no bound.
#[derive(Clone, Copy, Debug)]
pub enum Reference<G: Game> {
    /// Sees what any ego sees and is told nothing.
    Blind(fn(&G) -> Box<dyn Ego>),
    /// Is told who the peers are and sees everything.
    Told(fn(&G, &[SpecOf<G>]) -> Box<dyn Ego>),
}

/// Takes every action with the same probability.
#[derive(Clone, Copy, Debug)]
pub struct RandomEgo;

impl RandomEgo {
    /// The reference every game has.
    pub fn reference<G: Game>() -> Reference<G> {
        Reference::Blind(|_| Box::new(RandomEgo))
    }
}

impl Ego for RandomEgo {
    fn begin_encounter(&mut self) {}

    fn probabilities(&mut self, _observation: &[f32], probabilities: &mut [f32]) {
        probabilities.fill(1.0 / probabilities.len() as f32);
    }

    fn acted(&mut self, _observation: &[f32], _action: Action) {}

    fn end_episode(&mut self, _terminal_observation: &[f32]) {}

    fn is_fixed(&self) -> bool {
        true
    }
}

/// Puts all probability on one action: the answer of an ego that is sure.
pub fn certain(action: Action, probabilities: &mut [f32]) {
    probabilities.fill(0.0);
    probabilities[usize::from(action)] = 1.0;
}

/// What came of one episode.
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
    /// The number the game judges an episode by, free of chance where that is known.
    pub fn score(&self, metric: Metric) -> f64 {
        match metric {
            Metric::Return => self.expected_return.unwrap_or(self.task_return),
            Metric::Success => f64::from(u8::from(self.ending == Ending::Succeeded)),
        }
    }
}

/// One point of an encounter as an onlooker sees it.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The episode, from 0.
    pub episode: usize,
    /// The ego's decisions so far in this episode.
    pub n_steps: usize,
    /// What the ego sees.
    pub observation: &'a [f32],
    /// What led here; nothing at the start of an episode.
    pub step: Option<Taken<'a>>,
}

/// The step that led to a moment.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// The ego's action.
    pub ego_action: Action,
    /// The peers' actions.
    pub peer_actions: &'a [Action],
    /// What it brought.
    pub outcome: EgoStep,
}

/// An ego plays one encounter to its end, with an onlooker told of every moment. An ego whose output is not a distribution
/// over actions is refused.
pub fn play_encounter<G: Game>(
    game: &G,
    reference: &Reference<G>,
    specs: &[SpecOf<G>],
    n_episodes: usize,
    seed: Seed,
    onlooker: &mut dyn FnMut(&G::State, Moment<'_>),
) -> Result<Vec<EpisodeOutcome>, GameError> {
    let (mut ego, sight): (Box<dyn Ego>, Sight<G>) = match reference {
        Reference::Blind(make) => (make(game), G::observe),
        Reference::Told(make) => (make(game, specs), G::observe_everything),
    };
    let spec = game.spec();
    let mut encounter = Encounter::<G>::begin(game, specs, n_episodes, seed);
    let mut ego_rng = seed.stream("ego");
    let mut observation = vec![0.0; spec.observation_size];
    let mut probabilities = vec![0.0; spec.n_actions()];
    let mut peer_actions = vec![NO_ACTION; spec.n_peers()];
    let points = game.decision_points();
    let mut answers = vec![0.0; points.len() * spec.n_actions()];
    let mut outcomes = Vec::with_capacity(n_episodes);
    ego.begin_encounter();
    loop {
        // Scripted egos of games with a closed form decide by what they knew when the episode began, so the steps that
        // lead to a point need not be played to them.
        for (point, answer) in points.iter().zip(answers.chunks_exact_mut(spec.n_actions())) {
            ego.probabilities(&point.observation, answer);
            check_distribution(answer)?;
        }
        let expected_return = (!points.is_empty()).then(|| game.expected_return(specs, &answers));
        let mut outcome = EpisodeOutcome {
            task_return: 0.0,
            expected_return,
            n_steps: 0,
            ending: Ending::Finished,
            keypoint_visited: false,
        };
        sight(game, encounter.state(), Seat::EGO, &mut observation);
        let episode = encounter.episode();
        onlooker(encounter.state(), Moment { episode, n_steps: 0, observation: &observation, step: None });
        let boundary = loop {
            ego.probabilities(&observation, &mut probabilities);
            let ego_action = sample_action(&probabilities, &mut ego_rng)?;
            ego.acted(&observation, ego_action);
            let views = PeerViews { observations: &mut [], actions: &mut peer_actions };
            let step = encounter.step(game, ego_action, views);
            outcome.task_return += step.task_reward;
            outcome.n_steps += 1;
            outcome.keypoint_visited |= step.keypoint_visited;
            sight(game, encounter.state(), Seat::EGO, &mut observation);
            let taken = Taken { ego_action, peer_actions: &peer_actions, outcome: step };
            let n_steps = outcome.n_steps;
            onlooker(
                encounter.state(),
                Moment { episode, n_steps, observation: &observation, step: Some(taken) },
            );
            if let Some(ending) = step.ending {
                outcome.ending = ending;
                break step.boundary;
            }
        };
        ego.end_episode(&observation);
        outcomes.push(outcome);
        if boundary == Boundary::EncounterEnd {
            return Ok(outcomes);
        }
        encounter.next_episode(game);
    }
}

type Sight<G> = fn(&G, &<G as Game>::State, Seat, &mut [f32]);

/// Samples an action. Whatever plays an agent, trained or scripted, samples its actions here: the same probabilities and the
/// same stream give the same action in training, evaluation and play.
///
/// Probabilities that are not finite, or all 0, are refused.
#[inline]
pub fn sample_action(probabilities: &[f32], rng: &mut Stream) -> Result<Action, GameError> {
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
pub fn check_distribution(probabilities: &[f32]) -> Result<(), GameError> {
    if probabilities.iter().all(|probability| probability.is_finite())
        && probabilities.iter().any(|probability| *probability > 0.0)
    {
        return Ok(());
    }
    Err(GameError::NotADistribution { found: format!("{probabilities:?}") })
}

#[cfg(test)]
mod tests {
    use super::{Ego, Reference, play_encounter, sample_action};
    use crate::config::{Configure, GameError, Preset};
    use crate::game::{Action, Game};
    use crate::kuhn_poker::{KuhnConfig, KuhnPoker};
    use crate::seed::Seed;

    /// The probability of its second action is not a number.
    struct NotANumber;

    impl Ego for NotANumber {
        fn begin_encounter(&mut self) {}

        fn probabilities(&mut self, _observation: &[f32], probabilities: &mut [f32]) {
            probabilities.copy_from_slice(&[0.5, f32::NAN]);
        }

        fn acted(&mut self, _observation: &[f32], _action: Action) {}

        fn end_episode(&mut self, _terminal_observation: &[f32]) {}
    }

    #[test]
    fn scripted_ego_with_non_finite_output_is_refused() {
        let game = KuhnPoker::new(KuhnConfig::preset(Preset::Paper)).expect("the preset");
        let reference = Reference::Blind(|_| Box::new(NotANumber));
        let pool = game.pool();
        let played =
            play_encounter(&game, &reference, &pool.test()[0].specs, 3, Seed::new(1), &mut |_, _| {});
        let error = played.expect_err("not a distribution");
        assert!(matches!(error, GameError::NotADistribution { .. }));
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
