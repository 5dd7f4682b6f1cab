//! Values that PyTorch computed, as the scripts in `tests/pytorch` wrote them down.

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

/// The weights of a network, found by name.
pub(crate) fn weights(layout: &Layout, recorded: &Value) -> Vec<f32> {
    layout.tensors().iter().flat_map(|tensor| floats(&recorded[&tensor.name])).collect()
}

/// The difference is small beside what was recorded.
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

/// [`check_recorded`] for the gradient of every tensor.
pub(crate) fn check_gradients(layout: &Layout, gradients: &[f32], recorded: &Value) {
    for tensor in layout.tensors() {
        check_recorded(&gradients[tensor.id.range()], &recorded[&tensor.name], &tensor.name);
    }
}
