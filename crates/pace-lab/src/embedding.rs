//! Latents of a run in two dimensions, with the factors of variation of its peers.

use pace_games::Split;
use pace_learn::RunConfig;
use pace_report::EmbeddingRecord;
use pace_report::embedding::Factor;
use pace_report::tsne::Tsne;

use crate::adaptation::Adaptation;
use crate::error::LabError;

/// Embeds the latents of an adaptation with a fixed seed. Returns `None` if they were not kept.
pub(crate) fn embed(
    adaptation: &Adaptation,
    config: &RunConfig,
) -> Result<Option<EmbeddingRecord>, LabError> {
    let Some(latents) = &adaptation.latents else { return Ok(None) };
    let record = &adaptation.record;
    let game_keys = record.game_keys.clone().into_iter().collect();
    let pool = config.open_game_with(&game_keys)?.pool(record.pool.parse::<Split>()?);
    let mut factors: Vec<Factor> = Vec::new();
    let slots = pool.tuples.first().map_or(0, |tuple| tuple.factors.len());
    for slot in 0..slots {
        for place in 0..pool.tuples[0].factors[slot].len() {
            let values = pool.tuples.iter().map(|tuple| tuple.factors[slot][place].1.clone()).collect();
            factors.push((pool.tuples[0].factors[slot][place].0.to_owned(), values));
        }
    }
    let evaluation = (record.game.as_str(), record.method.as_str(), record.pool.as_str());
    Ok(Some(EmbeddingRecord::of(latents, evaluation, &factors, &Tsne::default())))
}
