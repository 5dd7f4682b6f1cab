//! Forward and backward passes of layers over sequences on one thread, and their matrix products: `cargo bench -p pace-nn`.

use pace_nn::product::recorded;
use pace_nn::{
    DropoutKey, Gru, GruBuffers, GruInputs, Layout, PrefixGroup, Sequences, TransformerBuffers,
    TransformerConfig, TransformerLayer, WriteMode,
};

fn main() {
    divan::main();
}

const WIDTH: usize = 128;
const N_STEPS: usize = 20;

/// Returns a source of pseudo-random numbers from [0, 1), the same in every run.
fn numbers() -> impl FnMut() -> f64 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn inputs(n_rows: usize) -> Vec<f32> {
    let mut number = numbers();
    (0..n_rows * WIDTH).map(|_| number() as f32 - 0.5).collect()
}

/// Times the matrix products of `passes` alone.
fn bench_gemms(bencher: divan::Bencher<'_, '_>, passes: impl FnOnce()) {
    let ((), shapes) = recorded(passes);
    let mut buffers = Default::default();
    bencher.bench_local(move || shapes.iter().for_each(|shape| shape.run(&mut buffers)));
}

const N_SEQUENCES: [usize; 3] = [25, 100, 200];

fn gru(n_sequences: usize) -> impl FnMut() {
    let mut layout = Layout::default();
    let gru = Gru::new(&mut layout, "gru", WIDTH, WIDTH);
    let mut parameters = vec![0.0; layout.len()];
    gru.initialise(&mut parameters, &mut numbers());
    let (batch_sizes, n_rows) = (vec![n_sequences; N_STEPS], n_sequences * N_STEPS);
    let (inputs, initial, state_mask) = (inputs(n_rows), vec![0.1; n_sequences * WIDTH], vec![1.0; n_rows]);
    let (mut transposed, mut gradients) = (vec![0.0; layout.len()], vec![0.0; layout.len()]);
    layout.transpose(&parameters, &mut transposed);
    let (mut buffers, mut d_inputs) = (GruBuffers::default(), vec![0.0; inputs.len()]);
    move || {
        let inputs = GruInputs::from(&inputs[..]);
        gru.forward(&parameters, inputs, &batch_sizes, &initial, &state_mask, &mut buffers);
        buffers.d_out.fill(0.01);
        let d_inputs_and_mode = Some((&mut d_inputs[..], WriteMode::Overwrite));
        gru.backward(
            &transposed,
            &mut gradients,
            inputs,
            &batch_sizes,
            &state_mask,
            &mut buffers,
            d_inputs_and_mode,
        );
    }
}

#[divan::bench(args = N_SEQUENCES)]
fn gru_passes(bencher: divan::Bencher<'_, '_>, n_sequences: usize) {
    bencher.bench_local(gru(n_sequences));
}

#[divan::bench(args = N_SEQUENCES)]
fn gru_gemms(bencher: divan::Bencher<'_, '_>, n_sequences: usize) {
    bench_gemms(bencher, gru(n_sequences));
}

/// Prefix lengths; each case has one sequence per length up to it. They are the entries of an episode, the episodes of an
/// encounter, and the episodes of an encounter in Kuhn Poker.
const LENGTHS: [usize; 3] = [41, 5, 100];

fn transformer(length: usize) -> impl FnMut() {
    let mut layout = Layout::default();
    let config = TransformerConfig { width: WIDTH, n_heads: 4, hidden_width: WIDTH, dropout: 0.5 };
    let layer = TransformerLayer::new(&mut layout, "layer", config);
    let mut parameters = vec![0.0; layout.len()];
    layer.initialise(&mut parameters, &mut numbers());
    let (inputs, prefix) = (inputs(length), (0..length as u32).collect::<Vec<_>>());
    let lengths: Vec<usize> = (1..=length).collect();
    let sources: Vec<u32> = lengths.iter().flat_map(|n| 0..*n as u32).collect();
    let (mut transposed, mut gradients) = (vec![0.0; layout.len()], vec![0.0; layout.len()]);
    layout.transpose(&parameters, &mut transposed);
    let (mut buffers, mut d_inputs) = (TransformerBuffers::default(), vec![0.0; inputs.len()]);
    let key = Some(DropoutKey(1));
    move || {
        let prefix_groups = &[PrefixGroup { n_sequences: length, prefix_len: length }];
        let sequences = Sequences { sources: &sources, lengths: &lengths, prefix_groups, prefix: &prefix };
        layer.forward(&parameters, &inputs, sequences, key, &mut buffers);
        buffers.d_out.fill(0.01);
        layer.backward(&transposed, &mut gradients, &inputs, sequences, key, &mut buffers, &mut d_inputs);
    }
}

#[divan::bench(args = LENGTHS)]
fn transformer_passes(bencher: divan::Bencher<'_, '_>, length: usize) {
    bencher.bench_local(transformer(length));
}

#[divan::bench(args = LENGTHS)]
fn transformer_gemms(bencher: divan::Bencher<'_, '_>, length: usize) {
    bench_gemms(bencher, transformer(length));
}
