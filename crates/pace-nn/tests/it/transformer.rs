//! Layer norm, positions, attention and the Transformer layer: gradients, PyTorch's numbers, independence of sequences.

use pace_nn::{
    Attention, AttentionBuffers, Dropout, DropoutKey, LayerNorm, Layout, PositionEmbedding, PrefixGroup,
    Sequences, TransformerBuffers, TransformerConfig, TransformerLayer, WriteMode,
};
use serde_json::Value;

use crate::gradients::{check_gradient, numbers, transposed, weighted_sum, weights_of_outputs};
use crate::recording::{check_gradients, check_recorded, floats, sizes, weights};

const WIDTH: usize = 6;

/// Owned version of [`Sequences`].
#[derive(Clone, Debug, Default)]
struct SequenceList {
    sources: Vec<u32>,
    lengths: Vec<usize>,
    prefix_groups: Vec<PrefixGroup>,
    prefix: Vec<u32>,
}

impl SequenceList {
    /// Adds a group with this prefix; each sequence is given by the number of its prefix inputs and its suffix.
    fn with_group(mut self, prefix: &[u32], sequences: &[(usize, Option<u32>)]) -> SequenceList {
        for (prefix_len, suffix) in sequences {
            self.sources.extend(prefix[..*prefix_len].iter().chain(suffix));
            self.lengths.push(prefix_len + usize::from(suffix.is_some()));
        }
        self.prefix.extend(prefix);
        self.prefix_groups.push(PrefixGroup { n_sequences: sequences.len(), prefix_len: prefix.len() });
        self
    }

    /// Returns sequences of these lengths that share no input.
    fn separate(lengths: &[usize]) -> SequenceList {
        lengths.iter().fold(SequenceList::default(), |listed, n| {
            let first = listed.sources.len() as u32;
            listed.with_group(&(first..first + *n as u32).collect::<Vec<_>>(), &[(*n, None)])
        })
    }

    fn sequences(&self) -> Sequences<'_> {
        let SequenceList { sources, lengths, prefix_groups, prefix } = self;
        Sequences { sources, lengths, prefix_groups, prefix }
    }

    fn n_inputs(&self) -> usize {
        self.sources.iter().chain(&self.prefix).max().map_or(0, |source| *source as usize + 1)
    }
}

/// Returns groups with all special cases: a prefix that is used in whole, in part or by no sequence, an empty prefix, empty
/// sequences, sequences with and without a suffix, and a suffix of several sequences.
fn prefix_groups() -> SequenceList {
    SequenceList::default()
        .with_group(&[2, 0], &[])
        .with_group(
            &[0, 1, 2, 3, 9],
            &[
                (0, None),
                (0, Some(4)),
                (1, None),
                (1, Some(5)),
                (3, Some(4)),
                (3, None),
                (4, None),
                (4, Some(6)),
            ],
        )
        .with_group(&[], &[(0, Some(7))])
        .with_group(&[7, 8], &[(2, None)])
}

/// Returns the tested combinations of a dropout key and sequences.
fn cases() -> Vec<(Option<DropoutKey>, SequenceList)> {
    let separate = SequenceList::separate(&[3, 0, 1, 4]);
    vec![
        (None, separate.clone()),
        (Some(DropoutKey(5)), separate),
        (None, prefix_groups()),
        (Some(DropoutKey(5)), prefix_groups()),
    ]
}

#[test]
fn layer_norm() {
    const N_ROWS: usize = 8;
    let mut layout = Layout::default();
    let norm = LayerNorm::new(&mut layout, "norm", WIDTH);
    let parameters = numbers(layout.len(), 3);
    let mut inputs = numbers(N_ROWS * WIDTH, 1);
    let forward = |values: &[f32], inputs: &[f32]| {
        let (mut rows, mut scales) = (inputs.to_vec(), vec![f32::NAN; N_ROWS]);
        let mut output = vec![f32::NAN; N_ROWS * WIDTH];
        norm.forward(values, &mut rows, &mut scales, &mut output);
        (rows, scales, output)
    };
    let (normalised, scales, _) = forward(&parameters, &inputs);
    for row in normalised.chunks_exact(WIDTH) {
        let mean = row.iter().sum::<f32>() / WIDTH as f32;
        let variance = row.iter().map(|value| value * value).sum::<f32>() / WIDTH as f32;
        assert!(mean.abs() < 1e-6 && (variance - 1.0).abs() < 1e-3, "{mean} {variance}");
    }
    let (mut gradients, mut d_rows) = (vec![0.0; layout.len()], weights_of_outputs(N_ROWS * WIDTH));
    let back = transposed(&layout, &parameters);
    norm.backward(&back, &mut gradients, &normalised, &scales, &mut d_rows);
    let unchanged = inputs.clone();
    check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
        weighted_sum(&forward(values, &unchanged).2)
    });
    check_gradient(&mut inputs, &d_rows, "input", |inputs| weighted_sum(&forward(&parameters, inputs).2));
}

#[test]
fn position_embedding() {
    let mut layout = Layout::default();
    let positions = PositionEmbedding::new(&mut layout, "positions", 5, WIDTH);
    let parameters = numbers(layout.len(), 3);
    let (inputs, places) = (numbers(4 * WIDTH, 1), [0, 3, 1, 3]);
    let forward = |values: &[f32]| {
        let mut rows = inputs.clone();
        positions.forward(values, &places, &mut rows);
        rows
    };
    let mut gradients = vec![0.0; layout.len()];
    positions.backward(&mut gradients, &places, &weights_of_outputs(4 * WIDTH));
    check_gradient(&mut parameters.clone(), &gradients, "table", |values| weighted_sum(&forward(values)));
}

#[test]
#[cfg_attr(
    miri,
    ignore = "takes more than three minutes; the test of scores of any size covers the same passes"
)]
fn attention() {
    for (key, listed) in cases() {
        let mut layout = Layout::default();
        let attention = Attention::new(&mut layout, "attention", WIDTH, 2, Dropout::new(0.3));
        let parameters = numbers(layout.len(), 3);
        let (sequences, n) = (listed.sequences(), listed.sources.len() * WIDTH);
        let mut inputs = numbers(listed.n_inputs() * WIDTH, 1);
        let forward = |values: &[f32], inputs: &[f32]| {
            let (mut buffers, mut output) = (AttentionBuffers::default(), vec![f32::NAN; n]);
            attention.forward(values, inputs, sequences, key, &mut buffers, &mut output);
            (buffers, output)
        };
        let mut buffers = forward(&parameters, &inputs).0;
        let mut gradients = vec![0.0; layout.len()];
        let (mut d_output, mut d_inputs) = (weights_of_outputs(n), vec![1.0; inputs.len()]);
        attention.backward(
            &transposed(&layout, &parameters),
            &mut gradients,
            &inputs,
            sequences,
            &mut buffers,
            &mut d_output,
            (&mut d_inputs, WriteMode::Accumulate),
        );
        d_inputs.iter_mut().for_each(|value| *value -= 1.0);
        let unchanged = inputs.clone();
        check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
            weighted_sum(&forward(values, &unchanged).1)
        });
        check_gradient(&mut inputs, &d_inputs, "input", |inputs| {
            weighted_sum(&forward(&parameters, inputs).1)
        });
    }
}

#[test]
fn scores_of_any_size_give_finite_weights() {
    // Along the prefix, scores rise, fall and rise again by more than the range of `exp`.
    let mut layout = Layout::default();
    let attention = Attention::new(&mut layout, "attention", 1, 1, Dropout::new(0.0));
    let parameters = vec![1.0; layout.len()];
    let listed =
        SequenceList::default().with_group(&[0, 1, 2, 3], &[(1, None), (2, None), (3, Some(4)), (4, None)]);
    let inputs = [20.0, 30.0, -30.0, 31.0, 40.0];
    let (mut buffers, mut output) = (AttentionBuffers::default(), vec![f32::NAN; listed.sources.len()]);
    attention.forward(&parameters, &inputs, listed.sequences(), None, &mut buffers, &mut output);
    // Query, key and value are the input plus 1, the output is the head's output plus 1. A row attends to the largest key, or
    // to the smallest one if its query is negative.
    let expected =
        [21.0, 31.0, 31.0, 41.0, 41.0, -29.0, 41.0, 32.0, 32.0, -29.0, 32.0].map(|value| value + 1.0);
    for (found, expected) in output.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-4, "{output:?}");
    }
    let back = transposed(&layout, &parameters);
    let (mut gradients, mut d_inputs) = (vec![0.0; layout.len()], vec![f32::NAN; inputs.len()]);
    let mut d_output = vec![1.0; output.len()];
    let d = (&mut d_inputs[..], WriteMode::Overwrite);
    attention.backward(&back, &mut gradients, &inputs, listed.sequences(), &mut buffers, &mut d_output, d);
    // The number of rows that attend to each input.
    for (found, expected) in d_inputs.iter().zip([1.0, 2.0, 2.0, 3.0, 3.0]) {
        assert!((found - expected).abs() < 1e-3, "{d_inputs:?}");
    }
}

fn layer() -> (TransformerLayer, Layout, Vec<f32>) {
    let mut layout = Layout::default();
    let config = TransformerConfig { width: WIDTH, n_heads: 2, hidden_width: 5, dropout: 0.3 };
    let layer = TransformerLayer::new(&mut layout, "layer", config);
    let parameters = numbers(layout.len(), 3);
    (layer, layout, parameters)
}

#[test]
#[cfg_attr(miri, ignore = "takes more than a minute; its parts have tests of their own")]
fn transformer_layer() {
    let (layer, layout, parameters) = layer();
    for (key, listed) in cases() {
        let sequences = listed.sequences();
        let mut inputs = numbers(listed.n_inputs() * WIDTH, 1);
        let forward = |values: &[f32], inputs: &[f32]| {
            let mut buffers = TransformerBuffers::default();
            layer.forward(values, inputs, sequences, key, &mut buffers);
            buffers
        };
        let mut buffers = forward(&parameters, &inputs);
        buffers.d_out.copy_from_slice(&weights_of_outputs(listed.sources.len() * WIDTH));
        let (mut gradients, mut d_inputs) = (vec![0.0; layout.len()], vec![f32::NAN; inputs.len()]);
        let back = transposed(&layout, &parameters);
        layer.backward(&back, &mut gradients, &inputs, sequences, key, &mut buffers, &mut d_inputs);
        let unchanged = inputs.clone();
        check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
            weighted_sum(&forward(values, &unchanged).out)
        });
        check_gradient(&mut inputs, &d_inputs, "input", |inputs| {
            weighted_sum(&forward(&parameters, inputs).out)
        });
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes more than a minute; its parts have tests of their own")]
fn sequences_do_not_depend_on_each_other() {
    let (layer, _, parameters) = layer();
    for (_, listed) in cases() {
        let inputs = numbers(listed.n_inputs() * WIDTH, 1);
        let mut buffers = TransformerBuffers::default();
        layer.forward(&parameters, &inputs, listed.sequences(), None, &mut buffers);
        let mut first = 0;
        for n in &listed.lengths {
            let mut inputs_alone = vec![f32::NAN; n * WIDTH];
            let sources = &listed.sources[first..first + n];
            for (row, source) in inputs_alone.chunks_exact_mut(WIDTH).zip(sources) {
                row.copy_from_slice(&inputs[*source as usize * WIDTH..][..WIDTH]);
            }
            let mut alone = TransformerBuffers::default();
            let separate = SequenceList::separate(&[*n]);
            layer.forward(&parameters, &inputs_alone, separate.sequences(), None, &mut alone);
            for (alone, together) in alone.out.iter().zip(&buffers.out[first * WIDTH..]) {
                assert!((alone - together).abs() < 1e-5, "{alone} {together}");
            }
            first += n;
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes more than a minute; its parts have tests of their own")]
fn recorded_layer_with_positions() {
    let recording: Value = serde_json::from_str(include_str!("../pytorch/transformer.json")).expect("JSON");
    let size = |name: &str| recording[name].as_u64().expect("a size") as usize;
    let mut layout = Layout::default();
    let config = TransformerConfig {
        width: size("width"),
        n_heads: size("n_heads"),
        hidden_width: size("hidden_width"),
        dropout: recording["dropout"].as_f64().expect("a share") as f32,
    };
    let positions = PositionEmbedding::new(&mut layout, "positions", size("n_positions"), config.width);
    let layer = TransformerLayer::new(&mut layout, "layer", config);
    let parameters = weights(&layout, &recording["parameters"]);
    let lengths = sizes(&recording["lengths"]);
    let listed = SequenceList::separate(&lengths);
    let sequences = listed.sequences();
    let places: Vec<u32> = lengths.iter().flat_map(|n| 0..*n as u32).collect();
    let mut inputs = floats(&recording["inputs"]);
    positions.forward(&parameters, &places, &mut inputs);
    let back = transposed(&layout, &parameters);
    let mut buffers = TransformerBuffers::default();
    for case in recording["cases"].as_array().expect("a list") {
        let is_dropping = case["is_dropping"].as_bool().expect("a flag");
        let key = is_dropping.then(|| DropoutKey(recording["key"].as_u64().expect("a key")));
        layer.forward(&parameters, &inputs, sequences, key, &mut buffers);
        check_recorded(&buffers.out, &case["outputs"], "outputs");
        buffers.d_out = floats(&recording["d_outputs"]);
        let (mut gradients, mut d_inputs) = (vec![0.0; layout.len()], vec![f32::NAN; inputs.len()]);
        layer.backward(&back, &mut gradients, &inputs, sequences, key, &mut buffers, &mut d_inputs);
        positions.backward(&mut gradients, &places, &d_inputs);
        check_recorded(&d_inputs, &case["d_inputs"], "inputs");
        check_gradients(&layout, &gradients, &case["gradients"]);
    }
}

#[test]
fn initial_weights_are_within_their_bounds() {
    let (layer, mut layout, _) = layer();
    let positions = PositionEmbedding::new(&mut layout, "positions", 4, WIDTH);
    let mut parameters = vec![f32::NAN; layout.len()];
    let mut source = numbers(2000, 4).into_iter().map(|number| f64::from(number).abs());
    let mut uniform = || source.next().expect("enough numbers");
    layer.initialise(&mut parameters, &mut uniform);
    positions.initialise(&mut parameters, &mut uniform);
    for tensor in layout.tensors() {
        let values = &parameters[tensor.id.range()];
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
        let largest = values.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        assert!(largest <= bound && largest >= 0.3 * bound, "{}: {largest} {bound}", tensor.name);
    }
}
