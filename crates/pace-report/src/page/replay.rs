//! Encounters to step through: the records on the page, what is there without a script, and the script.

use super::counted;
use super::script::{bundle, enclosed};
use crate::markup::Markup;
use crate::number;
use crate::record::{EpisodeEnding, ScoreMetric};
use crate::replay::ReplayRecord;

/// The files of a game with which a page shows its encounters.
#[derive(Clone, Copy, Debug)]
pub struct GamePage {
    /// The game's id.
    pub game: &'static str,
    /// A module whose exports replace those of `text_game.js`.
    pub script: &'static str,
    /// The style sheet of what it draws.
    pub style: &'static str,
}

macro_rules! modules {
    ($($file:literal),*) => {
        &[$(($file, include_str!(concat!("../../assets/", $file)))),*]
    };
}

/// The modules with which pages show encounters, with their file names; a module imports only from those before it. The play page
/// serves them, too.
pub const STAGE_MODULES: &[(&str, &str)] =
    modules!["elements.js", "pen.js", "text_game.js", "board.js", "beliefs.js", "stepper.js"];

/// The style sheet of [`STAGE_MODULES`].
pub const STAGE_STYLE: &str = include_str!("../../assets/stage.css");

const SCRIPT: &str = include_str!("../../assets/replay.js");
const STYLE: &str = include_str!("../../assets/replay.css");

/// The style sheets that these encounters need.
pub(super) fn styles(replays: &[ReplayRecord], pages: &[GamePage]) -> Vec<&'static str> {
    if replays.is_empty() {
        return Vec::new();
    }
    [STYLE, STAGE_STYLE].into_iter().chain(needed(replays, pages).map(|page| page.style)).collect()
}

/// The script that these encounters need; none if there are none.
pub(super) fn script(replays: &[ReplayRecord], pages: &[GamePage]) -> Option<String> {
    if replays.is_empty() {
        return None;
    }
    let games: Vec<String> =
        needed(replays, pages).map(|page| format!("{:?}: {}", page.game, enclosed(page.script))).collect();
    let modules: Vec<&str> = STAGE_MODULES.iter().map(|(_, module)| *module).chain([SCRIPT]).collect();
    Some(format!("\n{}\nreplays({{ {} }});\n", bundle(&modules), games.join(",\n")))
}

fn needed<'a>(replays: &'a [ReplayRecord], pages: &'a [GamePage]) -> impl Iterator<Item = &'a GamePage> {
    pages.iter().filter(|page| replays.iter().any(|replay| replay.game == page.game))
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
    out.open("div", &[("class", &"stage replay-stage")]);
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
