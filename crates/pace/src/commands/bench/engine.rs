//! `pace bench engine`: one update beside its matrix products alone, the updates of other methods beside PACE's, and a rollout
//! beside the updates it feeds.
//!
//! Everything is timed in turn, round after round, so that whatever else the machine does hits all of it alike.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use pace_games::{GAMES, GameEntry, GameError, Preset, find_game};
use pace_learn::config::Minibatch;
use pace_learn::workbench::run_square_product;
use pace_learn::{Trainer, WorkShape, Workbench, find_method, resolve};
use serde_json::{Map, Value, json};

use crate::build_info::all_threads;
use crate::ranges::thread_count;

#[derive(Debug, Args)]
pub struct BenchEngineArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Seconds for everything together; every piece of work is done twice even where they are too few.
    #[arg(long, default_value = "20", value_parser = super::seconds)]
    seconds: Duration,
    /// Only shapes whose name holds this text.
    #[arg(long)]
    shape: Option<String>,
    /// The most threads; all cores if not given.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
}

/// What is timed: a mini-batch of the paper.
struct Work {
    name: &'static str,
    /// The id of the game whose keys it has.
    game: &'static str,
    shape: WorkShape,
}

/// The mini-batches of the games, under their ids, and that of Kuhn Poker once more with observations that never recur.
fn shapes() -> [Work; 4] {
    // 65 episodes of one decision and 35 of two: what an encounter of Kuhn poker comes to.
    let hands = (0..100).map(|episode| if episode % 20 < 7 { 2 } else { 1 }).collect();
    let kuhn = WorkShape {
        observation_size: 13,
        n_actions: 2,
        n_classes: vec![40],
        n_encounters: 49,
        episode_lengths: hands,
        n_observations: None,
    };
    // What the ego, who moves first, can see when it decides and when a hand has ended.
    let recurring = WorkShape { n_observations: Some([6, 24]), ..kuhn.clone() };
    let overcooked = WorkShape {
        observation_size: 105,
        n_actions: 6,
        n_classes: vec![18],
        n_encounters: 20,
        episode_lengths: vec![40; 5],
        n_observations: None,
    };
    let predator_prey =
        WorkShape { observation_size: 37, n_actions: 5, n_classes: vec![2, 4, 4], ..overcooked.clone() };
    [
        Work { name: "kuhn-poker", game: "kuhn-poker", shape: recurring },
        Work { name: "kuhn-poker-unlike", game: "kuhn-poker", shape: kuhn },
        Work { name: "overcooked", game: "overcooked", shape: overcooked },
        Work { name: "predator-prey", game: "predator-prey", shape: predator_prey },
    ]
}

/// The methods whose updates are timed beside PACE's, one for each network.
const BESIDE: [&str; 4] = ["generalist", "liamx", "lili", "pace-tf"];

/// Times of one piece of work, in seconds.
#[derive(Debug, Default)]
struct Times(Vec<f64>);

impl Times {
    fn take<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = work();
        self.0.push(begin.elapsed().as_secs_f64());
        result
    }

    /// The fastest round. Other work on the machine only ever adds time, so that this is the nearest to the work's own.
    fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// The times of one shape and method on one number of threads.
struct Case {
    method: &'static str,
    shape: &'static str,
    n_threads: usize,
    n_decisions: usize,
    update: Times,
    products: Times,
    flops: f64,
}

struct RolloutCase {
    game: &'static str,
    n_threads: usize,
    n_decisions: usize,
    /// Updates that one batch is used for.
    n_updates: usize,
    times: Times,
}

pub fn run(args: &BenchEngineArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let time = args.seconds;
    let counts = super::thread_counts(crate::commands::train::threads(args.threads));
    let is_wanted = |name: &str| args.shape.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let all_shapes = shapes();
    let names = all_shapes.each_ref().map(|one| one.name);
    let shapes: Vec<_> = all_shapes.into_iter().filter(|one| is_wanted(one.name)).collect();
    if shapes.is_empty() {
        return Err(GameError::unknown("shape", args.shape.as_deref().unwrap_or_default(), names).into());
    }
    let mut peak = Times::default();
    let (mut cases, peak_flops) = time_updates(&shapes, &counts, time.mul_f64(0.75), &mut peak)?;
    let games = GAMES.iter().filter(|entry| is_wanted(entry.id));
    let rollouts = time_rollouts(&games.collect::<Vec<_>>(), &counts, time.mul_f64(0.25))?;
    let peak = peak_flops / peak.best() / 1e9;
    cases.sort_by_key(|case| case.n_threads);
    cases.sort_by_key(|case| case.shape);
    let (cases, beside): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.method == "pace");
    let all: Vec<&Case> = cases.iter().collect();
    let updates: Vec<Value> = cases.iter().map(|case| update_row(case, &all, peak)).collect();
    let methods: Vec<Value> = beside.iter().map(|case| method_row(case, &beside, &cases, peak)).collect();
    let rollouts: Vec<Value> = rollouts.iter().map(|case| rollout_row(case, &cases)).collect();
    if args.json {
        let document = json!({
            "gemm_peak_gflops": super::rounded(peak), "update": updates, "methods": methods,
            "rollout": rollouts,
            "simd": pace_learn::simd_name(), "threads_of_machine": all_threads(),
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
        return Ok(());
    }
    writeln!(out, "one thread multiplies large matrices at {peak:.1} GFLOP/s")?;
    for row in &updates {
        writeln!(
            out,
            "update  {:<17} {} thread(s) {:>8.2} ms {:>7.1} GFLOP/s, {:.2} of the products alone, {:.2} of the peak, {:.2}x one thread",
            text(&row["shape"]),
            row["threads"],
            number(&row["ms"]),
            number(&row["gflops"]),
            number(&row["share_of_gemm"]),
            number(&row["share_of_peak"]),
            number(&row["speedup_over_one_thread"]),
        )?;
    }
    for row in &methods {
        writeln!(
            out,
            "update  {:<17} {} thread(s) {:>8.2} ms, {:.2} of the products alone, {:.2}x PACE per decision: {}",
            text(&row["shape"]),
            row["threads"],
            number(&row["ms"]),
            number(&row["share_of_gemm"]),
            number(&row["times_pace_per_decision"]),
            text(&row["method"]),
        )?;
    }
    for row in &rollouts {
        writeln!(
            out,
            "rollout {:<17} {} thread(s) {:>8.2} ms for {} decisions, {:.2} of the updates on them",
            text(&row["shape"]),
            row["threads"],
            number(&row["ms"]),
            row["decisions"],
            number(&row["share_of_update"]),
        )?;
    }
    Ok(())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Times every shape on every number of threads, in turn, together with the peak; returns the peak's operations too.
fn time_updates(
    shapes: &[Work],
    counts: &[usize],
    time: Duration,
    peak: &mut Times,
) -> anyhow::Result<(Vec<Case>, f64)> {
    let mut benches = Vec::new();
    let mut cases: Vec<(usize, Case)> = Vec::new();
    let methods = ["pace"].into_iter().chain(BESIDE).map(find_method).collect::<Result<Vec<_>, _>>()?;
    for (one, method) in shapes.iter().flat_map(|one| methods.iter().map(move |method| (one, method))) {
        let Work { name, game, shape } = one;
        let (_, mut config) = resolve(find_game(game)?, method, Preset::Paper)?;
        // One mini-batch of whole encounters: its contexts are encoded once, so that the engine is measured and not the
        // encoding of all others' contexts.
        if config.minibatch != Minibatch::Chunks {
            config.minibatch = Minibatch::Encounters;
        }
        let index = benches.len();
        benches.push(Workbench::synthetic(method, shape, config));
        for n_threads in counts {
            let case = Case {
                method: method.id,
                shape: name,
                n_threads: *n_threads,
                n_decisions: benches[index].n_decisions(),
                update: Times::default(),
                products: Times::default(),
                flops: 0.0,
            };
            cases.push((index, case));
        }
    }
    let begin = Instant::now();
    let mut peak_flops = 0.0;
    let mut square = Default::default();
    let mut n_rounds = 0;
    while n_rounds < 2 || begin.elapsed() < time {
        n_rounds += 1;
        for (index, case) in &mut cases {
            let bench = &mut benches[*index];
            bench.set_threads(case.n_threads);
            case.update.take(|| bench.update());
            case.flops = case.products.take(|| bench.run_gemms_only());
            peak_flops = peak.take(|| run_square_product(&mut square));
        }
    }
    Ok((cases.into_iter().map(|(_, case)| case).collect(), peak_flops))
}

fn time_rollouts(games: &[&GameEntry], counts: &[usize], time: Duration) -> anyhow::Result<Vec<RolloutCase>> {
    let mut cases: Vec<(usize, RolloutCase)> = Vec::new();
    let mut trainers = Vec::new();
    for entry in games {
        let (_, config) = resolve(entry, find_method("pace")?, Preset::Paper)?;
        let n_updates = config.epochs * config.minibatches;
        let game = entry.open(Preset::Paper, &Map::new())?;
        for n_threads in counts {
            let times = Times::default();
            let case =
                RolloutCase { game: entry.id, n_threads: *n_threads, n_decisions: 0, n_updates, times };
            cases.push((trainers.len(), case));
        }
        trainers.push(Trainer::new(find_method("pace")?, game, config, 1, 1)?);
    }
    let begin = Instant::now();
    let mut n_rounds = 0;
    while !cases.is_empty() && (n_rounds < 2 || begin.elapsed() < time) {
        n_rounds += 1;
        for (index, case) in &mut cases {
            trainers[*index].set_threads(case.n_threads);
            case.n_decisions = case.times.take(|| trainers[*index].roll_out())?;
        }
    }
    Ok(cases.into_iter().map(|(_, case)| case).collect())
}

fn update_row(case: &Case, all: &[&Case], peak: f64) -> Value {
    let secs = case.update.best();
    let (rate, products_rate) = (case.flops / secs / 1e9, case.flops / case.products.best() / 1e9);
    let alone = all.iter().find(|other| other.shape == case.shape && other.n_threads == 1);
    let speedup = alone.map_or(1.0, |alone| alone.update.best() / secs);
    json!({
        "shape": case.shape,
        "threads": case.n_threads,
        "decisions": case.n_decisions,
        "ms": super::rounded(secs * 1e3),
        "median_ms": super::rounded(case.update.median() * 1e3),
        "gflops": super::rounded(rate),
        "share_of_peak": super::rounded(rate / (peak * case.n_threads as f64)),
        "gemm_gflops_same_shapes": super::rounded(products_rate),
        "share_of_gemm": super::rounded(rate / products_rate),
        "speedup_over_one_thread": super::rounded(speedup),
        "rounds": case.update.0.len(),
    })
}

/// The same for another method than PACE, and how many times as long it takes for a decision.
fn method_row(case: &Case, all: &[Case], pace: &[Case], peak: f64) -> Value {
    let of_method: Vec<&Case> = all.iter().filter(|other| other.method == case.method).collect();
    let mut row = update_row(case, &of_method, peak);
    let same = pace.iter().find(|other| (other.shape, other.n_threads) == (case.shape, case.n_threads));
    let per_decision = |case: &Case| case.update.best() / case.n_decisions as f64;
    row["method"] = json!(case.method);
    row["times_pace_per_decision"] =
        json!(same.map(|same| super::rounded(per_decision(case) / per_decision(same))));
    row
}

fn rollout_row(case: &RolloutCase, updates: &[Case]) -> Value {
    let secs = case.times.best();
    let update = updates.iter().find(|one| one.shape == case.game && one.n_threads == case.n_threads);
    // A game without a measured shape has no update to compare with.
    let share = update.map(|one| {
        let per_decision = one.update.best() / one.n_decisions as f64;
        let n_passes = case.n_updates as f64 * one.n_decisions as f64;
        super::rounded(secs / (per_decision * n_passes))
    });
    json!({
        "shape": case.game,
        "threads": case.n_threads,
        "ms": super::rounded(secs * 1e3),
        "decisions": case.n_decisions,
        "share_of_update": share,
        "rounds": case.times.0.len(),
    })
}
