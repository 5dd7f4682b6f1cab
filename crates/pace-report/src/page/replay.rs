//! Encounters to step through: the records on the page, what is there without a script, and the script.

use super::counted;
use super::script::{bundle, enclosed};
use crate::markup::Markup;
use crate::number;
use crate::record::{EpisodeEnding, ScoreMetric};
use crate::replay::ReplayRecord;

/// How a game is drawn, by a script that comes with the game.
#[derive(Clone, Copy, Debug)]
pub struct GameDrawing {
    /// The game's id.
    pub game: &'static str,
    /// A module that exports `draw(pen, picture, past)`, and `plane` where two traits are all of a peer.
    pub script: &'static str,
    /// The style sheet of what it draws.
    pub style: &'static str,
}

const STYLE: &str = include_str!("../../assets/replay.css");
const MODULES: [&str; 3] = [
    include_str!("../../assets/pen.js"),
    include_str!("../../assets/mind.js"),
    include_str!("../../assets/replay.js"),
];

/// The style sheets that these encounters need.
pub(super) fn styles(replays: &[ReplayRecord], drawings: &[GameDrawing]) -> Vec<&'static str> {
    if replays.is_empty() {
        return Vec::new();
    }
    std::iter::once(STYLE).chain(needed(replays, drawings).map(|drawing| drawing.style)).collect()
}

/// The script that these encounters need; none if there are none.
pub(super) fn script(replays: &[ReplayRecord], drawings: &[GameDrawing]) -> Option<String> {
    if replays.is_empty() {
        return None;
    }
    let games: Vec<String> = needed(replays, drawings)
        .map(|drawing| format!("{:?}: {}", drawing.game, enclosed(drawing.script, &["draw", "plane"])))
        .collect();
    Some(format!("\n{}\nreplays({{ {} }});\n", bundle(&MODULES), games.join(",\n")))
}

fn needed<'a>(
    replays: &'a [ReplayRecord],
    drawings: &'a [GameDrawing],
) -> impl Iterator<Item = &'a GameDrawing> {
    drawings.iter().filter(|drawing| replays.iter().any(|replay| replay.game == drawing.game))
}

/// All encounters, one after the other.
pub(super) fn section(replays: &[ReplayRecord], out: &mut Markup) {
    if replays.is_empty() {
        return;
    }
    out.open("section", &[("id", &"replay")]);
    out.leaf(
        "h2",
        &[],
        if replays.len() == 1 { "An encounter, step by step" } else { "Encounters, step by step" },
    );
    let note = "What the agent cannot see is dim. The panel shows its belief about each peer and its action probabilities. Its \
                weights never change; only its context grows.";
    out.leaf("p", &[("class", &"note")], note);
    for replay in replays {
        one(replay, out);
    }
    out.close("section");
}

fn one(replay: &ReplayRecord, out: &mut Markup) {
    let words = &replay.words;
    out.open("div", &[("class", &"replay")]);
    out.leaf(
        "h3",
        &[],
        &format!(
            "{}: {} with {} peer {}",
            replay.game_name(),
            replay.method_name(),
            replay.pool,
            replay.index
        ),
    );
    out.leaf("p", &[("class", &"note")], &format!("True peers: {}.", replay.description));
    out.open("div", &[("class", &"replay-stage")]);
    // Without scripts, and until they have run: how every episode ended.
    let good = replay.episodes.iter().filter(|episode| episode.ending == EpisodeEnding::Succeeded).count();
    let mean = replay.episodes.iter().map(|episode| episode.task_return).sum::<f64>();
    let mean = mean / replay.episodes.len().max(1) as f64;
    let mut text = format!(
        "{} of {} moments; return per {} {}",
        counted(replay.episodes.len(), &words.episode, &words.episodes),
        number::count(replay.n_moments() as u64),
        words.episode,
        number::typeset(mean, 2)
    );
    if replay.metric == ScoreMetric::Success {
        text.push_str(&format!(", {good} succeeded"));
    }
    out.leaf("p", &[("class", &"note")], &format!("{text}. Enable JavaScript to step through it."));
    out.close("div");
    out.data(replay);
    out.open("details", &[]);
    out.leaf("summary", &[], "Provenance of this encounter");
    super::run::command(&replay.command, out);
    out.open("dl", &[("class", &"facts")]);
    let run = &replay.run;
    let facts = [
        ("run", run.folder.clone()),
        ("training seed", run.seed.to_string()),
        ("encounter seed", replay.seed.to_string()),
        ("training steps", number::count(run.steps)),
        ("commit", run.commit.clone().unwrap_or_default()),
        ("config hash", run.config_hash.clone().unwrap_or_default()),
    ];
    for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        out.leaf("dt", &[], name);
        out.leaf("dd", &[], value);
    }
    out.close("dl");
    out.close("details");
    out.close("div");
}
