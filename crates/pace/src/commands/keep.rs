//! `pace keep`: records finished runs with their weights, so that others can evaluate them without training.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use pace_lab::{KeepOptions, KeepOutcome, Keeper, KeptRun};

use crate::log_line;

#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Run folders of finished runs.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// Folder of recorded runs.
    #[arg(long, default_value = "results")]
    into: PathBuf,
    /// Name of the keys that differ from the preset. Default: the name of the variant in the experiments.
    #[arg(long)]
    variant: Option<String>,
    /// Overwrite a record with other content. Its evaluations are kept if they are of the same agent.
    #[arg(long)]
    replace: bool,
    /// Record no weights. The record can then be reported, but not evaluated.
    #[arg(long)]
    without_weights: bool,
}

/// Some of several runs were not recorded; each reason was already logged.
#[derive(Debug, thiserror::Error)]
#[error("{n_failed} of {n} runs were not recorded (see above)")]
struct SomeFailed {
    n_failed: usize,
    n: usize,
}

pub fn run(args: &KeepArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut keeper = Keeper::open(&args.into)?;
    let options = KeepOptions {
        variant: args.variant.as_deref(),
        replaces: args.replace,
        with_weights: !args.without_weights,
    };
    let mut n_failed = 0;
    for run in &args.runs {
        match keeper.keep(run, options) {
            Ok(kept) => {
                writeln!(out, "{}", kept.folder.display())?;
                log_line(&text_of(&kept));
            }
            Err(error) if args.runs.len() == 1 => return Err(error.into()),
            // One run that cannot be recorded does not stop the others.
            Err(error) => {
                log_line(&format!("not recorded: {error}"));
                n_failed += 1;
            }
        }
    }
    if n_failed > 0 {
        return Err(SomeFailed { n_failed, n: args.runs.len() }.into());
    }
    Ok(())
}

fn text_of(kept: &KeptRun) -> String {
    let change = match &kept.outcome {
        KeepOutcome::New => "recorded".to_owned(),
        KeepOutcome::Unchanged => "already recorded".to_owned(),
        KeepOutcome::Extended(added) => format!("added {}", added.join(", ")),
        KeepOutcome::Replaced(dropped) if dropped.is_empty() => "replaced".to_owned(),
        KeepOutcome::Replaced(dropped) => {
            format!("replaced; removed evaluations of the earlier agent: {}", dropped.join(", "))
        }
    };
    let kilobytes = kept.n_weight_bytes.div_ceil(1000);
    format!("{change}: {} evaluations, {kilobytes} kB of weights", kept.n_evaluations)
}
