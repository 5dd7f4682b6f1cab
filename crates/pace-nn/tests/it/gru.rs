//! The recurrent unit: its gradient, PyTorch's numbers, and that a step is a step.

use pace_nn::{Gru, GruBuffers, GruInputs, Layout, WriteMode, rows};
use serde_json::Value;

use crate::gradients::{check_gradient, numbers, weigh, weights_of_outputs};
use crate::recording::{check_gradients, check_recorded, floats, sizes, weights};

/// A block of four sequences, two of which begin anew.
const LIVE: [usize; 4] = [4, 3, 3, 1];
const KEEP: [f32; 11] = [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0];
const N_IN: usize = 3;
const WIDTH: usize = 5;

fn gru() -> (Gru, Layout, Vec<f32>) {
    let mut layout = Layout::default();
    let gru = Gru::new(&mut layout, "gru", N_IN, WIDTH);
    let parameters = numbers(layout.len(), 3);
    (gru, layout, parameters)
}

#[test]
fn the_way_back_is_the_gradient() {
    let (gru, layout, parameters) = gru();
    let mut inputs = numbers(11 * N_IN, 1);
    let initial = numbers(4 * WIDTH, 2);
    let forward = |values: &[f32], inputs: &[f32]| {
        let mut rows = GruBuffers::default();
        gru.forward(values, inputs.into(), &LIVE, &initial, &KEEP, &mut rows);
        rows
    };
    let mut rows = forward(&parameters, &inputs);
    rows.d_out.copy_from_slice(&weights_of_outputs(11 * WIDTH));
    let (mut gradients, mut transposed) = (vec![0.0; layout.len()], vec![f32::NAN; layout.len()]);
    layout.transpose(&parameters, &mut transposed);
    let mut d_inputs = vec![1.0; inputs.len()];
    let places = Some((&mut d_inputs[..], WriteMode::Accumulate));
    gru.backward(&transposed, &mut gradients, GruInputs::from(&inputs[..]), &LIVE, &KEEP, &mut rows, places);
    d_inputs.iter_mut().for_each(|value| *value -= 1.0);
    let kept = inputs.clone();
    check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
        weigh(&forward(values, &kept).out)
    });
    check_gradient(&mut inputs, &d_inputs, "input", |inputs| weigh(&forward(&parameters, inputs).out));
}

#[test]
fn inputs_that_recur_count_as_often_as_they_occur() {
    const PLACES: [u32; 11] = [0, 1, 0, 2, 1, 1, 0, 2, 0, 1, 2];
    let (gru, layout, parameters) = gru();
    let (distinct, initial) = (numbers(3 * N_IN, 1), numbers(4 * WIDTH, 2));
    let mut transposed = vec![f32::NAN; layout.len()];
    layout.transpose(&parameters, &mut transposed);
    let both_ways = |inputs: GruInputs<'_>| {
        let (mut rows, mut gradients) = (GruBuffers::default(), vec![0.0; layout.len()]);
        gru.forward(&parameters, inputs, &LIVE, &initial, &KEEP, &mut rows);
        rows.d_out.copy_from_slice(&weights_of_outputs(11 * WIDTH));
        let mut d_inputs = vec![f32::NAN; inputs.rows.len()];
        let to = Some((&mut d_inputs[..], WriteMode::Overwrite));
        gru.backward(&transposed, &mut gradients, inputs, &LIVE, &KEEP, &mut rows, to);
        (rows.out, gradients, d_inputs)
    };
    let mut all = vec![0.0; 11 * N_IN];
    rows::gather_rows(&distinct, &PLACES, N_IN, &mut all);
    let (out, gradients, d_all) = both_ways(GruInputs::from(&all[..]));
    let mut d_differing = vec![f32::NAN; 3 * N_IN];
    rows::scatter_add_rows(&d_all, &PLACES, N_IN, &mut d_differing);
    let (recurring_out, recurring_gradients, d_inputs) =
        both_ways(GruInputs { rows: &distinct, places: Some(&PLACES) });
    assert_eq!(recurring_out, out);
    let pairs = gradients.iter().zip(&recurring_gradients).chain(d_differing.iter().zip(&d_inputs));
    for (one, other) in pairs {
        assert!((one - other).abs() < 1e-5, "{one} {other}");
    }
}

#[test]
fn a_recorded_block() {
    let recording: Value = serde_json::from_str(include_str!("../pytorch/gru.json")).expect("JSON");
    let size = |name: &str| recording[name].as_u64().expect("a size") as usize;
    let mut layout = Layout::default();
    let gru = Gru::new(&mut layout, "gru", size("n_in"), size("width"));
    let parameters = weights(&layout, &recording["parameters"]);
    let batch_sizes = sizes(&recording["batch_sizes"]);
    let (inputs, keep) = (floats(&recording["inputs"]), floats(&recording["keep"]));
    let mut rows = GruBuffers::default();
    let initial = floats(&recording["initial"]);
    gru.forward(&parameters, GruInputs::from(&inputs[..]), &batch_sizes, &initial, &keep, &mut rows);
    check_recorded(&rows.out, &recording["outputs"], "outputs");
    rows.d_out = floats(&recording["d_outputs"]);
    let (mut gradients, mut transposed) = (vec![0.0; layout.len()], vec![f32::NAN; layout.len()]);
    layout.transpose(&parameters, &mut transposed);
    let mut d_inputs = vec![f32::NAN; inputs.len()];
    let places = Some((&mut d_inputs[..], WriteMode::Overwrite));
    gru.backward(
        &transposed,
        &mut gradients,
        GruInputs::from(&inputs[..]),
        &batch_sizes,
        &keep,
        &mut rows,
        places,
    );
    check_recorded(&d_inputs, &recording["d_inputs"], "inputs");
    check_gradients(&layout, &gradients, &recording["gradients"]);
}

#[test]
fn steps_give_the_numbers_of_a_block() {
    let mut layout = Layout::default();
    let gru = Gru::new(&mut layout, "gru", 24, 32);
    let parameters = numbers(layout.len(), 3);
    let batch_sizes = [7, 7, 5, 2, 1, 0];
    let n_rows = batch_sizes.iter().sum::<usize>();
    let (inputs, initial) = (numbers(n_rows * 24, 1), numbers(7 * 32, 2));
    let keep: Vec<f32> = (0..n_rows).map(|row| if row % 6 == 4 { 0.0 } else { 1.0 }).collect();
    let mut rows = GruBuffers::default();
    gru.forward(&parameters, GruInputs::from(&inputs[..]), &batch_sizes, &initial, &keep, &mut rows);
    let (mut hidden, mut step_rows, mut first) = (initial, GruBuffers::default(), 0);
    for n in batch_sizes {
        let hidden = &mut hidden[..n * 32];
        let inputs = &inputs[first * 24..][..n * 24];
        gru.step(&parameters, inputs, &keep[first..][..n], hidden, &mut step_rows);
        assert_eq!(hidden, &rows.out[first * 32..][..n * 32]);
        first += n;
    }
}

#[test]
fn first_weights_are_orthogonal_and_first_biases_zero() {
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
