//! `pace watch`: shows one encounter of a trained agent, with its beliefs, or of a scripted ego in the terminal.
//!
//! `printer` writes the text of steps, episodes and the encounter; `screen` places it on the terminal. The agent's beliefs about
//! its peers come from `pace_lab`.

mod printer;
mod screen;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_games::{
    AgentSession, AnyGame, ConfigError, GAMES, Preset, ScriptedEncounter, Seed, Split, TupleListing,
    find_game,
};
use pace_lab::{PeerBeliefs, ReplayOptions, RunView, TrainedAgent, write_replay};

use crate::build_info::command_line;
use crate::game_args::{KeyArgs, preset};
use crate::log_line;
use crate::ranges::{seed, whole};
use printer::EncounterPrinter;
use screen::EncounterScreen;

/// Maximum number of episodes of an encounter.
const MAX_EPISODES: u64 = 10_000;

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Run folder, to watch its agent, or id of a game, to watch a scripted ego. Write `./NAME` for a folder with the name of a
    /// game.
    #[arg(value_name = "RUN|GAME")]
    target: String,
    /// Scripted ego: oracle, bayes, static, random, or another that `pace list games` shows. Default: the agent of the run; for
    /// a game, bayes.
    #[arg(long)]
    ego: Option<String>,
    /// Index of the peer tuple in its pool (`pace list peers GAME` shows all).
    #[arg(long, default_value_t = 0, value_parser = whole::<usize>(0..=999_999))]
    peer: usize,
    /// Peer pool: `test`, `validation`, `train` or `uniform:N` (N tuples sampled uniformly).
    #[arg(long, default_value = "test")]
    pool: Split,
    /// Number of episodes. Default: the game's `episodes_per_encounter`.
    #[arg(long, value_parser = whole::<usize>(1..=MAX_EPISODES))]
    episodes: Option<usize>,
    /// Random seed. Plays the first encounter that `pace adapt` plays with this peer.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Wait for Enter after every step.
    #[arg(long)]
    step: bool,
    /// Pause after every step in milliseconds. Default: 250 on a terminal, 0 elsewhere.
    #[arg(long, value_name = "MS", value_parser = whole::<u64>(0..=60_000))]
    delay: Option<u64>,
    /// First episode shown step by step; earlier ones take one line each.
    #[arg(long, alias = "from", value_name = "EPISODE", default_value_t = 1, value_parser = whole::<usize>(1..=MAX_EPISODES))]
    from_episode: usize,
    /// Show only this episode step by step.
    #[arg(long, value_name = "EPISODE", conflicts_with = "from_episode", value_parser = whole::<usize>(1..=MAX_EPISODES))]
    only_episode: Option<usize>,
    /// Write the encounter to a replay file for `pace report` instead of showing it. Default: replays/ in the run folder.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    record: Option<Option<PathBuf>>,
    /// Preset of a game: `paper` follows the paper's text, `reference` the authors' code; not allowed with a run. Default:
    /// `paper`.
    #[arg(long, value_parser = preset(), hide_possible_values = true)]
    preset: Option<Preset>,
    /// Override one key of a game's preset, for example `horizon_steps=50`; not allowed with a run. Repeatable.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

pub fn run(args: &WatchArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let split = args.pool;
    let Some(path) = run_folder(&args.target)? else {
        anyhow::ensure!(args.record.is_none(), "--record: found a game, expected a run folder");
        let keys =
            KeyArgs { preset: args.preset.unwrap_or(Preset::Paper), overrides: args.overrides.clone() };
        let game = keys.open(&args.target)?;
        return watch_scripted(args, &*game, split, args.ego.as_deref().unwrap_or("bayes"), out);
    };
    let own_keys = args.preset.is_none() && args.overrides.is_empty();
    anyhow::ensure!(own_keys, "--preset, --set: not allowed with a run, which has its own keys");
    if let Some(file) = &args.record {
        anyhow::ensure!(
            args.ego.is_none(),
            "--record: not allowed with --ego; it records the agent of the run"
        );
        return record(args, &RunView::open(&path)?, split, file.as_deref(), out);
    }
    let trained = TrainedAgent::load(&RunView::open(&path)?)?;
    match &args.ego {
        Some(ego) => watch_scripted(args, &*trained.game, split, ego, out),
        None => watch_agent(args, &trained, split, out),
    }
}

fn record(
    args: &WatchArgs,
    view: &RunView,
    split: Split,
    file: Option<&Path>,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let options = ReplayOptions {
        split,
        tuple: args.peer,
        episodes: args.episodes,
        seed: args.seed,
        command: command_line(),
    };
    let (replay, path) = write_replay(view, &options, file)?;
    // An episode has one moment more than steps: the one before the first.
    let n_steps = replay.n_moments() - replay.episodes.len();
    log_line(&format!("wrote {n_steps} steps; `pace report` shows the replay"));
    writeln!(out, "{}", path.display())?;
    Ok(())
}

/// The run folder named by `target`, or `None` if it is the id of a game.
fn run_folder(target: &str) -> Result<Option<PathBuf>, ConfigError> {
    if find_game(target).is_ok() {
        return Ok(None);
    }
    if Path::new(target).exists() || target.contains(std::path::MAIN_SEPARATOR) {
        return Ok(Some(PathBuf::from(target)));
    }
    Err(ConfigError::unknown("game or run folder", target, GAMES.iter().map(|entry| entry.id)))
}

impl WatchArgs {
    fn n_episodes(&self, game: &dyn AnyGame) -> usize {
        self.episodes.unwrap_or(game.spec().episodes_per_encounter)
    }

    /// Seed of the first encounter that `pace adapt` and `pace references` play with this peer.
    fn encounter_seed(&self) -> Seed {
        Seed::new(self.seed).child("encounter", &[self.peer as u64, 0])
    }

    fn printer<'a>(
        &self,
        game: &'a dyn AnyGame,
        n_episodes: usize,
        out: &'a mut dyn Write,
    ) -> anyhow::Result<EncounterPrinter<'a>> {
        let (name, first) = match self.only_episode {
            Some(only) => ("--only-episode", only),
            None => ("--from-episode", self.from_episode),
        };
        anyhow::ensure!(
            (1..=n_episodes).contains(&first),
            "{name}: found {first}, expected 1 to {n_episodes}"
        );
        let last = self.only_episode.unwrap_or(n_episodes);
        let screen = EncounterScreen::new(out, self.delay, self.step);
        Ok(EncounterPrinter::new(game, screen, n_episodes, first - 1..last))
    }
}

fn watch_scripted(
    args: &WatchArgs,
    game: &dyn AnyGame,
    split: Split,
    ego: &str,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let n_episodes = args.n_episodes(game);
    let encounter = ScriptedEncounter {
        reference: ego,
        split,
        tuple: args.peer,
        n_episodes,
        seed: args.encounter_seed(),
    };
    let mut session = game.reference_session(&encounter)?;
    let mut printer = args.printer(game, n_episodes, out)?;
    watch(&mut session, &mut printer, None)?;
    let outcomes = session.outcomes();
    let expected: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.expected_return).collect();
    let peers = tuple_listing(game, split, args.peer).description;
    let setting = format!("{ego}, {} peer {} ({peers})", split, args.peer);
    printer.end_encounter(&setting, expected.as_deref())?;
    Ok(())
}

fn watch_agent(
    args: &WatchArgs,
    trained: &TrainedAgent,
    split: Split,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let (game, agent) = (&*trained.game, &trained.agent);
    let n_episodes = args.n_episodes(game);
    let mut session = agent.session(game, split, args.peer, &[], n_episodes, args.encounter_seed())?;
    let tuple = tuple_listing(game, split, args.peer);
    // Without an identifier there are no beliefs; without an auxiliary loss the identifier stays untrained.
    let identifies = agent.n_identified() > 0 && trained.config.train.auxiliary_weight > 0.0;
    let mut mind = identifies.then(|| PeerBeliefs::new(game, &tuple));
    let mut printer = args.printer(game, n_episodes, out)?;
    watch(&mut session, &mut printer, mind.as_mut())?;
    let setting = format!(
        "{}, {} training steps, {} peer {} ({})",
        trained.config.method, trained.steps, split, args.peer, tuple.description
    );
    printer.end_encounter(&setting, None)?;
    if let Some(mind) = &mind {
        printer.write_lines(&mind.summary_lines(game.spec().nouns.episode))?;
    }
    Ok(())
}

/// Plays and prints a session to its end, and updates the beliefs about the peers if the agent has any.
fn watch(
    session: &mut AgentSession,
    printer: &mut EncounterPrinter<'_>,
    mut mind: Option<&mut PeerBeliefs>,
) -> anyhow::Result<()> {
    loop {
        let moment = session.moment();
        let (inference, decision) = (moment.inference(), moment.decision);
        if moment.ending.is_some() {
            printer.print_moment(moment, None)?;
        }
        if let (Some(mind), Some(inference)) = (&mut mind, inference) {
            mind.update(inference, (moment.episode, moment.n_steps));
        }
        match decision {
            Some(decision) => {
                let state = inference.map(|inference| (inference, decision.action, mind.as_deref()));
                printer.print_moment(moment, state)?;
            }
            None => printer.end_episode(mind.as_deref())?,
        }
        if !session.step()? {
            return Ok(());
        }
    }
}

/// The listing of a tuple whose index is known to be valid.
fn tuple_listing(game: &dyn AnyGame, split: Split, tuple: usize) -> TupleListing {
    game.pool(split).tuples.swap_remove(tuple)
}
