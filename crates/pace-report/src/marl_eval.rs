//! Results in the JSON format of marl-eval, which rliable can read.
//!
//! The levels of the format are environment, task, algorithm, run and step. Steps are blocks of episodes of an encounter, not
//! training steps, so that a curve over steps is the adaptation curve. A metric is a list with a value per peer tuple. The
//! absolute metrics are over the whole encounter.

use serde_json::{Map, Value, json};

use crate::record::AdaptRecord;
use crate::report::Report;

/// Writes every evaluation of every run. Names are in lower case, as readers of this format expect.
pub fn render(report: &Report) -> String {
    let mut document = Map::new();
    for run in &report.runs {
        for (evaluation, record) in &run.evaluations {
            let mut algorithm = format!("{}-{}", run.train.method, run.train.preset);
            if !run.changes.is_empty() {
                algorithm.push_str(&format!(" ({})", run.changes));
            }
            if run.scale != 1.0 {
                algorithm.push_str(&format!(" at scale {}", run.scale));
            }
            let seeds = entry(entry(entry(&mut document, &run.train.game), evaluation), &algorithm);
            // Of two copies of a run, the first counts.
            seeds.entry(format!("seed_{}", run.train.seed)).or_insert_with(|| steps(record));
        }
    }
    let mut text = serde_json::to_string_pretty(&document).expect("plain data can be written");
    text.push('\n');
    text
}

fn entry<'a>(map: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let place = map.entry(name.to_lowercase()).or_insert_with(|| Value::Object(Map::new()));
    place.as_object_mut().expect("only maps are put here")
}

fn steps(record: &AdaptRecord) -> Value {
    let mut steps = Map::new();
    for (number, block) in record.blocks.iter().enumerate() {
        let of_peers: Vec<f64> =
            record.peers.iter().filter_map(|peer| Some(peer.blocks.get(number)?.mean)).collect();
        let scores = if of_peers.is_empty() { vec![block.mean] } else { of_peers };
        steps.insert(format!("step_{}", number + 1), json!({ "step_count": block.last, "score": scores }));
    }
    let of_peers: Vec<f64> = record.peers.iter().map(|peer| peer.mean).collect();
    let scores = if of_peers.is_empty() { vec![record.mean] } else { of_peers };
    steps.insert("absolute_metrics".to_owned(), json!({ "score": scores }));
    Value::Object(steps)
}
