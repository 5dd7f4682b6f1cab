//! Export of a study's data as comma-separated values or JSON lines.

use std::io::Write;

use pace_games::{Preset, find_game};
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use super::store::{StudyError, StudyFile};
use super::{load_actions, load_session_config};
use crate::replay::link_from_parts;

/// Names of the tables that can be exported.
pub const TABLES: &[&str] = &["steps", "encounters", "participants", "answers", "versions", "replays"];

/// The tables that are the result of one query.
const QUERIES: &[(&str, &str)] = &[
    (
        "steps",
        "SELECT encounter.participant, encounter.number AS encounter, encounter.game, encounter.agent, step.seq,
         step.episode, step.action, step.action_name, step.moves, step.client_ms, step.server_ms
         FROM step JOIN encounter ON encounter.id = step.encounter
         ORDER BY encounter.participant, encounter.number, step.seq",
    ),
    (
        "encounters",
        "SELECT participant, number AS encounter, game, agent, fingerprint, slot, tuple, n_episodes, seed,
         started_ms, finished_ms, score, outcomes,
         (SELECT COUNT(*) FROM step WHERE step.encounter = encounter.id) AS n_steps
         FROM encounter ORDER BY participant, number",
    ),
    (
        "participants",
        "SELECT id AS participant, version, platform_study, platform_session, stage, arm, joined_ms, consented_ms, finished_ms
         FROM participant ORDER BY joined_ms, id",
    ),
    ("answers", "SELECT participant, question, value, server_ms FROM answer ORDER BY participant, question"),
    ("versions", "SELECT number AS version, since_ms, config, fingerprints FROM version ORDER BY number"),
];

/// Format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A header line, then one line per row.
    Csv,
    /// One JSON object per row.
    JsonLines,
}

/// An error during an export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The study's file cannot be read.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

/// Columns that contain JSON, in addition to the answers.
const JSON_COLUMNS: [&str; 3] = ["moves", "outcomes", "fingerprints"];

impl StudyFile {
    /// Writes one of [`TABLES`] and returns the number of rows.
    pub fn export(&self, table: &str, format: Format, out: &mut dyn Write) -> Result<usize, ExportError> {
        let mut rows = Rows { table, format, n_rows: 0, out };
        match QUERIES.iter().find(|(name, _)| *name == table) {
            Some((_, query)) => self.export_query(query, &mut rows)?,
            None => self.export_replays(&mut rows)?,
        }
        Ok(rows.n_rows)
    }

    fn export_query(&self, query: &str, rows: &mut Rows<'_>) -> Result<(), ExportError> {
        let failed = |error: rusqlite::Error| ExportError::Study(self.failed(&error));
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        rows.begin(&names)?;
        let mut found = statement.query([]).map_err(failed)?;
        while let Some(row) = found.next().map_err(failed)? {
            let values = names.iter().enumerate().map(|(index, name)| {
                // Answers are decoded in both formats. Other JSON columns stay text in CSV, which has no nested values.
                let is_json =
                    name == "value" || rows.format == Format::JsonLines && JSON_COLUMNS.contains(&&name[..]);
                row.get_ref(index).map(|value| json(value, is_json))
            });
            let values = values.collect::<Result<Vec<_>, _>>().map_err(failed)?;
            rows.add(&names, &values)?;
        }
        Ok(())
    }

    /// Writes the path of every encounter's replay, for a server with the same agents.
    fn export_replays(&self, rows: &mut Rows<'_>) -> Result<(), ExportError> {
        let failed = |error: rusqlite::Error| ExportError::Study(self.failed(&error));
        let names = ["participant", "encounter", "replay"].map(str::to_owned);
        rows.begin(&names)?;
        let all = "SELECT id, participant, number, game FROM encounter ORDER BY participant, number";
        let mut statement = self.connection.prepare(all).map_err(failed)?;
        let mut found = statement.query([]).map_err(failed)?;
        while let Some(row) = found.next().map_err(failed)? {
            let text = |index: usize| row.get::<_, String>(index).map_err(failed);
            let number = |index: usize| row.get::<_, i64>(index).map_err(failed);
            let (config, fingerprint) = load_session_config(&self.connection, number(0)?).map_err(failed)?;
            let actions = load_actions(&self.connection, number(0)?).map_err(failed)?;
            // The number of actions does not depend on the game's keys.
            let game = find_game(&text(3)?).and_then(|entry| entry.open(Preset::Paper, &Map::new()));
            let link = game.ok().map(|game| {
                format!(
                    "/replay#{}",
                    link_from_parts(&config, &fingerprint, &actions, game.spec().n_actions())
                )
            });
            rows.add(&names, &[Value::from(text(1)?), Value::from(number(2)?), Value::from(link)])?;
        }
        Ok(())
    }
}

/// Writer of rows.
struct Rows<'a> {
    table: &'a str,
    format: Format,
    n_rows: usize,
    out: &'a mut dyn Write,
}

impl Rows<'_> {
    fn begin(&mut self, names: &[String]) -> std::io::Result<()> {
        match self.format {
            Format::Csv => writeln!(self.out, "{}", names.join(",")),
            Format::JsonLines => Ok(()),
        }
    }

    fn add(&mut self, names: &[String], values: &[Value]) -> std::io::Result<()> {
        self.n_rows += 1;
        match self.format {
            Format::Csv => {
                let fields: Vec<String> = values.iter().map(csv).collect();
                writeln!(self.out, "{}", fields.join(","))
            }
            Format::JsonLines => {
                let table = ("table".to_owned(), Value::from(self.table));
                let fields = names.iter().cloned().zip(values.iter().cloned());
                writeln!(self.out, "{}", Value::Object(std::iter::once(table).chain(fields).collect()))
            }
        }
    }
}

fn csv(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => text,
        other => return other.to_string(),
    };
    // Spreadsheets run fields that begin like a formula; some skip white space or accept full-width signs.
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    let text = if is_formula { format!("'{text}") } else { text.clone() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

fn json(value: ValueRef<'_>, is_json: bool) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Value::from(number),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            let text = String::from_utf8_lossy(text);
            let parsed = if is_json { serde_json::from_str(&text).ok() } else { None };
            parsed.unwrap_or_else(|| Value::from(text.into_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::csv;

    #[test]
    fn formulas_are_escaped() {
        for sign in ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"] {
            let field = csv(&Value::from(format!("{sign}cmd|' /C calc'!A1")));
            assert!(field.trim_start_matches('"').starts_with('\''), "{sign:?} {field:?}");
        }
        assert_eq!(csv(&Value::from("\r\n=1+1")), "\"'\r\n=1+1\"");
        assert_eq!(csv(&Value::from("a = b")), "a = b");
        assert_eq!(csv(&Value::from(-2.5)), "-2.5", "numbers stay numbers");
    }
}
