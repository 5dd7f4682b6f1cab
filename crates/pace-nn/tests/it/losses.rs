//! Losses and normal distributions: gradients against finite differences, and PyTorch's numbers.

use pace_nn::gaussian::{kl_divergence, kl_from_standard, sample, sample_backward};
use pace_nn::loss::{mean_cross_entropy, mean_squared_errors, softmax_rows};
use serde_json::Value;

use crate::gradients::{check_gradient, numbers, weighted_sum, weights_of_outputs};
use crate::recording::{check_recorded, floats, sizes};

fn recording() -> Value {
    serde_json::from_str(include_str!("../pytorch/losses.json")).expect("the recording is JSON")
}

fn weight(recording: &Value) -> f32 {
    recording["weight"].as_f64().expect("a number") as f32
}

#[test]
fn samples_and_kl_divergences() {
    let mut distributions = numbers(4 * 6, 1);
    let (noise, fixed) = (numbers(4 * 3, 2), numbers(6, 3));
    let loss = |distributions: &[f32]| {
        let (mut samples, mut unused) = (vec![f32::NAN; 12], vec![0.0; 6]);
        sample(distributions, &noise, 3, &mut samples);
        let mut total = weighted_sum(&samples);
        for row in distributions.chunks_exact(6) {
            total += 0.7 * f64::from(kl_from_standard(row, 1.0, &mut unused));
            total += 0.4 * f64::from(kl_divergence(row, &fixed, 1.0, &mut unused));
        }
        total
    };
    let mut d_distributions = vec![0.0; 24];
    sample_backward(&distributions, &noise, 3, &weights_of_outputs(12), &mut d_distributions);
    for (row, d_row) in distributions.chunks_exact(6).zip(d_distributions.chunks_exact_mut(6)) {
        kl_from_standard(row, 0.7, d_row);
        kl_divergence(row, &fixed, 0.4, d_row);
    }
    check_gradient(&mut distributions, &d_distributions, "distribution", loss);
    assert_eq!(kl_from_standard(&[0.0; 6], 1.0, &mut [0.0; 6]), 0.0);
    assert_eq!(kl_divergence(&fixed, &fixed, 1.0, &mut [0.0; 6]), 0.0);
}

#[test]
fn masked_squared_errors() {
    let (mut predictions, targets) = (numbers(3 * 18, 1), numbers(3 * 18, 2));
    let loss = |predictions: &[f32]| {
        0.7 * mean_squared_errors(&targets, 18, &[1.0, 0.0, 1.0], 0.7, &mut predictions.to_vec())
    };
    let mut d_rows = predictions.clone();
    mean_squared_errors(&targets, 18, &[1.0, 0.0, 1.0], 0.7, &mut d_rows);
    assert!(d_rows[18..36].iter().all(|gradient| *gradient == 0.0));
    check_gradient(&mut predictions, &d_rows, "prediction", loss);
}

/// Returns the mean cross-entropy of one row and its gradient.
fn cross_entropy_of(logits: &[f32], groups: &[usize], classes: &[u8], weight: f32) -> (f32, Vec<f32>) {
    let (mut d_logits, mut probabilities) = (vec![f32::NAN; logits.len()], vec![f32::NAN; logits.len()]);
    softmax_rows(logits, groups, &mut d_logits, &mut probabilities);
    let loss = mean_cross_entropy(&probabilities, groups, classes, weight, &mut d_logits);
    (loss, d_logits)
}

#[test]
fn cross_entropy_of_groups_with_and_without_a_class() {
    let (groups, classes) = ([3, 2, 4], [2, 255, 0]);
    let mut logits = numbers(9, 1);
    let (_, d_logits) = cross_entropy_of(&logits, &groups, &classes, 0.7);
    assert_eq!(d_logits[3..5], [0.0, 0.0]);
    check_gradient(&mut logits, &d_logits, "logit", |logits| {
        0.7 * f64::from(cross_entropy_of(logits, &groups, &classes, 0.7).0)
    });
}

/// Returns the loss of every distribution and the gradient of their sum.
fn losses_of_rows(
    distributions: &[f32],
    n: usize,
    loss: impl Fn(usize, &[f32], &mut [f32]) -> f32,
) -> (Vec<f32>, Vec<f32>) {
    let mut gradient = vec![0.0; distributions.len()];
    let rows = distributions.chunks_exact(2 * n).zip(gradient.chunks_exact_mut(2 * n)).enumerate();
    let losses = rows.map(|(index, (row, d_row))| loss(index, row, d_row)).collect();
    (losses, gradient)
}

#[test]
fn recorded_distributions() {
    let recording = recording();
    let recorded = &recording["gaussian"];
    let n = recorded["latent_size"].as_u64().expect("a size") as usize;
    let (distributions, noise) = (floats(&recorded["distributions"]), floats(&recorded["noise"]));
    let mut samples = vec![f32::NAN; noise.len()];
    sample(&distributions, &noise, n, &mut samples);
    check_recorded(&samples, &recorded["samples"], "samples");
    let mut d_distributions = vec![0.0; distributions.len()];
    sample_backward(&distributions, &noise, n, &floats(&recorded["d_samples"]), &mut d_distributions);
    check_recorded(&d_distributions, &recorded["d_distributions_of_samples"], "gradient of samples");

    let fixed = floats(&recorded["fixed"]);
    let weight = weight(&recording);
    let (losses, gradient) =
        losses_of_rows(&distributions, n, |_, row, d_row| kl_from_standard(row, weight, d_row));
    check_recorded(&losses, &recorded["from_standard"], "KL divergence from the standard");
    check_recorded(&gradient, &recorded["d_from_standard"], "its gradient");
    let (losses, gradient) = losses_of_rows(&distributions, n, |index, row, d_row| {
        kl_divergence(row, &fixed[index * 2 * n..][..2 * n], weight, d_row)
    });
    check_recorded(&losses, &recorded["from_fixed"], "KL divergence from a fixed distribution");
    check_recorded(&gradient, &recorded["d_from_fixed"], "its gradient");
}

#[test]
fn recorded_squared_errors() {
    let recording = recording();
    let recorded = &recording["squared_error"];
    let width = recorded["width"].as_u64().expect("a size") as usize;
    let (targets, mask) = (floats(&recorded["targets"]), floats(&recorded["mask"]));
    let mut d_rows = floats(&recorded["predictions"]);
    let sum = mean_squared_errors(&targets, width, &mask, weight(&recording), &mut d_rows);
    assert!((sum / recorded["sum"].as_f64().expect("a number") - 1.0).abs() < 1e-5);
    check_recorded(&d_rows, &recorded["d_predictions"], "gradient");
}

#[test]
fn recorded_cross_entropies() {
    let recording = recording();
    let recorded = &recording["cross_entropy"];
    let (groups, logits) = (sizes(&recorded["groups"]), floats(&recorded["logits"]));
    let (mut losses, mut gradient) = (Vec::new(), Vec::new());
    let rows = logits.chunks_exact(groups.iter().sum()).zip(recorded["classes"].as_array().expect("a list"));
    for (logits, classes) in rows {
        let classes: Vec<u8> = sizes(classes).iter().map(|class| *class as u8).collect();
        let (loss, d_logits) = cross_entropy_of(logits, &groups, &classes, weight(&recording));
        losses.push(loss);
        gradient.extend(d_logits);
    }
    check_recorded(&losses, &recorded["losses"], "losses");
    check_recorded(&gradient, &recorded["d_logits"], "gradient");
}
