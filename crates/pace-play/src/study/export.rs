//! A study's data for other programs: comma-separated values or JSON lines.

use std::io::Write;

use rusqlite::types::ValueRef;
use serde_json::{Map, Value};

use super::store::{StudyError, StudyFile};

/// What can be exported, by the names on the command line.
pub const TABLES: &[(&str, &str)] = &[
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
        "SELECT id AS participant, platform_study, platform_session, stage, arm, joined_ms, consented_ms, finished_ms
         FROM participant ORDER BY joined_ms, id",
    ),
    ("answers", "SELECT participant, question, value, server_ms FROM answer ORDER BY participant, question"),
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

/// Columns whose text is JSON.
const JSON_COLUMNS: [&str; 3] = ["moves", "outcomes", "value"];

impl StudyFile {
    /// Writes one of [`TABLES`]; how many rows that were.
    pub fn export(&self, table: &str, format: Format, out: &mut dyn Write) -> Result<usize, ExportError> {
        let query = TABLES.iter().find(|(name, _)| *name == table).map(|(_, query)| *query);
        let query = query.unwrap_or_else(|| panic!("there is no table {table}"));
        let failed = |error: rusqlite::Error| ExportError::Study(self.failed(&error));
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        if format == Format::Csv {
            writeln!(out, "{}", names.join(","))?;
        }
        let mut rows = statement.query([]).map_err(failed)?;
        let mut n_rows = 0;
        while let Some(row) = rows.next().map_err(failed)? {
            n_rows += 1;
            match format {
                Format::Csv => {
                    for (index, _) in names.iter().enumerate() {
                        let separator = if index == 0 { "" } else { "," };
                        write!(out, "{separator}{}", csv(row.get_ref(index).map_err(failed)?))?;
                    }
                    writeln!(out)?;
                }
                Format::JsonLines => {
                    let mut object = Map::new();
                    object.insert("table".to_owned(), Value::from(table));
                    for (index, name) in names.iter().enumerate() {
                        let is_json = JSON_COLUMNS.contains(&&name[..]);
                        object.insert(name.clone(), json(row.get_ref(index).map_err(failed)?, is_json));
                    }
                    writeln!(out, "{}", Value::Object(object))?;
                }
            }
        }
        Ok(n_rows)
    }
}

fn csv(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            let text = String::from_utf8_lossy(text);
            // A field that begins like a formula would be one to a spreadsheet.
            let text =
                if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.into_owned() };
            if text.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text
            }
        }
    }
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
