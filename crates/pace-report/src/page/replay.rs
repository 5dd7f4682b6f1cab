//! Replays of encounters on a page: their records, the text shown without JavaScript, and the script.

use super::script::{bundle, enclosed};
use super::{counted, facts};
use crate::markup::Markup;
use crate::number;
use crate::record::{EpisodeEnding, ScoreMetric};
use crate::replay::ReplayRecord;

/// The files with which a page draws the encounters of a game.
#[derive(Clone, Copy, Debug)]
pub struct GamePage {
    /// The game's id.
    pub game: &'static str,
    /// The JavaScript module, whose exports replace those of `text_game.js`.
    pub script: &'static str,
    /// The style sheet of its drawings.
    pub style: &'static str,
}

macro_rules! modules {
    ($($file:literal),*) => {
        &[$(($file, include_str!(concat!("../../assets/", $file)))),*]
    };
}

/// The JavaScript modules that show encounters, with their file names. A module imports only modules before it. The play page uses
/// them too.
pub const STAGE_MODULES: &[(&str, &str)] =
    modules!["elements.js", "pen.js", "text_game.js", "board.js", "beliefs.js", "stepper.js"];

/// The style sheet of [`STAGE_MODULES`].
pub const STAGE_STYLE: &str = include_str!("../../assets/stage.css");

const SCRIPT: &str = include_str!("../../assets/replay.js");
const STYLE: &str = include_str!("../../assets/replay.css");

/// The style sheets of these encounters.
pub(super) fn styles(replays: &[ReplayRecord], pages: &[GamePage]) -> Vec<&'static str> {
    if replays.is_empty() {
        return Vec::new();
    }
    [STYLE, STAGE_STYLE].into_iter().chain(needed(replays, pages).map(|page| page.style)).collect()
}

/// The script of these encounters; `None` without encounters.
pub(super) fn script(replays: &[ReplayRecord], pages: &[GamePage]) -> Option<String> {
    if replays.is_empty() {
        return None;
    }
    let games: Vec<String> =
        needed(replays, pages).map(|page| format!("{:?}: {}", page.game, enclosed(page.script))).collect();
    let modules: Vec<&str> = STAGE_MODULES.iter().map(|(_, module)| *module).chain([SCRIPT]).collect();
    Some(format!("\n{}\nreplays({{ {} }});\n", bundle(&modules), games.join(",\n")))
}

/// The drawings of the games of these encounters.
fn needed<'a>(replays: &'a [ReplayRecord], pages: &'a [GamePage]) -> impl Iterator<Item = &'a GamePage> {
    pages.iter().filter(|page| replays.iter().any(|replay| replay.game == page.game))
}

/// Writes the section of all encounters.
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
    out.open("div", &[("class", &"stage replay-stage")]);
    // A summary, which the script replaces.
    let n_succeeded =
        replay.episodes.iter().filter(|episode| episode.ending == EpisodeEnding::Succeeded).count();
    let mean = replay.episodes.iter().map(|episode| episode.task_return).sum::<f64>();
    let mean = mean / replay.episodes.len().max(1) as f64;
    let mut text = format!(
        "{} with {} steps; return per {} {}",
        counted(replay.episodes.len(), &words.episode, &words.episodes),
        number::count(replay.n_moments() as u64),
        words.episode,
        number::typeset(mean, 2)
    );
    if replay.metric == ScoreMetric::Success {
        text.push_str(&format!(", {n_succeeded} succeeded"));
    }
    out.leaf("p", &[("class", &"note")], &format!("{text}. Enable JavaScript to step through it."));
    out.close("div");
    out.data(replay);
    out.open("details", &[]);
    out.leaf("summary", &[], "Provenance of this encounter");
    super::run::command(&replay.command, out);
    let run = &replay.run;
    let of_replay = [
        ("run", Some(run.folder.clone())),
        ("training seed", Some(run.seed.to_string())),
        ("encounter seed", Some(replay.seed.to_string())),
        ("training steps", Some(number::count(run.steps))),
        ("commit", run.commit.clone()),
        ("config hash", run.config_hash.clone()),
    ];
    facts(&of_replay, out);
    out.close("details");
    out.close("div");
}
