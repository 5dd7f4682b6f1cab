//! Summary of a study: the score per agent with its uncertainty, as in the paper's table of the human study.

use std::collections::BTreeMap;

use pace_report::stats;
use serde::Serialize;

use super::store::{StudyError, StudyFile};

/// Scores of one agent with participants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentSummary {
    /// The agent's id.
    pub agent: String,
    /// The game.
    pub game: String,
    /// Number of finished encounters.
    pub encounters: usize,
    /// Number of participants with a finished encounter.
    pub participants: usize,
    /// Mean over encounters of the mean score of their episodes: success, or the return in a game without a goal.
    pub mean: f64,
    /// Standard error of that mean over encounters. `None` for a single encounter.
    pub standard_error: Option<f64>,
    /// The 95 % confidence interval, by Student's t distribution.
    pub confidence_95: Option<[f64; 2]>,
}

/// Progress and scores of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StudySummary {
    /// The study's id.
    pub study: String,
    /// Number of participants at each stage.
    pub stages: BTreeMap<String, usize>,
    /// Number of participants of each version. Scores are over all versions.
    pub versions: BTreeMap<u32, usize>,
    /// Number of unfinished encounters.
    pub open_encounters: usize,
    /// Number of stored steps.
    pub steps: usize,
    /// Scores by agent.
    pub agents: Vec<AgentSummary>,
}

impl StudyFile {
    /// Computes the summary.
    pub fn summary(&self) -> Result<StudySummary, StudyError> {
        self.summarise().map_err(|error| self.failed(&error))
    }

    /// Number of stored steps of each encounter, by participant and number of the encounter.
    pub fn n_steps(&self) -> Result<BTreeMap<(String, usize), usize>, StudyError> {
        let query =
            "SELECT participant, number, COUNT(*) FROM encounter JOIN step ON step.encounter = encounter.id
             GROUP BY participant, number";
        let counted = self.connection.prepare(query).and_then(|mut statement| {
            let count = |row: &rusqlite::Row<'_>, index| row.get::<_, i64>(index).map(|n| n as usize);
            let rows = statement.query_map([], |row| Ok(((row.get(0)?, count(row, 1)?), count(row, 2)?)))?;
            rows.collect()
        });
        counted.map_err(|error| self.failed(&error))
    }

    fn summarise(&self) -> rusqlite::Result<StudySummary> {
        let one = |query: &str| self.connection.query_row(query, [], |row| row.get::<_, i64>(0));
        let mut stages = BTreeMap::new();
        let mut statement =
            self.connection.prepare("SELECT stage, COUNT(*) FROM participant GROUP BY stage")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)))?;
        for row in rows {
            let (stage, n) = row?;
            stages.insert(stage, n);
        }
        let mut statement =
            self.connection.prepare("SELECT version, COUNT(*) FROM participant GROUP BY version")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)))?;
        let versions = rows.collect::<rusqlite::Result<BTreeMap<u32, usize>>>()?;
        let mut by_agent: BTreeMap<(String, String), Vec<(String, f64)>> = BTreeMap::new();
        let finished =
            "SELECT game, agent, participant, score FROM encounter WHERE score IS NOT NULL ORDER BY id";
        let mut statement = self.connection.prepare(finished)?;
        let rows = statement.query_map([], |row| {
            Ok(((row.get(0)?, row.get(1)?), (row.get::<_, String>(2)?, row.get::<_, f64>(3)?)))
        })?;
        for row in rows {
            let (agent, score) = row?;
            by_agent.entry(agent).or_default().push(score);
        }
        let agents = by_agent.into_iter().map(|((game, agent), scores)| {
            let mut participants: Vec<&str> =
                scores.iter().map(|(participant, _)| &participant[..]).collect();
            participants.sort_unstable();
            participants.dedup();
            let values: Vec<f64> = scores.iter().map(|(_, score)| *score).collect();
            AgentSummary {
                encounters: values.len(),
                participants: participants.len(),
                mean: stats::mean(&values),
                standard_error: stats::standard_error(&values),
                confidence_95: stats::confidence_95(&values),
                agent,
                game,
            }
        });
        Ok(StudySummary {
            study: self.connection.query_row("SELECT id FROM study", [], |row| row.get(0))?,
            stages,
            versions,
            open_encounters: one("SELECT COUNT(*) FROM encounter WHERE finished_ms IS NULL")? as usize,
            steps: one("SELECT COUNT(*) FROM step")? as usize,
            agents: agents.collect(),
        })
    }
}
