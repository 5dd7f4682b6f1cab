//! `pace watch`: one encounter, step by step or at once.

use std::io::{BufRead, Write};

use clap::Args;
use pace_games::{Boundary, GameSpec, Meeting, Metric, Moment, NO_ACTION, Seed, Split};

use crate::game_args::GameArgs;

#[derive(Debug, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    game: GameArgs,
    /// The scripted ego: oracle, bayes, static, random, or another that `pace list games` names.
    #[arg(long, default_value = "bayes")]
    ego: String,
    /// The number of the peer (or tuple of peers) in its pool; `pace list peers GAME` shows them.
    #[arg(long, default_value_t = 0)]
    peer: usize,
    /// The pool: `train`, `test` or `uniform:N`.
    #[arg(long, default_value = "test")]
    pool: String,
    /// How many episodes; the game's own number if not given.
    #[arg(long)]
    episodes: Option<usize>,
    /// The seed of all chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Wait for Enter after every step.
    #[arg(long)]
    step: bool,
}

pub fn run(args: &WatchArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let game = args.game.open()?;
    let split = Split::parse(&args.pool)?;
    let spec = game.spec();
    let n_episodes = args.episodes.unwrap_or(spec.episodes_per_encounter);
    anyhow::ensure!(n_episodes > 0, "--episodes: found 0, expected at least 1");
    let meeting =
        Meeting { reference: &args.ego, split, tuple: args.peer, n_episodes, seed: Seed::new(args.seed) };
    // An onlooker cannot stop the play; the first failure to write is kept and told afterwards.
    let mut written = Ok(());
    let outcomes = game.play(
        &meeting,
        Some(&mut |text, moment| {
            if written.is_ok() {
                written = show(spec, text, moment, args.step, out);
            }
        }),
    )?;
    written?;
    let peers = &game.pool(split).tuples[args.peer].description;
    let scores: Vec<f64> = outcomes.iter().map(|outcome| outcome.score(spec.metric)).collect();
    let mean = scores.iter().sum::<f64>() / scores.len() as f64;
    let what = match spec.metric {
        Metric::Return if outcomes[0].expected_return.is_some() => "expected return",
        Metric::Return => "return",
        Metric::Success => "success",
    };
    writeln!(
        out,
        "\n{}: {} met {} peer {} ({peers}); {what} per episode {mean:.3} over {n_episodes}",
        spec.title, args.ego, args.pool, args.peer
    )?;
    Ok(())
}

fn show(
    spec: &GameSpec,
    text: &str,
    moment: Moment<'_>,
    waits: bool,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let name = |action: u8| match action {
        NO_ACTION => "-",
        action => spec.action_names[usize::from(action)],
    };
    match moment.step {
        None => writeln!(out, "\n== episode {} ==", moment.episode + 1)?,
        Some(step) => {
            let peers: Vec<&str> = step.peer_actions.iter().map(|action| name(*action)).collect();
            let mark = if step.outcome.keypoint_visited { "  *" } else { "" };
            writeln!(
                out,
                "-- step {}: ego {}, peers {}; reward {:+.3}{mark}",
                moment.n_steps,
                name(step.ego_action),
                peers.join(" "),
                step.outcome.task_reward
            )?;
        }
    }
    writeln!(out, "{text}")?;
    if let Some(step) = moment.step
        && step.outcome.boundary != Boundary::WithinEpisode
    {
        writeln!(
            out,
            "   episode {} ends: {:?}",
            moment.episode + 1,
            step.outcome.ending.expect("it ended")
        )?;
    }
    if waits {
        write!(out, "[Enter] ")?;
        out.flush()?;
        std::io::stdin().lock().read_line(&mut String::new())?;
    }
    Ok(())
}
