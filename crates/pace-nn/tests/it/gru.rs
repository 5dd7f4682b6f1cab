//! The recurrent unit: its gradient, PyTorch's numbers, and single steps against a block.

use pace_nn::{Gru, GruBuffers, GruInputs, Layout, WriteMode, rows};
use serde_json::Value;

use crate::gradients::{check_gradient, numbers, transposed, weighted_sum, weights_of_outputs};
use crate::recording::{check_gradients, check_recorded, floats, sizes, weights};

/// Batch sizes of a block of four sequences.
const BATCH_SIZES: [usize; 4] = [4, 3, 3, 1];
/// Two of the sequences reset their state.
const STATE_MASK: [f32; 11] = [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0];
const N_IN: usize = 3;
const WIDTH: usize = 5;

fn gru() -> (Gru, Layout, Vec<f32>) {
    let mut layout = Layout::default();
    let gru = Gru::new(&mut layout, "gru", N_IN, WIDTH);
    let parameters = numbers(layout.len(), 3);
    (gru, layout, parameters)
}

#[test]
fn backward_pass_is_the_gradient() {
    let (gru, layout, parameters) = gru();
    let mut inputs = numbers(11 * N_IN, 1);
    let initial = numbers(4 * WIDTH, 2);
    let forward = |values: &[f32], inputs: &[f32]| {
        let mut buffers = GruBuffers::default();
        gru.forward(values, inputs.into(), &BATCH_SIZES, &initial, &STATE_MASK, &mut buffers);
        buffers
    };
    let mut buffers = forward(&parameters, &inputs);
    buffers.d_out.copy_from_slice(&weights_of_outputs(11 * WIDTH));
    let (mut gradients, transposed) = (vec![0.0; layout.len()], transposed(&layout, &parameters));
    let mut d_inputs = vec![1.0; inputs.len()];
    gru.backward(
        &transposed,
        &mut gradients,
        GruInputs::from(&inputs[..]),
        &BATCH_SIZES,
        &STATE_MASK,
        &mut buffers,
        Some((&mut d_inputs[..], WriteMode::Accumulate)),
    );
    d_inputs.iter_mut().for_each(|value| *value -= 1.0);
    let unchanged = inputs.clone();
    check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
        weighted_sum(&forward(values, &unchanged).out)
    });
    check_gradient(&mut inputs, &d_inputs, "input", |inputs| weighted_sum(&forward(&parameters, inputs).out));
}

#[test]
fn repeated_inputs_give_the_same_result_as_a_row_each() {
    const INDICES: [u32; 11] = [0, 1, 0, 2, 1, 1, 0, 2, 0, 1, 2];
    let (gru, layout, parameters) = gru();
    let (distinct, initial) = (numbers(3 * N_IN, 1), numbers(4 * WIDTH, 2));
    let transposed = transposed(&layout, &parameters);
    let forward_and_backward = |inputs: GruInputs<'_>| {
        let (mut buffers, mut gradients) = (GruBuffers::default(), vec![0.0; layout.len()]);
        gru.forward(&parameters, inputs, &BATCH_SIZES, &initial, &STATE_MASK, &mut buffers);
        buffers.d_out.copy_from_slice(&weights_of_outputs(11 * WIDTH));
        let mut d_inputs = vec![f32::NAN; inputs.rows.len()];
        let d_inputs_and_mode = Some((&mut d_inputs[..], WriteMode::Overwrite));
        gru.backward(
            &transposed,
            &mut gradients,
            inputs,
            &BATCH_SIZES,
            &STATE_MASK,
            &mut buffers,
            d_inputs_and_mode,
        );
        (buffers.out, gradients, d_inputs)
    };
    let mut all = vec![0.0; 11 * N_IN];
    rows::gather_rows(&distinct, &INDICES, N_IN, &mut all);
    let (out, gradients, d_all) = forward_and_backward(GruInputs::from(&all[..]));
    let mut d_distinct = vec![0.0; 3 * N_IN];
    rows::scatter_add_rows(&d_all, &INDICES, N_IN, &mut d_distinct);
    let (distinct_out, distinct_gradients, d_inputs) =
        forward_and_backward(GruInputs { rows: &distinct, indices: Some(&INDICES) });
    assert_eq!(distinct_out, out);
    let pairs = gradients.iter().zip(&distinct_gradients).chain(d_distinct.iter().zip(&d_inputs));
    for (one, other) in pairs {
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }
}

#[test]
fn recorded_block() {
    let recording: Value = serde_json::from_str(include_str!("../pytorch/gru.json")).expect("JSON");
    let size = |name: &str| recording[name].as_u64().expect("a size") as usize;
    let mut layout = Layout::default();
    let gru = Gru::new(&mut layout, "gru", size("n_in"), size("width"));
    let parameters = weights(&layout, &recording["parameters"]);
    let batch_sizes = sizes(&recording["batch_sizes"]);
    let (inputs, state_mask) = (floats(&recording["inputs"]), floats(&recording["state_mask"]));
    let mut buffers = GruBuffers::default();
    let initial = floats(&recording["initial"]);
    gru.forward(&parameters, GruInputs::from(&inputs[..]), &batch_sizes, &initial, &state_mask, &mut buffers);
    check_recorded(&buffers.out, &recording["outputs"], "outputs");
    buffers.d_out = floats(&recording["d_outputs"]);
    let (mut gradients, transposed) = (vec![0.0; layout.len()], transposed(&layout, &parameters));
    let mut d_inputs = vec![f32::NAN; inputs.len()];
    let d_inputs_and_mode = Some((&mut d_inputs[..], WriteMode::Overwrite));
    gru.backward(
        &transposed,
        &mut gradients,
        GruInputs::from(&inputs[..]),
        &batch_sizes,
        &state_mask,
        &mut buffers,
        d_inputs_and_mode,
    );
    check_recorded(&d_inputs, &recording["d_inputs"], "inputs");
    check_gradients(&layout, &gradients, &recording["gradients"]);
}

#[test]
fn single_steps_give_the_same_states_as_a_block() {
    let mut layout = Layout::default();
    let gru = Gru::new(&mut layout, "gru", 24, 32);
    let parameters = numbers(layout.len(), 3);
    let batch_sizes = [7, 7, 5, 2, 1, 0];
    let n_rows = batch_sizes.iter().sum::<usize>();
    let (inputs, initial) = (numbers(n_rows * 24, 1), numbers(7 * 32, 2));
    let state_mask: Vec<f32> = (0..n_rows).map(|row| if row % 6 == 4 { 0.0 } else { 1.0 }).collect();
    let mut buffers = GruBuffers::default();
    gru.forward(&parameters, GruInputs::from(&inputs[..]), &batch_sizes, &initial, &state_mask, &mut buffers);
    let (mut hidden, mut step_buffers, mut first) = (initial, GruBuffers::default(), 0);
    for n in batch_sizes {
        let hidden = &mut hidden[..n * 32];
        let inputs = &inputs[first * 24..][..n * 24];
        gru.step(&parameters, inputs, &state_mask[first..][..n], hidden, &mut step_buffers);
        assert_eq!(hidden, &buffers.out[first * 32..][..n * 32]);
        first += n;
    }
}

#[test]
fn initial_weights_are_orthogonal_and_initial_biases_zero() {
    let (gru, layout, mut parameters) = gru();
    let mut source = numbers(1000, 4).into_iter().map(|number| f64::from(number).abs());
    gru.initialise(&mut parameters, &mut || source.next().expect("enough numbers"));
    for tensor in layout.tensors() {
        let values = &parameters[tensor.id.range()];
        if tensor.name.ends_with("bias") {
            assert!(values.iter().all(|value| *value == 0.0));
            continue;
        }
        for (index, one) in values.chunks_exact(3 * WIDTH).enumerate() {
            for (other_index, other) in values.chunks_exact(3 * WIDTH).enumerate() {
                let product: f32 = one.iter().zip(other).map(|(one, other)| one * other).sum();
                assert!((product - f32::from(index == other_index)).abs() < 1e-5);
            }
        }
    }
}
