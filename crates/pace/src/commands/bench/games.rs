//! `pace bench games`: measures steps per second of the games.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use pace_games::{Action, GAMES, PeerObservationMode, Preset, Seed, Split, StepBuffers};
use serde_json::{Map, json};

use crate::ranges::whole;

#[derive(Debug, Args)]
pub struct BenchGamesArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Number of lanes (environments stepped in one call).
    #[arg(long, default_value_t = 64, value_parser = whole::<usize>(1..=65_536))]
    lanes: usize,
    /// Seconds per game.
    #[arg(long, default_value = "2", value_parser = super::seconds)]
    seconds: Duration,
}

pub fn run(args: &BenchGamesArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for entry in GAMES {
        let mut rates = measure(entry, args.lanes, args.seconds)?;
        rates.sort_by(f64::total_cmp);
        let (median, best) = (rates[rates.len() / 2], rates[rates.len() - 1]);
        if args.json {
            rows.push(json!({
                "game": entry.id, "steps_per_second": median.round(), "best": best.round(),
                "lanes": args.lanes, "threads": 1, "rounds": rates.len(),
            }));
        } else {
            writeln!(out, "{:<14} {:>12.0} steps/s  (best round {best:.0})", entry.id, median)?;
        }
    }
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&json!({ "games": rows }))?)?;
    }
    Ok(())
}

/// Ego steps per second in each of ten rounds. The time to start the next encounter of a lane is included.
fn measure(entry: &pace_games::GameEntry, n_lanes: usize, time: Duration) -> anyhow::Result<Vec<f64>> {
    const N_ROUNDS: u32 = 10;
    let game = entry.open(Preset::Paper, &Map::new())?;
    let (n_actions, n_episodes) = (game.spec().n_actions() as u32, game.spec().episodes_per_encounter);
    let n_tuples = game.pool(Split::Train).tuples.len();
    let mut arena = game.arena(Split::Train, n_lanes);
    let mut steps = StepBuffers::new(game.spec(), n_lanes, PeerObservationMode::Skipped);
    let seed = Seed::new(1);
    // The ego's actions are sampled beforehand, so that their sampling is not measured.
    let mut rng = seed.stream("ego");
    let actions: Vec<Vec<Action>> =
        (0..256).map(|_| (0..n_lanes).map(|_| rng.below(n_actions) as Action).collect()).collect();
    let mut n_encounters = 0u64;
    let mut rates = Vec::new();
    for round in 0..=N_ROUNDS {
        let begin = Instant::now();
        let mut n_steps = 0u64;
        while begin.elapsed() < time / N_ROUNDS {
            for joint in &actions {
                for lane in 0..n_lanes {
                    if arena.idle()[lane] {
                        n_encounters += 1;
                        let tuple = n_encounters as usize % n_tuples;
                        let seed = seed.child("encounter", &[n_encounters]);
                        arena.begin(lane, tuple, n_episodes, seed, steps.observation_mut(lane));
                    }
                }
                arena.step(joint, &mut steps.batch());
                n_steps += n_lanes as u64;
            }
        }
        // The first round warms up caches and the branch predictor.
        if round > 0 {
            rates.push(n_steps as f64 / begin.elapsed().as_secs_f64());
        }
    }
    Ok(rates)
}
