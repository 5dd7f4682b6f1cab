//! `pace watch`: one encounter in the terminal, of a trained agent with its thoughts or of a scripted ego.
//!
//! How a moment is drawn is in `screen`, what is told about it all in `teller`; what an agent takes its peers for is in
//! `pace_lab::peer_beliefs`.

mod screen;
mod teller;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use pace_games::{AgentSession, AnyGame, GAMES, GameError, Meeting, Seed, Split, TupleListing, find_game};
use pace_lab::{PeerBeliefs, ReplayOptions, RunView, TrainedAgent, write_replay};

use crate::build_info::command_line;
use crate::game_args::KeyArgs;
use crate::ranges::{seed, whole};
use crate::say;
use screen::Screen;
use teller::Teller;

/// The largest number of episodes of an encounter.
const MAX_EPISODES: u64 = 10_000;

#[derive(Debug, Args)]
pub struct WatchArgs {
    /// A run folder, to watch its agent, or the id of a game, to watch a scripted ego. A folder that is called like a game
    /// is named by `./NAME`.
    #[arg(value_name = "RUN|GAME")]
    target: String,
    /// A scripted ego: oracle, bayes, static, random, or another that `pace list games` names. Default: the agent of the
    /// run; bayes if there is none.
    #[arg(long)]
    ego: Option<String>,
    /// The number of the peer (or tuple of peers) in its pool; `pace list peers GAME` shows them.
    #[arg(long, default_value_t = 0, value_parser = whole::<usize>(0..=999_999))]
    peer: usize,
    /// The pool: `train`, `test` or `uniform:N`.
    #[arg(long, default_value = "test")]
    pool: String,
    /// How many episodes; the game's own number if not given.
    #[arg(long, value_parser = whole::<usize>(1..=MAX_EPISODES))]
    episodes: Option<usize>,
    /// The seed of all chance. It is the encounter that `pace adapt` counts as its first with this peer.
    #[arg(long, default_value_t = 1, value_parser = seed())]
    seed: u64,
    /// Wait for Enter after every step.
    #[arg(long)]
    step: bool,
    /// Milliseconds after every step. Default: 250 on a terminal, 0 elsewhere.
    #[arg(long, value_name = "MS", value_parser = whole::<u64>(0..=60_000))]
    delay: Option<u64>,
    /// Show the steps from this episode on; of the earlier ones, only how they ended.
    #[arg(long, value_name = "EPISODE", default_value_t = 1, value_parser = whole::<usize>(1..=MAX_EPISODES))]
    from: usize,
    /// Show the steps of this episode alone.
    #[arg(long, value_name = "EPISODE", conflicts_with = "from", value_parser = whole::<usize>(1..=MAX_EPISODES))]
    only_episode: Option<usize>,
    /// Shows nothing and writes the encounter down for the pages of `pace report`, which replay it: into this file, or into
    /// replays/ of the run if no file is named.
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    record: Option<Option<PathBuf>>,
    /// Of a game: `paper` or `reference`, where the paper's text and the authors' code differ. A run has its own.
    #[arg(long)]
    preset: Option<String>,
    /// Of a game: sets one key on top of the preset, for example `horizon_steps=50`; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

pub fn run(args: &WatchArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let split = args.pool.parse::<Split>()?;
    let Some(path) = run_folder(&args.target)? else {
        anyhow::ensure!(args.record.is_none(), "--record: found a game, expected the folder of a run");
        let keys = KeyArgs {
            preset: args.preset.clone().unwrap_or_else(|| "paper".to_owned()),
            overrides: args.overrides.clone(),
        };
        let game = keys.open(&args.target)?;
        return watch_scripted(args, &*game, split, args.ego.as_deref().unwrap_or("bayes"), out);
    };
    let own_keys = args.preset.is_none() && args.overrides.is_empty();
    anyhow::ensure!(own_keys, "--preset, --set: a run is watched under its own keys; expected neither");
    if let Some(file) = &args.record {
        anyhow::ensure!(args.ego.is_none(), "--record: found --ego, expected the agent of the run alone");
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
    say(&format!("{} moments are written down; `pace report` shows them", replay.n_moments()));
    writeln!(out, "{}", path.display())?;
    Ok(())
}

/// The run folder that is meant, or none if a game is.
fn run_folder(target: &str) -> Result<Option<PathBuf>, GameError> {
    if find_game(target).is_ok() {
        return Ok(None);
    }
    if Path::new(target).exists() || target.contains(std::path::MAIN_SEPARATOR) {
        return Ok(Some(PathBuf::from(target)));
    }
    Err(GameError::unknown("game or run folder", target, GAMES.iter().map(|entry| entry.id)))
}

impl WatchArgs {
    fn n_episodes(&self, game: &dyn AnyGame) -> usize {
        self.episodes.unwrap_or(game.spec().episodes_per_encounter)
    }

    /// The same luck as in the first encounter of `pace adapt` and `pace references` with this peer.
    fn luck(&self) -> Seed {
        Seed::new(self.seed).child("encounter", &[self.peer as u64, 0])
    }

    fn teller<'a>(
        &self,
        game: &'a dyn AnyGame,
        n_episodes: usize,
        out: &'a mut dyn Write,
    ) -> anyhow::Result<Teller<'a>> {
        let (name, first) = match self.only_episode {
            Some(only) => ("--only-episode", only),
            None => ("--from", self.from),
        };
        anyhow::ensure!(
            (1..=n_episodes).contains(&first),
            "{name}: found {first}, expected 1 to {n_episodes}"
        );
        let last = self.only_episode.unwrap_or(n_episodes);
        let screen = Screen::new(out, self.delay, self.step);
        Ok(Teller::new(game, screen, n_episodes, first - 1..last))
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
    let meeting = Meeting { reference: ego, split, tuple: args.peer, n_episodes, seed: args.luck() };
    let mut session = game.reference_session(&meeting)?;
    let mut teller = args.teller(game, n_episodes, out)?;
    watch(&mut session, &mut teller, None)?;
    let outcomes = session.outcomes();
    let expected: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.expected_return).collect();
    let peers = met(game, split, args.peer).description;
    let who = format!("{ego} met {} peer {} ({peers})", split.to_string(), args.peer);
    teller.end_encounter(&who, expected.as_deref())?;
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
    let mut session = agent.session(game, split, args.peer, &[], n_episodes, args.luck())?;
    let tuple = met(game, split, args.peer);
    // A method that identifies nobody has nothing to show; an identifier without a loss of its own stays as it was drawn.
    let identifies = agent.n_identified() > 0 && trained.config.train.auxiliary_weight > 0.0;
    let mut mind = identifies.then(|| PeerBeliefs::new(game, &tuple));
    let mut teller = args.teller(game, n_episodes, out)?;
    watch(&mut session, &mut teller, mind.as_mut())?;
    let who = format!(
        "{} after {} steps of training met {} peer {} ({})",
        trained.config.method,
        trained.steps,
        split.to_string(),
        args.peer,
        tuple.description
    );
    teller.end_encounter(&who, None)?;
    if let Some(mind) = &mind {
        teller.write_lines(&mind.summary_lines(game.spec().nouns.episode))?;
    }
    Ok(())
}

/// Tells a session from its first moment to its last, and what the agent takes its peers for, where it has a mind about them.
fn watch(
    session: &mut AgentSession,
    teller: &mut Teller<'_>,
    mut mind: Option<&mut PeerBeliefs>,
) -> anyhow::Result<()> {
    loop {
        let moment = session.moment();
        let (inference, decision) = (moment.inference(), moment.decision);
        if moment.ending.is_some() {
            teller.tell(moment, None)?;
        }
        if let (Some(mind), Some(inference)) = (&mut mind, inference) {
            mind.update(inference, (moment.episode, moment.n_steps));
        }
        match decision {
            Some(decision) => {
                let inside = inference.map(|inference| (inference, decision.action, mind.as_deref()));
                teller.tell(moment, inside)?;
            }
            None => teller.end_episode(mind.as_deref())?,
        }
        if !session.step()? {
            return Ok(());
        }
    }
}

/// The tuple that is met; its number has been found good.
fn met(game: &dyn AnyGame, split: Split, tuple: usize) -> TupleListing {
    game.pool(split).tuples.swap_remove(tuple)
}
