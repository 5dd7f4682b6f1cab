//! Layers over sequences, forward and back on one thread, beside their matrix products alone: `cargo bench -p pace-nn`.

use pace_nn::product::ProductShape;
use pace_nn::{
    Chain, DropoutKey, Gru, GruInputs, GruRows, Parameters, Sequences, Store, TransformerConfig,
    TransformerLayer, TransformerRows,
};

fn main() {
    divan::main();
}

const WIDTH: usize = 128;
const N_STEPS: usize = 20;

/// Numbers from [0, 1) that repeat from run to run.
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

fn bench_products(bencher: divan::Bencher<'_, '_>, products: &[ProductShape]) {
    let mut buffers = Default::default();
    bencher.bench_local(move || products.iter().for_each(|product| product.run(&mut buffers)));
}

const N_SEQUENCES: [usize; 3] = [25, 100, 200];

fn gru() -> (Gru, Parameters) {
    let mut parameters = Parameters::default();
    let gru = Gru::new(&mut parameters, "gru", WIDTH, WIDTH);
    gru.initialise(&mut parameters, &mut numbers());
    (gru, parameters)
}

#[divan::bench(args = N_SEQUENCES)]
fn gru_passes(bencher: divan::Bencher<'_, '_>, n_sequences: usize) {
    let (gru, parameters) = gru();
    let (live, n_rows) = (vec![n_sequences; N_STEPS], n_sequences * N_STEPS);
    let (inputs, initial, keep) = (inputs(n_rows), vec![0.1; n_sequences * WIDTH], vec![1.0; n_rows]);
    let (mut transposed, mut gradients) = (vec![0.0; parameters.len()], vec![0.0; parameters.len()]);
    gru.transpose(&parameters.values, &mut transposed);
    let (mut rows, mut d_inputs) = (GruRows::default(), vec![0.0; inputs.len()]);
    bencher.bench_local(move || {
        gru.forward(&parameters.values, GruInputs::from(&inputs[..]), &live, &initial, &keep, &mut rows);
        rows.d_out.fill(0.01);
        let place = Some((&mut d_inputs[..], Store::Overwrite));
        gru.backward(
            &transposed,
            &mut gradients,
            GruInputs::from(&inputs[..]),
            &live,
            &keep,
            &mut rows,
            place,
        );
    });
}

#[divan::bench(args = N_SEQUENCES)]
fn gru_products(bencher: divan::Bencher<'_, '_>, n_sequences: usize) {
    bench_products(bencher, &gru().0.products(n_sequences * N_STEPS, &[n_sequences; N_STEPS], true));
}

/// All beginnings of a chain of this length: the steps of an episode, the episodes of an encounter, in Kuhn Poker too.
const LENGTHS: [usize; 3] = [41, 5, 100];

fn transformer() -> (TransformerLayer, Parameters) {
    let mut parameters = Parameters::default();
    let config = TransformerConfig { width: WIDTH, n_heads: 4, hidden_width: WIDTH, dropout: 0.5 };
    let layer = TransformerLayer::new(&mut parameters, "layer", config);
    layer.initialise(&mut parameters, &mut numbers());
    (layer, parameters)
}

#[divan::bench(args = LENGTHS)]
fn transformer_passes(bencher: divan::Bencher<'_, '_>, length: usize) {
    let (layer, parameters) = transformer();
    let (inputs, links) = (inputs(length), (0..length as u32).collect::<Vec<_>>());
    let lengths: Vec<usize> = (1..=length).collect();
    let sources: Vec<u32> = lengths.iter().flat_map(|n| 0..*n as u32).collect();
    let (mut transposed, mut gradients) = (vec![0.0; parameters.len()], vec![0.0; parameters.len()]);
    layer.transpose(&parameters.values, &mut transposed);
    let (mut rows, mut d_inputs) = (TransformerRows::default(), vec![0.0; inputs.len()]);
    let key = Some(DropoutKey(1));
    bencher.bench_local(move || {
        let chains = &[Chain { n_sequences: length, n_links: length }];
        let sequences = Sequences { sources: &sources, lengths: &lengths, chains, links: &links };
        layer.forward(&parameters.values, &inputs, sequences, key, &mut rows);
        rows.d_out.fill(0.01);
        layer.backward(&transposed, &mut gradients, &inputs, sequences, key, &mut rows, &mut d_inputs);
    });
}

#[divan::bench(args = LENGTHS)]
fn transformer_products(bencher: divan::Bencher<'_, '_>, length: usize) {
    let chains = [Chain { n_sequences: length, n_links: length }];
    bench_products(bencher, &transformer().0.products(length, length * (length + 1) / 2, &chains));
}
