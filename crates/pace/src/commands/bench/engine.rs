//! `pace bench engine`: compares one update with its matrix products alone, the updates of other methods with PACE's, and a
//! rollout with the updates on its batch.
//!
//! All cases are timed in turn, round after round, so that other load on the machine affects them equally.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use pace_games::{ConfigError, GAMES, GameEntry, Preset, find_game};
use pace_learn::config::MinibatchUnit;
use pace_learn::update_benchmark::run_square_product;
use pace_learn::{BatchShape, Trainer, UpdateBenchmark, find_method, resolve};
use serde_json::{Map, Value, json};

use crate::build_info::all_threads;
use crate::ranges::thread_count;

#[derive(Debug, Args)]
pub struct BenchEngineArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Total time in seconds; every case runs at least twice.
    #[arg(long, default_value = "20", value_parser = super::seconds)]
    seconds: Duration,
    /// Run only shapes whose name contains this text. Default: all shapes.
    #[arg(long)]
    shape: Option<String>,
    /// Maximum number of threads. Default: all cores.
    #[arg(long, value_parser = thread_count())]
    threads: Option<usize>,
}

/// A mini-batch of the paper, the input of a timed update.
struct BenchCase {
    name: &'static str,
    /// Id of the game whose keys are used.
    game: &'static str,
    shape: BatchShape,
}

/// The mini-batches of the games, named by their ids, and that of Kuhn Poker again with distinct observations only.
fn shapes() -> [BenchCase; 4] {
    // 65 episodes of one decision and 35 of two, as in a typical encounter of Kuhn Poker.
    let hands = (0..100).map(|episode| if episode % 20 < 7 { 2 } else { 1 }).collect();
    let kuhn = BatchShape {
        observation_size: 13,
        n_actions: 2,
        n_classes: vec![40],
        n_encounters: 49,
        episode_lengths: hands,
        n_observations: None,
    };
    // Numbers of distinct observations of the ego, which moves first: at its decisions, and at the end of a hand.
    let repeated = BatchShape { n_observations: Some([6, 24]), ..kuhn.clone() };
    let overcooked = BatchShape {
        observation_size: 105,
        n_actions: 6,
        n_classes: vec![18],
        n_encounters: 20,
        episode_lengths: vec![40; 5],
        n_observations: None,
    };
    let predator_prey =
        BatchShape { observation_size: 37, n_actions: 5, n_classes: vec![2, 4, 4], ..overcooked.clone() };
    [
        BenchCase { name: "kuhn-poker", game: "kuhn-poker", shape: repeated },
        BenchCase { name: "kuhn-poker-distinct", game: "kuhn-poker", shape: kuhn },
        BenchCase { name: "overcooked", game: "overcooked", shape: overcooked },
        BenchCase { name: "predator-prey", game: "predator-prey", shape: predator_prey },
    ]
}

/// Methods whose updates are compared with PACE's, one per network architecture.
const OTHER_METHODS: [&str; 4] = ["generalist", "liamx", "lili", "pace-tf"];

/// Times of one operation in seconds, one per round.
#[derive(Debug, Default)]
struct Timings(Vec<f64>);

impl Timings {
    fn time<T>(&mut self, operation: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = operation();
        self.0.push(begin.elapsed().as_secs_f64());
        result
    }

    /// The fastest round. Other load on the machine can only add time, so this is the best estimate.
    fn best(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Times of the updates of one method on one shape with one number of threads.
struct UpdateTimings {
    method: &'static str,
    shape: &'static str,
    n_threads: usize,
    n_decisions: usize,
    update: Timings,
    products: Timings,
    flops: f64,
}

struct RolloutTimings {
    game: &'static str,
    n_threads: usize,
    n_decisions: usize,
    /// Number of updates per batch.
    n_updates: usize,
    times: Timings,
}

pub fn run(args: &BenchEngineArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let time = args.seconds;
    let counts = super::thread_counts(crate::commands::train::threads(args.threads));
    let is_wanted = |name: &str| args.shape.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let all_shapes = shapes();
    let names = all_shapes.each_ref().map(|one| one.name);
    let shapes: Vec<_> = all_shapes.into_iter().filter(|one| is_wanted(one.name)).collect();
    if shapes.is_empty() {
        return Err(ConfigError::unknown("shape", args.shape.as_deref().unwrap_or_default(), names).into());
    }
    let mut peak = Timings::default();
    let (mut cases, peak_flops) = time_updates(&shapes, &counts, time.mul_f64(0.75), &mut peak)?;
    let games = GAMES.iter().filter(|entry| is_wanted(entry.id));
    let rollouts = time_rollouts(&games.collect::<Vec<_>>(), &counts, time.mul_f64(0.25))?;
    let peak = peak_flops / peak.best() / 1e9;
    cases.sort_by_key(|case| case.n_threads);
    cases.sort_by_key(|case| case.shape);
    let (cases, other_methods): (Vec<UpdateTimings>, Vec<UpdateTimings>) =
        cases.into_iter().partition(|case| case.method == "pace");
    let all: Vec<&UpdateTimings> = cases.iter().collect();
    let updates: Vec<Value> = cases.iter().map(|case| update_row(case, &all, peak)).collect();
    let methods: Vec<Value> =
        other_methods.iter().map(|case| method_row(case, &other_methods, &cases, peak)).collect();
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
    writeln!(out, "single-thread GEMM peak: {peak:.1} GFLOP/s")?;
    for row in &updates {
        writeln!(
            out,
            "update  {:<19} {} thread(s) {:>8.2} ms {:>7.1} GFLOP/s, {:.2} of GEMM-only throughput, {:.2} of peak, {:.2}x speed-up over one thread",
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
            "update  {:<19} {} thread(s) {:>8.2} ms, {:.2} of GEMM-only throughput, {:.2}x PACE per decision: {}",
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
            "rollout {:<19} {} thread(s) {:>8.2} ms for {} decisions, {:.2} of the time of their updates",
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

/// Times every shape with every method and number of threads, and the GEMM of the peak. Also returns the number of operations
/// of that GEMM.
fn time_updates(
    shapes: &[BenchCase],
    counts: &[usize],
    time: Duration,
    peak: &mut Timings,
) -> anyhow::Result<(Vec<UpdateTimings>, f64)> {
    let mut benches = Vec::new();
    let mut cases: Vec<(usize, UpdateTimings)> = Vec::new();
    let methods =
        ["pace"].into_iter().chain(OTHER_METHODS).map(find_method).collect::<Result<Vec<_>, _>>()?;
    for (one, method) in shapes.iter().flat_map(|one| methods.iter().map(move |method| (one, method))) {
        let BenchCase { name, game, shape } = one;
        let (_, mut config) = resolve(find_game(game)?, method, Preset::Paper)?;
        // A mini-batch of whole encounters encodes each of its contexts once, so that the engine is measured rather than the
        // encoding of other contexts.
        if config.minibatch_unit != MinibatchUnit::Chunks {
            config.minibatch_unit = MinibatchUnit::Encounters;
        }
        let index = benches.len();
        benches.push(UpdateBenchmark::synthetic(method, shape, config));
        for n_threads in counts {
            let case = UpdateTimings {
                method: method.id,
                shape: name,
                n_threads: *n_threads,
                n_decisions: benches[index].n_decisions(),
                update: Timings::default(),
                products: Timings::default(),
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
            case.update.time(|| bench.update());
            case.flops = case.products.time(|| bench.run_gemms_only());
            peak_flops = peak.time(|| run_square_product(&mut square));
        }
    }
    Ok((cases.into_iter().map(|(_, case)| case).collect(), peak_flops))
}

fn time_rollouts(
    games: &[&GameEntry],
    counts: &[usize],
    time: Duration,
) -> anyhow::Result<Vec<RolloutTimings>> {
    let mut cases: Vec<(usize, RolloutTimings)> = Vec::new();
    let mut trainers = Vec::new();
    for entry in games {
        let (_, config) = resolve(entry, find_method("pace")?, Preset::Paper)?;
        let n_updates = config.epochs * config.minibatches;
        let game = entry.open(Preset::Paper, &Map::new())?;
        for n_threads in counts {
            let times = Timings::default();
            let case =
                RolloutTimings { game: entry.id, n_threads: *n_threads, n_decisions: 0, n_updates, times };
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
            case.n_decisions = case.times.time(|| trainers[*index].roll_out())?;
        }
    }
    Ok(cases.into_iter().map(|(_, case)| case).collect())
}

fn update_row(case: &UpdateTimings, all: &[&UpdateTimings], peak: f64) -> Value {
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

/// Like `update_row`, but for a method other than PACE, with its time per decision relative to PACE's.
fn method_row(case: &UpdateTimings, all: &[UpdateTimings], pace: &[UpdateTimings], peak: f64) -> Value {
    let of_method: Vec<&UpdateTimings> = all.iter().filter(|other| other.method == case.method).collect();
    let mut row = update_row(case, &of_method, peak);
    let same = pace.iter().find(|other| (other.shape, other.n_threads) == (case.shape, case.n_threads));
    let per_decision = |case: &UpdateTimings| case.update.best() / case.n_decisions as f64;
    row["method"] = json!(case.method);
    row["times_pace_per_decision"] =
        json!(same.map(|same| super::rounded(per_decision(case) / per_decision(same))));
    row
}

fn rollout_row(case: &RolloutTimings, updates: &[UpdateTimings]) -> Value {
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
