//! A study's data for other programs: comma-separated values or JSON lines.

use std::io::Write;

use pace_games::{Preset, find_game};
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use super::store::{StudyError, StudyFile};
use super::{load_actions, load_booking};
use crate::replay::link_of;

/// What can be exported, by the names on the command line.
pub const TABLES: &[&str] = &["steps", "encounters", "participants", "answers", "versions", "replays"];

/// Those of them that are made by a query alone.
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

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A head and a line per row.
    Csv,
    /// An object per row.
    JsonLines,
}

/// Why an export stopped.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The file.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// Whoever reads.
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

/// Columns whose text is JSON, beside the answers.
const JSON_COLUMNS: [&str; 3] = ["moves", "outcomes", "fingerprints"];

impl StudyFile {
    /// Writes one of [`TABLES`]; how many rows that were.
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
                // An answer in words is read as words; moves and outcomes have no form of their own in a table.
                let is_json =
                    name == "value" || rows.format == Format::JsonLines && JSON_COLUMNS.contains(&&name[..]);
                row.get_ref(index).map(|value| json(value, is_json))
            });
            let values = values.collect::<Result<Vec<_>, _>>().map_err(failed)?;
            rows.add(&names, &values)?;
        }
        Ok(())
    }

    /// The end of an address that shows an encounter again, on a server that offers the same agent.
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
            let (booking, fingerprint) = load_booking(&self.connection, number(0)?).map_err(failed)?;
            let actions = load_actions(&self.connection, number(0)?).map_err(failed)?;
            // How many actions there are does not depend on a game's keys.
            let game = find_game(&text(3)?).and_then(|entry| entry.open(Preset::Paper, &Map::new()));
            let link = game.ok().map(|game| {
                format!("/replay#{}", link_of(&booking, &fingerprint, &actions, game.spec().n_actions()))
            });
            rows.add(&names, &[Value::from(text(1)?), Value::from(number(2)?), Value::from(link)])?;
        }
        Ok(())
    }
}

/// Writes rows one after the other.
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
    // A field that begins like a formula would be one to a spreadsheet; some skip white space, or read full-width signs.
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
    fn text_that_a_spreadsheet_would_run_is_neutralised() {
        for sign in ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"] {
            let field = csv(&Value::from(format!("{sign}cmd|' /C calc'!A1")));
            assert!(field.trim_start_matches('"').starts_with('\''), "{sign:?} {field:?}");
        }
        assert_eq!(csv(&Value::from("\r\n=1+1")), "\"'\r\n=1+1\"");
        assert_eq!(csv(&Value::from("a = b")), "a = b");
        assert_eq!(csv(&Value::from(-2.5)), "-2.5", "numbers stay numbers");
    }
}
