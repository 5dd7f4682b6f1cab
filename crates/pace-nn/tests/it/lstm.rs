//! The long short-term memory: its gradient, PyTorch's numbers, and its initial weights.

use pace_nn::{InputPart, Layout, Lstm, LstmBuffers, WindowInputs};
use serde_json::Value;

use crate::gradients::{check_gradient, numbers, transposed, weighted_sum, weights_of_outputs};
use crate::recording::{check_gradients, check_recorded, floats, sizes, weights};

#[test]
fn backward_pass_is_the_gradient() {
    const N_WINDOWS: usize = 3;
    const WIDTH: usize = 5;
    // Windows of four steps over four inputs, of which input 0 stands before the first step.
    const INDICES: [u32; 12] = [0, 0, 0, 0, 0, 1, 0, 1, 2, 1, 2, 3];
    let mut layout = Layout::default();
    let lstm = Lstm::new(&mut layout, "lstm", &[3, 2], WIDTH);
    let parameters = numbers(layout.len(), 3);
    let dense = numbers(4 * 3, 1);
    // Class 255 means no class.
    let classes = [255, 255, 1, 0];
    let parts = [InputPart::Dense(&dense), InputPart::OneHot(&classes)];
    let inputs = WindowInputs { parts: &parts, n_inputs: 4, indices: &INDICES, n_windows: N_WINDOWS };
    // The buffers are left over from a larger pass.
    let mut buffers = LstmBuffers::default();
    let large = numbers(9 * 3, 5);
    let large_parts = [InputPart::Dense(&large), InputPart::OneHot(&[1; 9])];
    let large_indices: Vec<u32> = (0..45).map(|index| index % 9).collect();
    let large_inputs =
        WindowInputs { parts: &large_parts, n_inputs: 9, indices: &large_indices, n_windows: 9 };
    lstm.forward(&parameters, &large_inputs, &mut buffers);
    buffers.d_out.fill(1.0);
    lstm.backward(
        &transposed(&layout, &parameters),
        &mut vec![0.0; layout.len()],
        &large_inputs,
        &mut buffers,
    );
    lstm.forward(&parameters, &inputs, &mut buffers);
    buffers.d_out[..N_WINDOWS * WIDTH].copy_from_slice(&weights_of_outputs(N_WINDOWS * WIDTH));
    let mut gradients = vec![0.0; layout.len()];
    lstm.backward(&transposed(&layout, &parameters), &mut gradients, &inputs, &mut buffers);
    check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
        let mut buffers = LstmBuffers::default();
        lstm.forward(values, &inputs, &mut buffers);
        weighted_sum(&buffers.out)
    });
}

#[test]
fn recorded_windows() {
    let recording: Value = serde_json::from_str(include_str!("../pytorch/lstm.json")).expect("JSON");
    let size = |name: &str| recording[name].as_u64().expect("a size") as usize;
    let mut layout = Layout::default();
    let lstm = Lstm::new(&mut layout, "lstm", &[size("n_in")], size("width"));
    let parameters = weights(&layout, &recording["parameters"]);
    let rows = floats(&recording["inputs"]);
    let indices: Vec<u32> = sizes(&recording["indices"]).into_iter().map(|index| index as u32).collect();
    let inputs = WindowInputs {
        parts: &[InputPart::Dense(&rows)],
        n_inputs: rows.len() / size("n_in"),
        indices: &indices,
        n_windows: size("n_windows"),
    };
    let mut buffers = LstmBuffers::default();
    lstm.forward(&parameters, &inputs, &mut buffers);
    check_recorded(&buffers.out, &recording["outputs"], "outputs");
    buffers.d_out = floats(&recording["d_outputs"]);
    let mut gradients = vec![0.0; layout.len()];
    lstm.backward(&transposed(&layout, &parameters), &mut gradients, &inputs, &mut buffers);
    check_gradients(&layout, &gradients, &recording["gradients"]);
}

#[test]
fn initial_weights_are_uniform_within_the_inverse_root_of_the_width() {
    let mut layout = Layout::default();
    let lstm = Lstm::new(&mut layout, "lstm", &[3], 4);
    let mut parameters = vec![f32::NAN; layout.len()];
    let mut source = numbers(1000, 4).into_iter().map(|number| f64::from(number).abs());
    lstm.initialise(&mut parameters, &mut || source.next().expect("enough numbers"));
    assert!(parameters.iter().all(|value| value.abs() <= 0.5));
    let largest = parameters.iter().copied().fold(0.0, f32::max);
    let smallest = parameters.iter().copied().fold(0.0, f32::min);
    assert!(largest > 0.45 && smallest < -0.45, "{smallest} {largest}");
}
