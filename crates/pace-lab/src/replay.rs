//! A recorded encounter of a trained agent, step by step, for a page that replays it.

use std::path::{Path, PathBuf};

use pace_games::{Action, Inference, Moment, NO_ACTION, Seat, Seed, Split, Viewpoint};
use pace_report::{FormatVersion, ReplayEpisode, ReplayKind, ReplayPeer, ReplayRecord, ReplayStep};

use crate::adaptation::{run_record, words};
use crate::durable;
use crate::episode_rows::{episode_ending, score_metric};
use crate::error::LabError;
use crate::peer_beliefs::PeerBeliefs;
use crate::records::write_record;
use crate::run_folder::RunView;
use crate::trained_agent::TrainedAgent;

/// The encounter to record.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The peer pool.
    pub split: Split,
    /// The index of the tuple in the pool.
    pub tuple: usize,
    /// The number of episodes. Default: the game's `episodes_per_encounter`.
    pub episodes: Option<usize>,
    /// Random seed. An adaptation with the same seed plays the same encounter as its first one with this tuple.
    pub seed: u64,
    /// The command line, for the record.
    pub command: String,
}

/// Records an encounter into `file`. Default: a file in the replays folder of the run, named by the options.
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

/// Plays one encounter with the agent of a run's newest valid checkpoint.
fn record_replay(view: &RunView, options: &ReplayOptions) -> Result<ReplayRecord, LabError> {
    let TrainedAgent { agent, game, config, steps, .. } = TrainedAgent::load(view)?;
    let spec = game.spec();
    let encounter_seed = Seed::new(options.seed).child("encounter", &[options.tuple as u64, 0]);
    let n_episodes = options.episodes.unwrap_or(spec.episodes_per_encounter);
    let mut session = agent.session(&*game, options.split, options.tuple, &[], n_episodes, encounter_seed)?;
    let tuple = game.pool(options.split).tuples.swap_remove(options.tuple);
    // Without an auxiliary loss the identifier keeps its random initial weights, so its output has no meaning.
    let has_beliefs = config.train.auxiliary_weight > 0.0 && agent.n_identified() > 0;
    let mut peer_beliefs = has_beliefs.then(|| PeerBeliefs::new(&*game, &tuple));

    let mut episodes = Vec::new();
    let mut moments: Vec<ReplayStep> = Vec::new();
    // The context gets an entry for every decision, and one for the final observation of every episode.
    let mut n_entries = 0;
    loop {
        let now = session.moment();
        n_entries += usize::from(now.step.is_some()) + usize::from(now.ending.is_some());
        moments.push(moment(now, n_entries, peer_beliefs.as_mut()));
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
        kinds: peer_beliefs.as_ref().map_or(Vec::new(), |beliefs| {
            let kinds = beliefs.slots()[slot].kinds();
            kinds
                .map(|(name, data, traits)| ReplayKind {
                    name: name.to_owned(),
                    data: data.clone(),
                    traits: all_short(&traits),
                })
                .collect()
        }),
        truth: peer_beliefs.as_ref().and_then(|beliefs| beliefs.slots()[slot].truth()),
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
        constants: Some(game.constants()),
        action_names: spec.action_names.iter().map(|name| (*name).to_owned()).collect(),
        peers: peers.collect(),
        seed: options.seed,
        run: run_record(view, &config, steps)?,
        command: options.command.clone(),
        episodes,
    })
}

/// One step of the replay. `n_entries` is the number of entries in the context.
fn moment(now: Moment<'_>, n_entries: usize, peer_beliefs: Option<&mut PeerBeliefs>) -> ReplayStep {
    let inference = now.inference().expect("a trained agent infers");
    let chosen = |action: &Action| (*action != NO_ACTION).then_some(usize::from(*action));
    let view = now.encounter.view(Viewpoint::Omniscient);
    ReplayStep {
        seen: Some(now.encounter.view(Viewpoint::Seat(Seat::EGO))).filter(|seen| *seen != view),
        view,
        context: n_entries,
        action: now.decision.map(|decision| usize::from(decision.action)),
        probabilities: now.decision.map_or(Vec::new(), |decision| all_short(decision.probabilities)),
        value: now.decision.map(|_| short(f64::from(inference.value))),
        beliefs: beliefs(peer_beliefs, inference),
        task_reward: now.step.map(|step| short(step.outcome.task_reward)),
        peer_actions: now.step.map_or(Vec::new(), |step| step.peer_actions.iter().map(chosen).collect()),
        keypoint_visited: now.step.is_some_and(|step| step.outcome.keypoint_visited),
    }
}

/// The probabilities of the kinds of each peer.
fn beliefs(peer_beliefs: Option<&mut PeerBeliefs>, inference: &Inference) -> Vec<Vec<f64>> {
    let Some(peer_beliefs) = peer_beliefs else { return Vec::new() };
    peer_beliefs.update(inference, (0, 0));
    let of_slot = |slot: &crate::peer_beliefs::PeerBelief| {
        slot.probabilities().map(|share| short(f64::from(share))).collect()
    };
    peer_beliefs.slots().iter().map(of_slot).collect()
}

/// Rounds to three decimals, which keeps the file small.
fn short(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0 + 0.0
}

fn all_short(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| short(f64::from(*value))).collect()
}
