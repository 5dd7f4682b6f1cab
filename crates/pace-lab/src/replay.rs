//! One encounter of a trained agent, written down moment by moment for a page to step through.

use std::path::{Path, PathBuf};

use pace_games::{Action, Inference, Moment, NO_ACTION, Seed, Split};
use pace_report::{
    FormatVersion, ReplayEpisode, ReplayKind, ReplayMoment, ReplayPeer, ReplayRecord, RunRecord,
};

use crate::adaptation::words;
use crate::durable;
use crate::episode_rows::{episode_ending, score_metric};
use crate::error::LabError;
use crate::peer_beliefs::PeerBeliefs;
use crate::records::write_record;
use crate::run_config::hash_of_run;
use crate::run_folder::RunView;
use crate::trained_agent::TrainedAgent;

/// Which encounter.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The part of the pool.
    pub split: Split,
    /// The number of the tuple there.
    pub tuple: usize,
    /// How many episodes; the game's own number if absent.
    pub episodes: Option<usize>,
    /// All chance. It is the encounter that an adaptation with this seed counts as its first with this tuple.
    pub seed: u64,
    /// The command, for the record.
    pub command: String,
}

/// Writes an encounter down: into `file`, or among the replays of the run, where the same encounter is the same file.
pub fn write_replay(
    view: &RunView,
    options: &ReplayOptions,
    file: Option<&Path>,
) -> Result<(ReplayRecord, PathBuf), LabError> {
    let replay = record_replay(view, options)?;
    let path = match file {
        Some(file) => file.to_owned(),
        None => {
            durable::create_folder(&view.replays_path())?;
            let split = options.split.to_string().replace(':', "-");
            view.replays_path().join(format!("{split}-{}-seed-{}.json", options.tuple, options.seed))
        }
    };
    write_record(&path, &replay.to_json()?)?;
    Ok((replay, path))
}

/// The agent of a run's newest checkpoint plays one encounter.
fn record_replay(view: &RunView, options: &ReplayOptions) -> Result<ReplayRecord, LabError> {
    let TrainedAgent { agent, game, config, steps, .. } = TrainedAgent::load(view)?;
    let manifest = view.manifest()?;
    let spec = game.spec();
    let luck = Seed::new(options.seed).child("encounter", &[options.tuple as u64, 0]);
    let n_episodes = options.episodes.unwrap_or(spec.episodes_per_encounter);
    let mut session = agent.session(&*game, options.split, options.tuple, &[], n_episodes, luck)?;
    let tuple = game.pool(options.split).tuples.swap_remove(options.tuple);
    // Without a loss of its own the identifier stays as it was drawn, and what it says means nothing.
    let has_mind = config.train.auxiliary_weight > 0.0 && agent.n_identified() > 0;
    let mut mind = has_mind.then(|| PeerBeliefs::new(&*game, &tuple));

    let mut episodes = Vec::new();
    let mut moments: Vec<ReplayMoment> = Vec::new();
    // Every decision leaves an entry in the context, and every episode what was seen at its end.
    let mut n_entries = 0;
    loop {
        let now = session.moment();
        n_entries += usize::from(now.step.is_some()) + usize::from(now.ending.is_some());
        moments.push(moment(now, n_entries, mind.as_mut()));
        if let Some(ending) = now.ending {
            episodes.push(ReplayEpisode {
                ending: episode_ending(ending),
                task_return: short(now.task_return),
                moments: std::mem::take(&mut moments),
            });
        }
        if !session.step()? {
            break;
        }
    }
    let peers = spec.peer_roles.iter().enumerate().map(|(slot, role)| ReplayPeer {
        role: (*role).to_owned(),
        kinds: mind.as_ref().map_or(Vec::new(), |mind| {
            let kinds = mind.slots()[slot].kinds();
            kinds
                .map(|(name, traits)| ReplayKind { name: name.to_owned(), traits: all_short(&traits) })
                .collect()
        }),
        truth: mind.as_ref().and_then(|mind| mind.slots()[slot].truth()),
        traits: all_short(&tuple.traits[slot]),
    });
    Ok(ReplayRecord {
        format_version: FormatVersion,
        game: spec.id.to_owned(),
        preset: config.preset.name().to_owned(),
        method: config.method.clone(),
        pool: options.split.to_string(),
        index: options.tuple,
        description: tuple.description.clone(),
        metric: score_metric(spec.metric),
        words: words(spec, &config.method),
        action_names: spec.action_names.iter().map(|name| (*name).to_owned()).collect(),
        peers: peers.collect(),
        seed: options.seed,
        run: RunRecord {
            folder: view.path().display().to_string(),
            seed: config.seed,
            commit: manifest.spec.commit.clone(),
            config_hash: Some(hash_of_run(&config, view.path())?),
            steps,
            wall_clock_secs: Some(manifest.wall_clock_secs),
        },
        command: options.command.clone(),
        episodes,
    })
}

/// One moment, when the context has `n_entries` entries.
fn moment(now: Moment<'_>, n_entries: usize, mind: Option<&mut PeerBeliefs>) -> ReplayMoment {
    let inference = now.inference().expect("a trained agent infers");
    let chosen = |action: &Action| (*action != NO_ACTION).then_some(usize::from(*action));
    ReplayMoment {
        picture: now.encounter.picture(),
        context: n_entries,
        action: now.decision.map(|decision| usize::from(decision.action)),
        probabilities: now.decision.map_or(Vec::new(), |decision| all_short(decision.probabilities)),
        value: now.decision.map(|_| short(f64::from(inference.value))),
        beliefs: beliefs(mind, inference),
        task_reward: now.step.map(|step| short(step.outcome.task_reward)),
        peer_actions: now.step.map_or(Vec::new(), |step| step.peer_actions.iter().map(chosen).collect()),
        keypoint_visited: now.step.is_some_and(|step| step.outcome.keypoint_visited),
    }
}

/// What the agent takes its peers for, kind by kind.
fn beliefs(mind: Option<&mut PeerBeliefs>, inference: &Inference) -> Vec<Vec<f64>> {
    let Some(mind) = mind else { return Vec::new() };
    mind.update(inference, (0, 0));
    let of_slot = |slot: &crate::peer_beliefs::PeerBelief| {
        slot.probabilities().map(|share| short(f64::from(share))).collect()
    };
    mind.slots().iter().map(of_slot).collect()
}

/// To a thousandth: nobody sees more, and the file stays small.
fn short(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}

fn all_short(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| short(f64::from(*value))).collect()
}
