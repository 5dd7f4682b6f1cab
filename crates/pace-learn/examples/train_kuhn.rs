//! cargo run --release -p pace-learn --example train_kuhn
//!
//! The smallest whole run: PACE learns Kuhn poker, then meets the ten test peers.

use pace_games::{Metric, Preset, Split, find_game};
use pace_learn::{AdaptConfig, Trainer, adapt, find_method, resolve};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = |index: usize| std::env::args().nth(index);
    let preset = argument(1).as_deref().unwrap_or("best").parse::<Preset>()?;
    let (entry, method) = (find_game("kuhn-poker")?, find_method("pace")?);
    let (game_keys, mut config) = resolve(entry, method, preset)?;
    if let Some(steps) = argument(2) {
        config.total_steps = steps.parse()?;
    }
    let seed = argument(3).map_or(Ok(1), |seed| seed.parse())?;
    let n_threads = std::thread::available_parallelism()?.get();
    let mut trainer = Trainer::new(method, entry.open(preset, &game_keys)?, config, seed, n_threads)?;
    while !trainer.is_finished() {
        let report = trainer.iterate()?;
        if report.iteration % 5 == 1 {
            let metric = |name: &str| report.metrics[name];
            println!(
                "{:>8} steps  return {:+.4}  last tenth {:+.4}  identified {:.3}  entropy {:.3} kl {:.4} clip {:.3} vl {:.3} aux {:.3} ev {:.3} gn {:.3}",
                report.steps,
                metric("charts/episodic_return"),
                metric("adapt/last_tenth"),
                metric("peer/top1"),
                metric("losses/entropy"),
                metric("losses/approx_kl"),
                metric("losses/clipfrac"),
                metric("losses/value_loss"),
                metric("peer/aux_loss"),
                metric("losses/explained_variance"),
                metric("losses/gradient_norm"),
            );
        }
    }
    for (split, passes) in [(Split::Test, 400), (Split::Uniform(4000), 1)] {
        let config = AdaptConfig::new(split, passes, 100, 1);
        let outcomes = adapt(&trainer.agent(), &*entry.open(preset, &game_keys)?, &config, n_threads)?;
        let block = |range: std::ops::Range<usize>| {
            let scores = outcomes.iter().flat_map(|outcome| &outcome.episodes[range.clone()]);
            let n = (outcomes.len() * range.len()) as f64;
            scores.map(|episode| episode.score(Metric::Return)).sum::<f64>() / n
        };
        println!(
            "{}: {:.4} (first ten hands {:.4}, last ten {:.4})",
            split,
            block(0..100),
            block(0..10),
            block(90..100)
        );
    }
    Ok(())
}
