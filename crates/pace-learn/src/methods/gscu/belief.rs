//! The belief about the peers' latent: a normal distribution that is fitted to the peers' actions by gradient steps on its mean and
//! variance, or several of them that take turns over the decisions of a window.
//!
//! Only the last two layers of the decoder depend on the latent. The layers before them are computed once per window, for all lanes
//! of an update together.

use pace_games::{Action, Stream};
use pace_nn::loss::{cross_entropy, softmax_rows};
use pace_nn::product::{multiply, transpose};
use pace_nn::{Adam, AdamConfig, InputPart, MlpBuffers, WriteMode, gaussian, kernels};

use super::embedding::Embedding;
use super::fill_normal;
use super::keys::{BeliefDivergence, BeliefLoss, GscuConfig};
use crate::nets::ensure_len;

/// A belief, and the peers' observations and actions since its last update.
#[derive(Clone, Debug)]
pub(crate) struct Belief {
    latent_size: usize,
    /// One row per distribution: means, then logarithms of variances.
    distributions: Vec<f32>,
    /// Kept for the whole encounter, as in the authors' code.
    adam: Adam,
    pub(crate) window: Window,
}

/// Observations and actions of peers, one row per decision of a peer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    pub(crate) observations: Vec<f32>,
    pub(crate) actions: Vec<Action>,
}

impl Window {
    fn clear(&mut self) {
        self.observations.clear();
        self.actions.clear();
    }
}

impl Belief {
    /// `n_rows` standard normal distributions.
    pub(crate) fn new(latent_size: usize, n_rows: usize) -> Belief {
        let adam = AdamConfig { betas: [0.9, 0.999], epsilon: 1e-8 };
        let n = n_rows * 2 * latent_size;
        Belief {
            latent_size,
            distributions: vec![0.0; n],
            adam: Adam::new(adam, &[n]),
            window: Window::default(),
        }
    }

    /// Resets the distributions, the optimiser and the window.
    pub(crate) fn reset(&mut self) {
        self.distributions.fill(0.0);
        self.adam.first_moment.fill(0.0);
        self.adam.second_moment.fill(0.0);
        self.adam.n_steps.fill(0);
        self.window.clear();
    }

    /// Writes the mean of the latent, averaged over the distributions.
    pub(crate) fn write_mean(&self, mean: &mut [f32]) {
        let mut rows = self.distributions.chunks_exact(2 * self.latent_size);
        let n_rows = rows.len() as f32;
        mean.copy_from_slice(&rows.next().expect("at least one distribution")[..self.latent_size]);
        for row in rows {
            kernels::add(mean, &row[..self.latent_size]);
        }
        mean.iter_mut().for_each(|value| *value /= n_rows);
    }

    /// Whether the window is full.
    pub(crate) fn needs_update(&self, keys: &GscuConfig) -> bool {
        self.window.actions.len() >= keys.belief_window.max(1)
    }

    /// The prior of the next update: the belief, with limits for the means and a floor for the standard deviations.
    fn prior(&self, keys: &GscuConfig) -> Vec<f32> {
        let limit = keys.belief_mean_limit as f32;
        let floor = 2.0 * (keys.belief_std_floor as f32).ln();
        let mut prior = self.distributions.clone();
        for row in prior.chunks_exact_mut(2 * self.latent_size) {
            let (means, logs) = row.split_at_mut(self.latent_size);
            if limit > 0.0 {
                means.iter_mut().for_each(|mean| *mean = mean.clamp(-limit, limit));
            }
            logs.iter_mut().for_each(|log| *log = log.max(floor));
        }
        prior
    }
}

/// The activations of the layers before the latent, and those of one gradient step.
#[derive(Debug, Default)]
pub(crate) struct BeliefBuffers {
    observations: Vec<f32>,
    tower: MlpBuffers,
    /// The input of the last hidden layer without the part of the latent.
    partial: Vec<f32>,
    /// The weights from latent to last hidden layer and from there to logits, and both transposed.
    weights: [Vec<f32>; 4],
    noise: Vec<f32>,
    latents: Vec<f32>,
    joined: Vec<f32>,
    logits: Vec<f32>,
    logs: Vec<f32>,
    probabilities: Vec<f32>,
    d_joined: Vec<f32>,
    d_latents: Vec<f32>,
}

/// The data of one window that the gradient steps of an update need.
#[derive(Clone, Copy)]
struct Evidence<'a> {
    actions: &'a [Action],
    partial: &'a [f32],
    head_bias: &'a [f32],
    latent_size: usize,
    /// The weight of one decision.
    weight: f32,
    /// The weight of one distribution's KL divergence.
    kl_weight: f32,
}

/// Updates some beliefs from their windows, and empties the windows.
pub(crate) fn update<'a>(
    embedding: &Embedding,
    parameters: &[f32],
    keys: &GscuConfig,
    to_update: &mut [(&'a mut Belief, &'a mut Stream)],
    rows: &mut BeliefBuffers,
) {
    rows.observations.clear();
    for (belief, _) in to_update.iter() {
        rows.observations.extend_from_slice(&belief.window.observations);
    }
    let n_rows = to_update.iter().map(|(belief, _)| belief.window.actions.len()).sum();
    if n_rows == 0 {
        return;
    }
    prepare(embedding, parameters, n_rows, rows);
    let width = embedding.join.n_out();
    let partial = std::mem::take(&mut rows.partial);
    let mut first_row = 0;
    for (belief, rng) in to_update {
        let n = belief.window.actions.len();
        let evidence = Evidence {
            actions: &belief.window.actions,
            partial: &partial[first_row * width..][..n * width],
            head_bias: &parameters[embedding.head.biases().range()],
            latent_size: belief.latent_size,
            weight: match keys.belief_loss {
                BeliefLoss::Sum => 1.0,
                BeliefLoss::Mean => 1.0 / n as f32,
            },
            kl_weight: match keys.belief_divergence {
                BeliefDivergence::Sum => 1.0,
                // Half of the values are means: one for every dimension of every distribution.
                BeliefDivergence::Mean => 2.0 / belief.distributions.len() as f32,
            },
        };
        first_row += n;
        let prior = belief.prior(keys);
        let mut gradient = vec![0.0; prior.len()];
        for _ in 0..keys.belief_steps {
            fill_normal(rng, ensure_len(&mut rows.noise, n * belief.latent_size));
            loss_gradient(&belief.distributions, &prior, &evidence, rows, &mut gradient);
            let values = &mut belief.distributions;
            belief.adam.step(1, values, &gradient, 1, keys.belief_rate as f32, f32::INFINITY);
        }
        belief.window.clear();
    }
    rows.partial = partial;
}

/// Computes the layers before the latent, and copies the weights of the last layers, also transposed.
fn prepare(embedding: &Embedding, parameters: &[f32], n_rows: usize, rows: &mut BeliefBuffers) {
    let (width, n_actions) = (embedding.join.n_out(), embedding.n_actions());
    let latent_size = embedding.latent_size();
    embedding.tower.forward(parameters, &[InputPart::Dense(&rows.observations)], n_rows, &mut rows.tower);
    let join = &parameters[embedding.join.weights().range()];
    let (of_hidden, of_latent) = join.split_at(width * width);
    let partial = ensure_len(&mut rows.partial, n_rows * width);
    multiply(
        &rows.tower.out[..n_rows * width],
        of_hidden,
        partial,
        n_rows,
        width,
        width,
        WriteMode::Overwrite,
    );
    kernels::add_bias(partial, &parameters[embedding.join.biases().range()]);
    let head = &parameters[embedding.head.weights().range()];
    let [latent_in, head_in, latent_back, head_back] = &mut rows.weights;
    latent_in.clear();
    latent_in.extend_from_slice(of_latent);
    head_in.clear();
    head_in.extend_from_slice(head);
    transpose(of_latent, latent_size, width, ensure_len(latent_back, latent_size * width));
    transpose(head, width, n_actions, ensure_len(head_back, width * n_actions));
}

/// The loss of a belief, Σ CE + Σ KL(distribution ‖ prior) with the weights in `evidence`, with one sample of the latent for every
/// decision in the window: the distributions take turns. Overwrites `gradient`. The samples are `mean + standard deviation ·
/// noise`, with the noise in `rows`.
fn loss_gradient(
    distributions: &[f32],
    prior: &[f32],
    evidence: &Evidence<'_>,
    rows: &mut BeliefBuffers,
    gradient: &mut [f32],
) -> f32 {
    let (n, latent_size) = (evidence.actions.len(), evidence.latent_size);
    let width = evidence.partial.len() / n;
    let n_actions = evidence.head_bias.len();
    let [latent_in, head_in, latent_back, head_back] = &rows.weights;
    let latents = ensure_len(&mut rows.latents, n * latent_size);
    let noise = &rows.noise[..n * latent_size];
    let of_decisions = || distributions.chunks_exact(2 * latent_size).cycle();
    let samples = latents.chunks_exact_mut(latent_size).zip(noise.chunks_exact(latent_size));
    for ((latent, noise), distribution) in samples.zip(of_decisions()) {
        for (place, latent) in latent.iter_mut().enumerate() {
            let std = kernels::exp(0.5 * distribution[latent_size + place]);
            *latent = distribution[place] + std * noise[place];
        }
    }
    // Forward pass of the layers after the latent.
    let joined = ensure_len(&mut rows.joined, n * width);
    joined.copy_from_slice(evidence.partial);
    multiply(latents, latent_in, joined, n, latent_size, width, WriteMode::Accumulate);
    joined.iter_mut().for_each(|value| *value = value.max(0.0));
    let logits = ensure_len(&mut rows.logits, n * n_actions);
    multiply(joined, head_in, logits, n, width, n_actions, WriteMode::Overwrite);
    kernels::add_bias(logits, evidence.head_bias);
    let d_logits = ensure_len(&mut rows.logs, n * n_actions);
    let probabilities = ensure_len(&mut rows.probabilities, n * n_actions);
    softmax_rows(logits, &[n_actions], d_logits, probabilities);
    let mut loss = 0.0;
    for (row, action) in evidence.actions.iter().enumerate() {
        let range = row * n_actions..(row + 1) * n_actions;
        let d_logits = &mut d_logits[range.clone()];
        loss += evidence.weight
            * cross_entropy(&probabilities[range], usize::from(*action), evidence.weight, d_logits);
    }
    // Backward pass to the latent.
    let d_joined = ensure_len(&mut rows.d_joined, n * width);
    multiply(d_logits, head_back, d_joined, n, n_actions, width, WriteMode::Overwrite);
    for (d_value, value) in d_joined.iter_mut().zip(&*joined) {
        *d_value = if *value > 0.0 { *d_value } else { 0.0 };
    }
    let d_latents = ensure_len(&mut rows.d_latents, n * latent_size);
    multiply(d_joined, latent_back, d_latents, n, width, latent_size, WriteMode::Overwrite);
    gradient.fill(0.0);
    let n_rows = distributions.len() / (2 * latent_size);
    let samples = d_latents.chunks_exact(latent_size).zip(noise.chunks_exact(latent_size));
    for (decision, ((d_latent, noise), distribution)) in samples.zip(of_decisions()).enumerate() {
        let gradient = &mut gradient[decision % n_rows * 2 * latent_size..][..2 * latent_size];
        for place in 0..latent_size {
            let std = kernels::exp(0.5 * distribution[latent_size + place]);
            gradient[place] += d_latent[place];
            gradient[latent_size + place] += 0.5 * std * noise[place] * d_latent[place];
        }
    }
    let row = 2 * latent_size;
    let pairs = distributions.chunks_exact(row).zip(prior.chunks_exact(row));
    for ((distribution, prior), gradient) in pairs.zip(gradient.chunks_exact_mut(row)) {
        let divergence = gaussian::kl_divergence(distribution, prior, evidence.kl_weight, gradient);
        loss += evidence.kl_weight * divergence;
    }
    loss
}

#[cfg(test)]
mod tests {
    use pace_games::{Action, Seed};

    use super::{Belief, BeliefBuffers, Evidence, ensure_len, fill_normal, loss_gradient, prepare, update};
    use crate::methods::gscu::embedding::Embedding;
    use crate::methods::gscu::keys::{BeliefDivergence, GscuConfig};
    use crate::methods::gscu::keys_of;
    use crate::network::NetworkDims;
    use crate::preset::paper_keys;

    fn setup() -> (Embedding, Vec<f32>, GscuConfig) {
        let config = paper_keys("predator-prey", "gscu");
        let keys = GscuConfig { embedding_width: 9, latent_size: 2, ..keys_of(&config).clone() };
        let sizes = NetworkDims { observation: 4, n_actions: 3, n_peers: 1 };
        let embedding = Embedding::new(sizes, 5, &keys);
        let weights = embedding.initialise(Seed::new(2));
        (embedding, weights, keys)
    }

    fn window(belief: &mut Belief, actions: &[Action]) {
        let mut rng = Seed::new(4).stream("test");
        belief.window.actions.extend_from_slice(actions);
        belief.window.observations.extend((0..4 * actions.len()).map(|_| rng.unit() as f32));
    }

    fn mean(belief: &Belief) -> [f32; 2] {
        let mut mean = [f32::NAN; 2];
        belief.write_mean(&mut mean);
        mean
    }

    #[test]
    fn gradients_equal_finite_differences() {
        let (embedding, weights, _) = setup();
        let mut belief = Belief::new(2, 1);
        window(&mut belief, &[0, 2, 1, 1, 0, 2]);
        let mut rows =
            BeliefBuffers { observations: belief.window.observations.clone(), ..Default::default() };
        prepare(&embedding, &weights, 6, &mut rows);
        let partial = rows.partial.clone();
        fill_normal(&mut Seed::new(8).stream("noise"), ensure_len(&mut rows.noise, 12));
        let prior = [0.3, -0.2, -0.5, 0.4, -0.7, 0.6, 0.1, -0.3];
        let at = [0.7f32, -1.1, 0.2, -0.6, -0.4, 0.9, 0.5, -0.2];
        // One distribution, and two that take turns.
        for (n_rows, weight, kl_weight) in [(1, 1.0, 1.0), (1, 1.0 / 6.0, 1.0), (2, 1.0 / 6.0, 0.25)] {
            let evidence = Evidence {
                actions: &belief.window.actions,
                partial: &partial,
                head_bias: &weights[embedding.head.biases().range()],
                latent_size: 2,
                weight,
                kl_weight,
            };
            let (at, prior) = (&at[..4 * n_rows], &prior[..4 * n_rows]);
            let mut loss = |distributions: &[f32]| {
                let mut gradient = vec![0.0; distributions.len()];
                let loss = loss_gradient(distributions, prior, &evidence, &mut rows, &mut gradient);
                (f64::from(loss), gradient)
            };
            let (_, gradient) = loss(at);
            for index in 0..at.len() {
                let mut moved = |by: f32| {
                    let mut distributions = at.to_vec();
                    distributions[index] += by;
                    loss(&distributions).0
                };
                let slope = (moved(5e-3) - moved(-5e-3)) / 1e-2;
                let found = f64::from(gradient[index]);
                assert!((slope - found).abs() < 2e-3 * slope.abs().max(1.0), "{index}: {found} {slope}");
            }
        }
    }

    #[test]
    fn each_decision_moves_its_own_distribution() {
        let (embedding, weights, keys) = setup();
        let keys = GscuConfig { belief_divergence: BeliefDivergence::Mean, ..keys };
        let mut belief = Belief::new(2, 3);
        window(&mut belief, &[0, 2]);
        let mut rng = Seed::new(1).stream("noise");
        update(&embedding, &weights, &keys, &mut [(&mut belief, &mut rng)], &mut BeliefBuffers::default());
        let rows: Vec<&[f32]> = belief.distributions.chunks_exact(4).collect();
        assert!(rows[0] != rows[1] && rows[0] != [0.0; 4] && rows[1] != [0.0; 4]);
        // Without a decision the distribution stays at its prior.
        assert_eq!(rows[2], [0.0; 4]);
        for (place, mean) in mean(&belief).into_iter().enumerate() {
            assert!((mean - (rows[0][place] + rows[1][place]) / 3.0).abs() < 1e-6);
        }
    }

    #[test]
    fn probabilities_equal_those_of_the_decoder_in_training() {
        let (embedding, weights, _) = setup();
        let mut belief = Belief::new(2, 1);
        window(&mut belief, &[0, 2, 1]);
        let mut rows =
            BeliefBuffers { observations: belief.window.observations.clone(), ..Default::default() };
        prepare(&embedding, &weights, 3, &mut rows);
        let partial = rows.partial.clone();
        fill_normal(&mut Seed::new(8).stream("noise"), ensure_len(&mut rows.noise, 6));
        let evidence = Evidence {
            actions: &belief.window.actions,
            partial: &partial,
            head_bias: &weights[embedding.head.biases().range()],
            latent_size: 2,
            weight: 1.0,
            kl_weight: 1.0,
        };
        let distribution = [0.7, -1.1, 0.2, -0.6];
        loss_gradient(&distribution, &[0.0; 4], &evidence, &mut rows, &mut [0.0; 4]);
        let mut decoder = Default::default();
        embedding.decode(&weights, &belief.window.observations, &rows.latents[..6], 3, &mut decoder);
        for (one, other) in decoder.probabilities.iter().zip(&rows.probabilities) {
            assert!((one - other).abs() < 1e-6, "{one} {other}");
        }
    }

    #[test]
    fn priors_keep_their_limits() {
        let (_, _, keys) = setup();
        let belief = Belief { distributions: vec![-3.5, 1.0, -9.0, 0.3], ..Belief::new(2, 1) };
        let prior = belief.prior(&keys);
        assert_eq!((prior[0], prior[1], prior[3]), (-2.0, 1.0, 0.3));
        assert!(((0.5 * prior[2]).exp() - 0.5).abs() < 1e-6);
        let free = GscuConfig { belief_mean_limit: 0.0, ..keys };
        assert_eq!(belief.prior(&free)[0], -3.5);
    }

    #[test]
    fn an_update_needs_a_full_window_and_empties_it() {
        let (embedding, weights, keys) = setup();
        let keys = GscuConfig { belief_window: 3, ..keys };
        let mut belief = Belief::new(2, 1);
        assert!(
            !belief.needs_update(&keys)
                && !belief.needs_update(&GscuConfig { belief_window: 0, ..keys.clone() })
        );
        window(&mut belief, &[1, 1]);
        assert!(
            !belief.needs_update(&keys)
                && belief.needs_update(&GscuConfig { belief_window: 0, ..keys.clone() })
        );
        window(&mut belief, &[0]);
        assert!(belief.needs_update(&keys));
        // An update together with another belief gives the same result as one alone.
        let mut together = [belief.clone(), belief.clone()];
        window(&mut together[1], &[2, 2]);
        let mut rng = [1, 2].map(|seed| Seed::new(seed).stream("noise"));
        let mut rows = BeliefBuffers::default();
        let mut to_update: Vec<_> = together.iter_mut().zip(&mut rng).collect();
        update(&embedding, &weights, &keys, &mut to_update, &mut rows);
        let mut alone = Seed::new(1).stream("noise");
        update(&embedding, &weights, &keys, &mut [(&mut belief, &mut alone)], &mut rows);
        assert_eq!(belief.distributions, together[0].distributions);
        assert_ne!(belief.distributions, [0.0; 4]);
        assert!(belief.window.actions.is_empty() && belief.window.observations.is_empty());
        belief.reset();
        assert_eq!(mean(&belief), [0.0; 2]);
    }
}
