//! Attention and what is built on it: gradients, PyTorch's numbers, and that sequences keep to themselves.

use pace_nn::{
    Attention, AttentionRows, Dropout, DropoutKey, LayerNorm, Parameters, Positions, Sequences, Store,
    TransformerConfig, TransformerLayer, TransformerRows,
};
use serde_json::Value;

use crate::gradients::{check_gradient, numbers, weigh, weights_of_outputs};
use crate::recording::{check_gradients, check_recorded, fill, floats, sizes};

/// Sequences of several lengths; an empty one has no rows.
const LENGTHS: [usize; 4] = [3, 0, 1, 4];
const N_ROWS: usize = 8;
const WIDTH: usize = 6;

/// Every row an input of its own, and the same sequences of fewer inputs, as where they begin alike.
const SOURCES: [[u32; N_ROWS]; 2] = [[0, 1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 0, 0, 1, 2, 3]];

/// What is dropped, and where rows come from.
const CASES: [(Option<DropoutKey>, [u32; N_ROWS]); 3] =
    [(None, SOURCES[0]), (Some(DropoutKey(5)), SOURCES[0]), (Some(DropoutKey(5)), SOURCES[1])];

fn apart(lengths: &[usize]) -> Vec<u32> {
    (0..lengths.iter().sum::<usize>() as u32).collect()
}

fn transposed<F: Fn(&[f32], &mut [f32])>(parameters: &Parameters, transpose: F) -> Vec<f32> {
    let mut transposed = vec![f32::NAN; parameters.len()];
    transpose(&parameters.values, &mut transposed);
    transposed
}

#[test]
fn layer_norm() {
    let mut parameters = Parameters::default();
    let norm = LayerNorm::new(&mut parameters, "norm", WIDTH);
    parameters.values = numbers(parameters.len(), 3);
    let mut inputs = numbers(N_ROWS * WIDTH, 1);
    let forward = |values: &[f32], inputs: &[f32]| {
        let (mut rows, mut scales) = (inputs.to_vec(), vec![f32::NAN; N_ROWS]);
        let mut output = vec![f32::NAN; N_ROWS * WIDTH];
        norm.forward(values, &mut rows, &mut scales, &mut output);
        (rows, scales, output)
    };
    let (normalised, scales, _) = forward(&parameters.values, &inputs);
    for row in normalised.chunks_exact(WIDTH) {
        let mean = row.iter().sum::<f32>() / WIDTH as f32;
        let variance = row.iter().map(|value| value * value).sum::<f32>() / WIDTH as f32;
        assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-3, "{mean} {variance}");
    }
    let (mut gradients, mut d_rows) = (vec![0.0; parameters.len()], weights_of_outputs(N_ROWS * WIDTH));
    let back = transposed(&parameters, |from, to| norm.transpose(from, to));
    norm.backward(&back, &mut gradients, &normalised, &scales, &mut d_rows);
    let kept = inputs.clone();
    check_gradient(&mut parameters.values.clone(), &gradients, "weight", |values| {
        weigh(&forward(values, &kept).2)
    });
    check_gradient(&mut inputs, &d_rows, "input", |inputs| weigh(&forward(&parameters.values, inputs).2));
}

#[test]
fn positions() {
    let mut parameters = Parameters::default();
    let positions = Positions::new(&mut parameters, "positions", 5, WIDTH);
    parameters.values = numbers(parameters.len(), 3);
    let (inputs, places) = (numbers(4 * WIDTH, 1), [0, 3, 1, 3]);
    let forward = |values: &[f32]| {
        let mut rows = inputs.clone();
        positions.forward(values, &places, &mut rows);
        rows
    };
    let mut gradients = vec![0.0; parameters.len()];
    positions.backward(&mut gradients, &places, &weights_of_outputs(4 * WIDTH));
    check_gradient(&mut parameters.values.clone(), &gradients, "table", |values| weigh(&forward(values)));
}

#[test]
fn attention() {
    for (key, sources) in CASES {
        let mut parameters = Parameters::default();
        let attention = Attention::new(&mut parameters, "attention", WIDTH, 2, Dropout::new(0.3));
        parameters.values = numbers(parameters.len(), 3);
        let sequences = Sequences { sources: &sources, lengths: &LENGTHS };
        let mut inputs = numbers((1 + sources[N_ROWS - 1] as usize) * WIDTH, 1);
        let forward = |values: &[f32], inputs: &[f32]| {
            let (mut rows, mut output) = (AttentionRows::default(), vec![f32::NAN; N_ROWS * WIDTH]);
            attention.forward(values, inputs, sequences, key, &mut rows, &mut output);
            (rows, output)
        };
        let mut rows = forward(&parameters.values, &inputs).0;
        let mut gradients = vec![0.0; parameters.len()];
        let (mut d_output, mut d_inputs) = (weights_of_outputs(N_ROWS * WIDTH), vec![1.0; inputs.len()]);
        attention.backward(
            &transposed(&parameters, |from, to| attention.transpose(from, to)),
            &mut gradients,
            &inputs,
            sequences,
            key,
            &mut rows,
            &mut d_output,
            (&mut d_inputs, Store::Add),
        );
        d_inputs.iter_mut().for_each(|value| *value -= 1.0);
        let kept = inputs.clone();
        check_gradient(&mut parameters.values.clone(), &gradients, "weight", |values| {
            weigh(&forward(values, &kept).1)
        });
        check_gradient(&mut inputs, &d_inputs, "input", |inputs| {
            weigh(&forward(&parameters.values, inputs).1)
        });
    }
}

fn layer() -> (TransformerLayer, Parameters) {
    let mut parameters = Parameters::default();
    let config = TransformerConfig { width: WIDTH, n_heads: 2, hidden_width: 5, dropout: 0.3 };
    let layer = TransformerLayer::new(&mut parameters, "layer", config);
    parameters.values = numbers(parameters.len(), 3);
    (layer, parameters)
}

#[test]
fn a_whole_layer() {
    let (layer, parameters) = layer();
    for (key, sources) in CASES {
        let sequences = Sequences { sources: &sources, lengths: &LENGTHS };
        let mut inputs = numbers((1 + sources[N_ROWS - 1] as usize) * WIDTH, 1);
        let forward = |values: &[f32], inputs: &[f32]| {
            let mut rows = TransformerRows::default();
            layer.forward(values, inputs, sequences, key, &mut rows);
            rows
        };
        let mut rows = forward(&parameters.values, &inputs);
        rows.d_out.copy_from_slice(&weights_of_outputs(N_ROWS * WIDTH));
        let (mut gradients, mut d_inputs) = (vec![0.0; parameters.len()], vec![f32::NAN; inputs.len()]);
        let back = transposed(&parameters, |from, to| layer.transpose(from, to));
        layer.backward(&back, &mut gradients, &inputs, sequences, key, &mut rows, &mut d_inputs);
        let kept = inputs.clone();
        check_gradient(&mut parameters.values.clone(), &gradients, "weight", |values| {
            weigh(&forward(values, &kept).out)
        });
        check_gradient(&mut inputs, &d_inputs, "input", |inputs| {
            weigh(&forward(&parameters.values, inputs).out)
        });
    }
}

#[test]
fn a_sequence_sees_only_itself() {
    let (layer, parameters) = layer();
    let inputs = numbers(N_ROWS * WIDTH, 1);
    let mut rows = TransformerRows::default();
    let sequences = Sequences { sources: &SOURCES[0], lengths: &LENGTHS };
    layer.forward(&parameters.values, &inputs, sequences, None, &mut rows);
    let mut first = 0;
    for n in LENGTHS {
        let mut alone = TransformerRows::default();
        let sequences = Sequences { sources: &apart(&[n]), lengths: &[n] };
        let own = &inputs[first * WIDTH..][..n * WIDTH];
        layer.forward(&parameters.values, own, sequences, None, &mut alone);
        for (alone, among) in alone.out.iter().zip(&rows.out[first * WIDTH..]) {
            assert!((alone - among).abs() < 1e-5, "{alone} {among}");
        }
        first += n;
    }
}

#[test]
fn a_recorded_layer_with_positions() {
    let recording: Value = serde_json::from_str(include_str!("../pytorch/transformer.json")).expect("JSON");
    let size = |name: &str| recording[name].as_u64().expect("a size") as usize;
    let mut parameters = Parameters::default();
    let config = TransformerConfig {
        width: size("width"),
        n_heads: size("n_heads"),
        hidden_width: size("hidden_width"),
        dropout: recording["dropout"].as_f64().expect("a share") as f32,
    };
    let positions = Positions::new(&mut parameters, "positions", size("n_positions"), config.width);
    let layer = TransformerLayer::new(&mut parameters, "layer", config);
    fill(&mut parameters, &recording["parameters"]);
    let lengths = sizes(&recording["lengths"]);
    let sequences = Sequences { sources: &apart(&lengths), lengths: &lengths };
    let places: Vec<u32> = lengths.iter().flat_map(|n| 0..*n as u32).collect();
    let mut inputs = floats(&recording["inputs"]);
    positions.forward(&parameters.values, &places, &mut inputs);
    let back = transposed(&parameters, |from, to| layer.transpose(from, to));
    let mut rows = TransformerRows::default();
    for case in recording["cases"].as_array().expect("a list") {
        let is_dropping = case["is_dropping"].as_bool().expect("a flag");
        let key = is_dropping.then(|| DropoutKey(recording["key"].as_u64().expect("a key")));
        layer.forward(&parameters.values, &inputs, sequences, key, &mut rows);
        check_recorded(&rows.out, &case["outputs"], "outputs");
        rows.d_out = floats(&recording["d_outputs"]);
        let (mut gradients, mut d_inputs) = (vec![0.0; parameters.len()], vec![f32::NAN; inputs.len()]);
        layer.backward(&back, &mut gradients, &inputs, sequences, key, &mut rows, &mut d_inputs);
        positions.backward(&mut gradients, &places, &d_inputs);
        check_recorded(&d_inputs, &case["d_inputs"], "inputs");
        check_gradients(&parameters, &gradients, &case["gradients"]);
    }
}

#[test]
fn the_products_are_those_of_both_passes() {
    let (layer, _) = layer();
    let flops: f64 = layer.products(N_ROWS, &LENGTHS).iter().map(|product| product.flops()).sum();
    let linear = N_ROWS * (4 * WIDTH * WIDTH + 2 * WIDTH * 5);
    let looks = 2 * (9 + 1 + 16) * WIDTH;
    assert_eq!(flops, 3.0 * 2.0 * (linear + looks) as f64);
}

#[test]
fn first_weights_are_within_their_bounds() {
    let (layer, mut parameters) = layer();
    let positions = Positions::new(&mut parameters, "positions", 4, WIDTH);
    let mut source = numbers(2000, 4).into_iter().map(|number| f64::from(number).abs());
    let mut uniform = || source.next().expect("enough numbers");
    layer.initialise(&mut parameters, &mut uniform);
    positions.initialise(&mut parameters, &mut uniform);
    for tensor in parameters.tensors() {
        let values = &parameters.values[tensor.id.range()];
        let bound = match tensor.name.as_str() {
            name if name.ends_with("gain") => 1.0,
            name if name.ends_with("norm.bias") || name.contains("attention.") && name.ends_with("bias") => {
                0.0
            }
            "layer.attention.projection.weight" => (6.0f32 / (4 * WIDTH) as f32).sqrt(),
            name if name.starts_with("layer.forward.1") => 1.0 / 5f32.sqrt(),
            "positions.table" => 5.0,
            _ => 1.0 / (WIDTH as f32).sqrt(),
        };
        let largest = values.iter().fold(0.0f32, |most, value| most.max(value.abs()));
        assert!(largest <= bound && largest >= 0.3 * bound, "{}: {largest} {bound}", tensor.name);
    }
}
