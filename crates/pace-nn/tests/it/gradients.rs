//! Gradients of layers and losses against finite differences, and the accuracy of kernels.

use pace_nn::kernels;
use pace_nn::loss::{PolicyLoss, PolicyTerms, clipped_value, cross_entropy, softmax_rows};
use pace_nn::{Activation, Adam, AdamConfig, InputPart, Layout, Linear, Mlp, MlpBuffers, WriteMode};

/// Returns pseudo-random numbers from -1 to 1, the same in every run.
pub(crate) fn numbers(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..n)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

/// Compares an analytic gradient with central differences of `loss` for every value.
pub(crate) fn check_gradient(
    values: &mut [f32],
    gradient: &[f32],
    what: &str,
    mut loss: impl FnMut(&[f32]) -> f64,
) {
    const STEP: f32 = 2e-3;
    // Miri is thousands of times slower. Two values are enough for every access to memory to happen.
    let stride = if cfg!(miri) { values.len().div_ceil(2).max(1) } else { 1 };
    for index in (0..values.len()).step_by(stride) {
        let value = values[index];
        values[index] = value + STEP;
        let above = loss(values);
        values[index] = value - STEP;
        let below = loss(values);
        values[index] = value;
        let numeric = (above - below) / (2.0 * f64::from(STEP));
        let difference = (numeric - f64::from(gradient[index])).abs();
        assert!(difference < 2e-3 + 1e-2 * numeric.abs(), "{what} {index}: {numeric} {}", gradient[index]);
    }
}

/// Returns a weighted sum of the outputs as a loss.
pub(crate) fn weighted_sum(output: &[f32]) -> f64 {
    let weights = weights_of_outputs(output.len());
    output.iter().zip(weights).map(|(value, weight)| f64::from(*value) * f64::from(weight)).sum()
}

/// Returns the weights of [`weighted_sum`], which are its gradient.
pub(crate) fn weights_of_outputs(n: usize) -> Vec<f32> {
    (0..n).map(|index| 1.0 + (index % 7) as f32 * 0.3).collect()
}

/// Returns the weights in the form that backward passes read.
pub(crate) fn transposed(layout: &Layout, parameters: &[f32]) -> Vec<f32> {
    let mut transposed = vec![f32::NAN; layout.len()];
    layout.transpose(parameters, &mut transposed);
    transposed
}

#[test]
fn linear_layer_with_several_parts() {
    for activation in [Activation::Identity, Activation::Relu, Activation::Tanh] {
        let n_rows = 6;
        let mut layout = Layout::default();
        let layer = Linear::new(&mut layout, "layer", &[4, 3, 5], 7, activation);
        let parameters = numbers(layout.len(), 3);
        let mut first = numbers(n_rows * 4, 1);
        let mut second = numbers(n_rows * 5, 2);
        // Class 255 means no class.
        let classes = [0, 2, 255, 1, 1, 0];
        let forward = |values: &[f32], first: &[f32], second: &[f32]| {
            let mut output = vec![f32::NAN; n_rows * 7];
            let parts = [InputPart::Dense(first), InputPart::OneHot(&classes), InputPart::Dense(second)];
            layer.forward(values, &parts, n_rows, &mut output);
            output
        };
        let output = forward(&parameters, &first, &second);
        let mut d_output = weights_of_outputs(output.len());
        let mut gradients = vec![0.0; layout.len()];
        let (mut d_first, mut d_second) = (vec![f32::NAN; first.len()], vec![1.0; second.len()]);
        layer.backward(
            &transposed(&layout, &parameters),
            &mut gradients,
            &[InputPart::Dense(&first), InputPart::OneHot(&classes), InputPart::Dense(&second)],
            &output,
            &mut d_output,
            &mut [
                Some((&mut d_first, WriteMode::Overwrite)),
                None,
                Some((&mut d_second, WriteMode::Accumulate)),
            ],
        );
        d_second.iter_mut().for_each(|value| *value -= 1.0);
        let (f, s) = (first.clone(), second.clone());
        check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
            weighted_sum(&forward(values, &f, &s))
        });
        check_gradient(&mut first, &d_first, "first part", |values| {
            weighted_sum(&forward(&parameters, values, &s))
        });
        check_gradient(&mut second, &d_second, "second part", |values| {
            weighted_sum(&forward(&parameters, &f, values))
        });
    }
}

#[test]
fn multilayer_perceptron() {
    const N_ROWS: usize = 5;
    let mut layout = Layout::default();
    let (hidden, output) = (Activation::Tanh, Activation::Identity);
    let mlp = Mlp::new(&mut layout, "mlp", &[4, 3], &[6, 5, 2], hidden, output);
    let names: Vec<&str> = layout.tensors().iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names[..3], ["mlp.0.weight", "mlp.0.bias", "mlp.1.weight"]);
    let parameters = numbers(layout.len(), 3);
    let (mut first, second) = (numbers(N_ROWS * 4, 1), numbers(N_ROWS * 3, 2));
    // The buffers are left over from a larger chunk.
    let mut buffers = MlpBuffers::default();
    let large = numbers(9 * 4, 5);
    mlp.forward(&parameters, &[InputPart::Dense(&large), InputPart::Dense(&large[..27])], 9, &mut buffers);
    let mut forward = |values: &[f32], first: &[f32]| {
        mlp.forward(values, &[InputPart::Dense(first), InputPart::Dense(&second)], N_ROWS, &mut buffers);
        buffers.clone()
    };
    let mut rows = forward(&parameters, &first);
    rows.d_out[..N_ROWS * 2].copy_from_slice(&weights_of_outputs(N_ROWS * 2));
    let mut gradients = vec![0.0; layout.len()];
    let mut d_first = vec![f32::NAN; first.len()];
    let parts = [InputPart::Dense(&first[..]), InputPart::Dense(&second)];
    let mut d_parts = [Some((&mut d_first[..], WriteMode::Overwrite)), None];
    let transposed = transposed(&layout, &parameters);
    mlp.backward(&transposed, &mut gradients, &parts, N_ROWS, &mut rows, &mut d_parts);
    let unchanged = first.clone();
    let loss = |rows: &MlpBuffers| weighted_sum(&rows.out[..N_ROWS * 2]);
    check_gradient(&mut parameters.clone(), &gradients, "weight", |values| {
        loss(&forward(values, &unchanged))
    });
    check_gradient(&mut first, &d_first, "input", |inputs| loss(&forward(&parameters, inputs)));
}

#[test]
fn exponentials_are_within_two_units_in_the_last_place() {
    let worst = worst_units(-87.0, 88.0, kernels::exp, f64::exp);
    assert!(worst < 2.0, "{worst} units");
    assert_eq!(kernels::exp(0.0), 1.0);
    assert!(kernels::exp(f32::NAN).is_nan());
    assert!(kernels::exp(-1e9) < 1e-37 && kernels::exp(1e9).is_finite());
}

/// Returns the largest error of `found` between `low` and `high`, in units in the last place of the exact value.
fn worst_units(low: f32, high: f32, found: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
    let n_points = if cfg!(miri) { 400 } else { 400_000 };
    let mut worst = 0.0f64;
    for index in 0..n_points {
        let x = low + (high - low) * (index as f32 / n_points as f32);
        let exact = exact(f64::from(x));
        let unit = f64::from(f32::EPSILON) * exact.abs();
        let error = (f64::from(found(x)) - exact).abs();
        worst = worst.max(if error == 0.0 { 0.0 } else { error / unit });
    }
    worst
}

#[test]
fn sigmoid_and_tanh_are_within_three_units_in_the_last_place() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let worst = worst_units(-86.0, 40.0, kernels::sigmoid, sigmoid);
    assert!(worst < 3.0, "{worst} units");
    for bound in [40.0, 1.0, 1e-3, 1e-20] {
        let worst = worst_units(-bound, bound, kernels::tanh, f64::tanh);
        assert!(worst < 3.0, "{worst} units within ±{bound}");
    }
    assert_eq!((kernels::sigmoid(0.0), kernels::tanh(0.0)), (0.5, 0.0));
    assert_eq!((kernels::sigmoid(1e9), kernels::tanh(-1e9)), (1.0, -1.0));
    assert!(kernels::sigmoid(f32::NAN).is_nan() && kernels::tanh(f32::NAN).is_nan());
}

#[test]
fn softmax_normalises_every_group_of_every_row() {
    let logits: Vec<f32> = numbers(3 * 9, 8).iter().map(|logit| logit * 20.0).collect();
    let (mut logs, mut probabilities) = (vec![f32::NAN; 27], vec![f32::NAN; 27]);
    softmax_rows(&logits, &[2, 4, 3], &mut logs, &mut probabilities);
    for row in 0..3 {
        for (start, n) in [(0, 2), (2, 4), (6, 3)] {
            let group = row * 9 + start..row * 9 + start + n;
            let total: f64 = logits[group.clone()].iter().map(|logit| f64::from(*logit).exp()).sum();
            for index in group {
                let exact = f64::from(logits[index]).exp() / total;
                assert!((f64::from(probabilities[index]) - exact).abs() < 1e-6);
                assert!((f64::from(logs[index]) - exact.ln()).abs() < 1e-5);
            }
        }
    }
}

fn policy_row(
    loss: PolicyLoss,
    logits: &[f32],
    old: f32,
    advantage: f32,
    d_logits: &mut [f32],
) -> PolicyTerms {
    let mut probabilities = vec![0.0; logits.len()];
    softmax_rows(logits, &[logits.len()], d_logits, &mut probabilities);
    loss.row(&probabilities, 2, old, advantage, 0.5, d_logits)
}

fn class_row(logits: &[f32], d_logits: &mut [f32]) -> f32 {
    let mut probabilities = vec![0.0; logits.len()];
    softmax_rows(logits, &[logits.len()], d_logits, &mut probabilities);
    cross_entropy(&probabilities, 3, 0.7, d_logits)
}

#[test]
fn policy_loss_inside_and_outside_the_clip_range() {
    let loss = PolicyLoss { clip: 0.2, entropy_weight: 0.05 };
    for (old, advantage) in [(-1.2, 0.8), (-1.2, -0.8), (-3.0, 0.8), (-3.0, -0.8), (-0.2, 0.8), (-0.2, -0.8)]
    {
        let mut logits = numbers(5, 9);
        let mut d_logits = vec![0.0; 5];
        policy_row(loss, &logits, old, advantage, &mut d_logits);
        check_gradient(&mut logits, &d_logits, "logit", |logits| {
            let mut scratch = vec![0.0; 5];
            let terms = policy_row(loss, logits, old, advantage, &mut scratch);
            0.5 * (f64::from(terms.loss) - 0.05 * f64::from(terms.entropy))
        });
    }
}

#[test]
fn value_loss_inside_and_outside_the_clip_range() {
    for (value, old, target) in [(0.3, 0.25, 1.0), (0.9, 0.25, 1.0), (0.9, 0.25, 0.0), (-0.6, 0.25, 1.0)] {
        let (_, gradient) = clipped_value(value, old, target, 0.2);
        check_gradient(&mut [value], &[gradient], "value", |values| {
            f64::from(clipped_value(values[0], old, target, 0.2).0)
        });
    }
}

#[test]
fn cross_entropy_of_a_class() {
    let mut logits = numbers(6, 4);
    let mut d_logits = vec![0.0; 6];
    class_row(&logits, &mut d_logits);
    check_gradient(&mut logits, &d_logits, "logit", |logits| {
        0.7 * f64::from(class_row(logits, &mut [0.0; 6]))
    });
}

#[test]
fn adam_matches_its_definition() {
    let config = AdamConfig { betas: [0.9, 0.999], epsilon: 1e-8 };
    // The second group skips the first two steps; its bias correction counts its own steps.
    let mut adam = Adam::new(config, &[25, 40]);
    let mut values = numbers(40, 5);
    let mut expected: Vec<f64> = values.iter().map(|value| f64::from(*value)).collect();
    let (mut first, mut second) = (vec![0.0f64; 40], vec![0.0f64; 40]);
    for step in 1..=5i32 {
        let gradients = numbers(40, 100 + step as u32);
        let n_groups = if step <= 2 { 1 } else { 2 };
        let n_trained = if step <= 2 { 25 } else { 40 };
        let norm = adam.step(2, &mut values, &gradients, n_groups, 0.01, 2.0);
        let exact: f64 =
            gradients[..n_trained].iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        assert!((f64::from(norm) - exact).abs() < 1e-5);
        let factor = (2.0 / (exact + 1e-6)).min(1.0);
        for index in 0..n_trained {
            let n_steps = if index < 25 { step } else { step - 2 };
            let gradient = f64::from(gradients[index]) * factor;
            first[index] = 0.9 * first[index] + 0.1 * gradient;
            second[index] = 0.999 * second[index] + 0.001 * gradient * gradient;
            let mean = first[index] / (1.0 - 0.9f64.powi(n_steps));
            let square = second[index] / (1.0 - 0.999f64.powi(n_steps));
            expected[index] -= 0.01 * mean / (square.sqrt() + 1e-8);
        }
    }
    for (value, expected) in values.iter().zip(&expected) {
        assert!((f64::from(*value) - expected).abs() < 1e-5, "{value} {expected}");
    }
}
