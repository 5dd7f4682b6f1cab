//! Access to the weights in a saved model, by the definition of the format: a length, a header in JSON, numbers.

use serde_json::Value;

/// Every number of a model.
pub fn numbers(model: &[u8]) -> Vec<f32> {
    let (_, start) = header(model);
    model[start..].as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

/// Fills the tensors whose name begins with `prefix`.
pub fn fill(model: &mut [u8], prefix: &str, value: f32) {
    let (header, start) = header(model);
    let tensors = header.as_object().expect("a map of tensors");
    let mut n_filled = 0;
    for (_, tensor) in tensors.iter().filter(|(name, _)| name.starts_with(prefix)) {
        let offset =
            |index: usize| start + tensor["data_offsets"][index].as_u64().expect("a number") as usize;
        for bytes in model[offset(0)..offset(1)].as_chunks_mut::<4>().0 {
            *bytes = value.to_le_bytes();
            n_filled += 1;
        }
    }
    assert!(n_filled > 0, "no tensor is called {prefix}");
}

fn header(model: &[u8]) -> (Value, usize) {
    let length = u64::from_le_bytes(model[..8].try_into().expect("eight bytes")) as usize;
    (serde_json::from_slice(&model[8..8 + length]).expect("a header in JSON"), 8 + length)
}
