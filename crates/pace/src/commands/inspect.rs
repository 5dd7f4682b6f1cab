//! `pace inspect`: shows status, checkpoints and last metrics of a run.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use pace_lab::{CheckpointLimits, LabError, RunStatus, RunView, refuse_to_resume};
use serde_json::json;

#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Run folder.
    run: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &InspectArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let view = RunView::open(&args.run)?;
    // Read before the manifest: a run that ends in between has already written its final status there.
    let has_writer = view.has_writer();
    let manifest = view.manifest()?;
    let reader = view.checkpoints(CheckpointLimits::default());
    let mut checkpoints = Vec::new();
    for step in reader.steps()? {
        let state = match reader.load(step) {
            Ok(checkpoint) => json!({ "step": step, "files": checkpoint.names().collect::<Vec<_>>() }),
            Err(error) => json!({ "step": step, "damage": error.to_string() }),
        };
        checkpoints.push(state);
    }
    let rows = view.metrics()?;
    let last = rows.last();
    if args.json {
        let document = json!({
            "manifest": manifest,
            "has_writer": has_writer,
            "config": view.config()?,
            "checkpoints": checkpoints,
            "metrics_rows": rows.len(),
            "last": last.map(|row| row.values.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<serde_json::Map<_, _>>()),
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        return Ok(());
    }
    let spec = &manifest.spec;
    writeln!(out, "{}  {} with preset {}, seed {}", spec.game, spec.method, spec.preset, spec.seed)?;
    let resume = match refuse_to_resume(&view) {
        Err(LabError::LostCheckpoints { .. }) => "cannot be resumed without checkpoints".to_owned(),
        _ => format!("continue with `pace resume {}`", args.run.display()),
    };
    let status = match (manifest.status, has_writer) {
        (RunStatus::Running, Some(true)) => "running".to_owned(),
        (RunStatus::Running, Some(false)) => {
            format!("killed (no process holds its lock); {resume}")
        }
        (RunStatus::Running, None) => "running or killed (the file system has no file locks)".to_owned(),
        (RunStatus::Finished, _) if manifest.is_recorded() => {
            "finished; recorded with its weights, without optimiser state".to_owned()
        }
        (RunStatus::Finished, _) => "finished".to_owned(),
        (RunStatus::Stopped, _) => format!("stopped; {resume}"),
        (RunStatus::Failed, _) => "failed (see crash/)".to_owned(),
    };
    writeln!(
        out,
        "status       {status}, {} resumes, {:.0} s training time",
        manifest.n_resumes, manifest.wall_clock_secs
    )?;
    writeln!(
        out,
        "built with   pace {} ({}), {}, {}",
        spec.pace_version,
        spec.commit.as_deref().unwrap_or("unknown commit"),
        spec.rustc,
        spec.simd
    )?;
    writeln!(out, "started      {}  {}", manifest.started_at, spec.argv.join(" "))?;
    for checkpoint in &checkpoints {
        match checkpoint.get("damage") {
            Some(damage) => writeln!(out, "checkpoint   {}: {}", checkpoint["step"], damage)?,
            None => writeln!(out, "checkpoint   {}: valid", checkpoint["step"])?,
        }
    }
    if checkpoints.is_empty() {
        writeln!(out, "checkpoint   none")?;
    }
    if let Some(row) = last {
        writeln!(out, "last of {} rows, step {}:", rows.len(), row.step)?;
        for (name, value) in &row.values {
            writeln!(out, "  {name:<28} {value:.6}")?;
        }
    }
    Ok(())
}
