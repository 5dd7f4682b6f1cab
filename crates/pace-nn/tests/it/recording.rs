//! Reading of values that PyTorch computed, recorded by the scripts in `tests/pytorch`.

use pace_nn::Layout;
use serde_json::Value;

pub(crate) fn floats(value: &Value) -> Vec<f32> {
    let list = value.as_array().expect("a list");
    list.iter().map(|number| number.as_f64().expect("a number") as f32).collect()
}

pub(crate) fn sizes(value: &Value) -> Vec<usize> {
    let list = value.as_array().expect("a list");
    list.iter().map(|number| number.as_u64().expect("a size") as usize).collect()
}

/// Returns the recorded weights of a network in the order of its layout.
pub(crate) fn weights(layout: &Layout, recorded: &Value) -> Vec<f32> {
    layout.tensors().iter().flat_map(|tensor| floats(&recorded[&tensor.name])).collect()
}

/// Checks that the norm of the difference is small compared with that of the recorded values.
pub(crate) fn check_recorded(found: &[f32], recorded: &Value, what: &str) {
    let recorded = floats(recorded);
    assert_eq!(found.len(), recorded.len(), "{what}");
    let norm = |values: &mut dyn Iterator<Item = f32>| {
        values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt()
    };
    let difference = norm(&mut found.iter().zip(&recorded).map(|(found, recorded)| found - recorded));
    let size = norm(&mut recorded.iter().copied());
    assert!(difference <= 1e-4 * size + 1e-8, "{what}: off by {difference} of {size}");
}

/// Applies [`check_recorded`] to the gradient of every tensor.
pub(crate) fn check_gradients(layout: &Layout, gradients: &[f32], recorded: &Value) {
    for tensor in layout.tensors() {
        check_recorded(&gradients[tensor.id.range()], &recorded[&tensor.name], &tensor.name);
    }
}
