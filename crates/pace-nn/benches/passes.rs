//! Single passes of an update on one thread, with the sizes of the three games: `cargo bench -p pace-nn`.
//!
//! Items are floating-point operations of the matrix products for layers, and numbers for everything else. `pace bench engine`
//! times whole updates and their matrix products.

use divan::Bencher;
use divan::counter::ItemsCount;
use pace_nn::loss::softmax_rows;
use pace_nn::{
    Activation, Adam, AdamConfig, EmptyEpisodeMode, InputPart, Layout, Linear, PrefixPool, WriteMode,
};

fn main() {
    divan::main();
}

/// Number of rows in a chunk.
const N_ROWS: usize = 160;
const HIDDEN_WIDTH: usize = 128;

/// The paper's sizes of network and encounter for one game.
#[derive(Debug)]
struct Shape {
    name: &'static str,
    observation_size: usize,
    n_actions: usize,
    encoder_width: usize,
    n_classes: &'static [usize],
    n_episodes: usize,
    /// Decisions of each episode.
    episode_length: u32,
    n_weights: usize,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

const SHAPES: [Shape; 3] = [
    Shape {
        name: "kuhn-poker",
        observation_size: 13,
        n_actions: 2,
        encoder_width: 64,
        n_classes: &[40],
        n_episodes: 100,
        episode_length: 1,
        n_weights: 69_483,
    },
    Shape {
        name: "overcooked",
        observation_size: 105,
        n_actions: 6,
        encoder_width: 128,
        n_classes: &[18],
        n_episodes: 5,
        episode_length: 40,
        n_weights: 160_025,
    },
    Shape {
        name: "predator-prey",
        observation_size: 37,
        n_actions: 5,
        encoder_width: 128,
        n_classes: &[2, 4, 4],
        n_episodes: 5,
        episode_length: 40,
        n_weights: 132_624,
    },
];

/// Returns pseudo-random numbers from −1 to 1, the same in every run.
fn numbers(n: usize) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// A layer with weights, inputs and an output buffer.
struct Bench {
    layout: Layout,
    layer: Linear,
    weights: Vec<f32>,
    dense: Vec<Vec<f32>>,
    classes: Option<Vec<u8>>,
    output: Vec<f32>,
    n_operations: usize,
}

impl Bench {
    /// Creates the first layer of actor and critic; its input is the observation and the latent.
    fn actor(shape: &Shape) -> Bench {
        Bench::new(&[shape.observation_size, shape.encoder_width], None, HIDDEN_WIDTH)
    }

    /// Creates the first layer of the encoder; its input is an observation and an action.
    fn encoder(shape: &Shape) -> Bench {
        Bench::new(&[shape.observation_size], Some(shape.n_actions), shape.encoder_width)
    }

    fn new(dense_widths: &[usize], n_classes: Option<usize>, n_out: usize) -> Bench {
        let mut layout = Layout::default();
        let widths: Vec<usize> = dense_widths.iter().copied().chain(n_classes).collect();
        let layer = Linear::new(&mut layout, "layer", &widths, n_out, Activation::Relu);
        Bench {
            weights: numbers(layout.len()),
            dense: dense_widths.iter().map(|width| numbers(N_ROWS * width)).collect(),
            classes: n_classes.map(|n| (0..N_ROWS).map(|row| (row % n) as u8).collect()),
            output: vec![0.0; N_ROWS * n_out],
            n_operations: 2 * N_ROWS * dense_widths.iter().sum::<usize>() * n_out,
            layout,
            layer,
        }
    }

    fn parts(&self) -> Vec<InputPart<'_>> {
        let dense = self.dense.iter().map(|rows| InputPart::Dense(rows));
        dense.chain(self.classes.as_deref().map(InputPart::OneHot)).collect()
    }

    fn forward(&mut self) {
        let mut output = std::mem::take(&mut self.output);
        self.layer.forward(&self.weights, &self.parts(), N_ROWS, &mut output);
        self.output = output;
    }

    fn run_forward(mut self, bencher: Bencher<'_, '_>) {
        bencher.counter(ItemsCount::new(self.n_operations)).bench_local(|| self.forward());
    }

    /// Times the backward pass, with the gradient of the last dense part if `takes_gradient`.
    fn run_backward(mut self, bencher: Bencher<'_, '_>, takes_gradient: bool) {
        self.forward();
        let mut transposed = vec![0.0; self.weights.len()];
        self.layout.transpose(&self.weights, &mut transposed);
        let mut gradients = vec![0.0; self.weights.len()];
        let mut d_output = numbers(self.output.len());
        let last = self.dense.len() - 1;
        let mut d_last = vec![0.0; self.dense[last].len()];
        let last_operations = 2 * d_last.len() * self.layer.n_out();
        let n_operations = self.n_operations + if takes_gradient { last_operations } else { 0 };
        let parts = self.parts();
        bencher.counter(ItemsCount::new(n_operations)).bench_local(|| {
            let mut d_parts: Vec<Option<(&mut [f32], WriteMode)>> = (0..parts.len()).map(|_| None).collect();
            if takes_gradient {
                d_parts[last] = Some((&mut d_last, WriteMode::Overwrite));
            }
            self.layer.backward(
                &transposed,
                &mut gradients,
                &parts,
                &self.output,
                &mut d_output,
                &mut d_parts,
            );
        });
    }
}

#[divan::bench(args = &SHAPES)]
fn actor_forward(bencher: Bencher<'_, '_>, shape: &Shape) {
    Bench::actor(shape).run_forward(bencher);
}

#[divan::bench(args = &SHAPES)]
fn actor_backward(bencher: Bencher<'_, '_>, shape: &Shape) {
    Bench::actor(shape).run_backward(bencher, true);
}

#[divan::bench(args = &SHAPES)]
fn encoder_forward(bencher: Bencher<'_, '_>, shape: &Shape) {
    Bench::encoder(shape).run_forward(bencher);
}

#[divan::bench(args = &SHAPES)]
fn encoder_backward(bencher: Bencher<'_, '_>, shape: &Shape) {
    Bench::encoder(shape).run_backward(bencher, false);
}

/// A pool with the entries of one encounter. The first `1 / SHARE` of the features are averaged.
struct PoolBench<const SHARE: usize> {
    pool: PrefixPool,
    lengths: Vec<u32>,
    decisions: Vec<f32>,
    terminals: Vec<f32>,
}

impl<const SHARE: usize> PoolBench<SHARE> {
    fn new(shape: &Shape) -> PoolBench<SHARE> {
        let Shape { n_episodes, episode_length, encoder_width: width, .. } = *shape;
        PoolBench {
            pool: PrefixPool::new(width, width / SHARE, EmptyEpisodeMode::LeftOut),
            lengths: vec![episode_length; n_episodes],
            decisions: numbers(n_episodes * episode_length as usize * width),
            terminals: numbers(n_episodes * width),
        }
    }
}

/// Divisors for all features and for half of them.
const SHARES_OF_MEANS: [usize; 2] = [1, 2];

#[divan::bench(args = &SHAPES, consts = SHARES_OF_MEANS)]
fn prefix_pool_forward<const SHARE: usize>(bencher: Bencher<'_, '_>, shape: &Shape) {
    let PoolBench { mut pool, lengths, decisions, terminals } = PoolBench::<SHARE>::new(shape);
    let mut pooled = vec![0.0; decisions.len()];
    bencher
        .counter(ItemsCount::new(decisions.len()))
        .bench_local(|| pool.forward(&decisions, &terminals, &lengths, &mut pooled));
}

#[divan::bench(args = &SHAPES, consts = SHARES_OF_MEANS)]
fn prefix_pool_backward<const SHARE: usize>(bencher: Bencher<'_, '_>, shape: &Shape) {
    let PoolBench { mut pool, lengths, decisions, terminals } = PoolBench::<SHARE>::new(shape);
    let d_pooled = numbers(decisions.len());
    let (mut d_decisions, mut d_terminals) = (vec![0.0; decisions.len()], vec![0.0; terminals.len()]);
    bencher.counter(ItemsCount::new(decisions.len())).bench_local(|| {
        pool.backward(&decisions, &terminals, &lengths, &d_pooled, &mut d_decisions, &mut d_terminals);
    });
}

fn bench_softmax(bencher: Bencher<'_, '_>, groups: &[usize]) {
    let logits = numbers(N_ROWS * groups.iter().sum::<usize>());
    let (mut logs, mut probabilities) = (vec![0.0; logits.len()], vec![0.0; logits.len()]);
    bencher
        .counter(ItemsCount::new(logits.len()))
        .bench_local(|| softmax_rows(&logits, groups, &mut logs, &mut probabilities));
}

#[divan::bench(args = &SHAPES)]
fn softmax_of_actions(bencher: Bencher<'_, '_>, shape: &Shape) {
    bench_softmax(bencher, &[shape.n_actions]);
}

#[divan::bench(args = &SHAPES)]
fn softmax_of_classes(bencher: Bencher<'_, '_>, shape: &Shape) {
    bench_softmax(bencher, shape.n_classes);
}

#[divan::bench(args = &SHAPES)]
fn adam(bencher: Bencher<'_, '_>, shape: &Shape) {
    let config = AdamConfig { betas: [0.9, 0.999], epsilon: 1e-8 };
    let mut adam = Adam::new(config, &[shape.n_weights]);
    let (mut weights, gradients) = (numbers(shape.n_weights), numbers(shape.n_weights));
    bencher
        .counter(ItemsCount::new(shape.n_weights))
        .bench_local(|| adam.step(1, &mut weights, &gradients, 1, 1e-7, 15.0));
}
