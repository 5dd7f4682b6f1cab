//! The page of one run: how it was trained, how it fared in every evaluation, and encounters to step through.

use super::evaluation::{
    adaptation_section, blocks_section, change_section, headline, knowledge_section, peers_section,
};
use super::replay::{self, GamePage};
use super::{both, card, cell, counted, figure, files, nothing, score_cell, shell};
use crate::figures::{adaptation, training};
use crate::markup::Markup;
use crate::number;
use crate::record::{AdaptRecord, RunRecord, TrainRecord};
use crate::replay::ReplayRecord;
use crate::table::{detection_line, game_keys};

/// All that a run has left behind.
#[derive(Clone, Debug, Default)]
pub struct RunPage<'a> {
    /// The evaluations with their names, the main one first.
    pub evaluations: Vec<(&'a str, &'a AdaptRecord)>,
    /// How training went.
    pub train: Option<&'a TrainRecord>,
    /// Encounters that were written down.
    pub replays: &'a [ReplayRecord],
    /// How the games of these encounters are drawn.
    pub pages: &'a [GamePage],
    /// The share of the budget that the run had, where it was a rehearsal.
    pub scale: Option<f64>,
    /// The names of the figures that are written as SVG files into `figures/` beside the page.
    pub figures: &'a [String],
}

impl RunPage<'_> {
    /// The page.
    pub fn render(&self) -> String {
        let main = self.evaluations.first().map(|(_, adapt)| *adapt);
        let title = match (main, self.train) {
            (Some(adapt), _) => format!("{} on {}", adapt.method_name(), adapt.game_name()),
            (None, Some(train)) => format!("{} on {}", train.method, train.game),
            (None, None) => "A run".to_owned(),
        };
        let script = replay::script(self.replays, self.pages);
        shell(&title, &replay::styles(self.replays, self.pages), script.as_deref(), |out| {
            match main {
                Some(adapt) => headline(adapt, out),
                None => bare_headline(self.train, out),
            }
            scaled_note(self.scale, out);
            if let Some(adapt) = main {
                adaptation_section(adapt, out);
                change_section(adapt, out);
            }
            replay::section(self.replays, out);
            if let Some(adapt) = main {
                knowledge_section(adapt, out);
                blocks_section(adapt, out);
                peers_section(adapt, out);
            }
            others_section(self.evaluations.get(1..).unwrap_or_default(), out);
            if let Some(train) = self.train {
                training_section(train, out);
            }
            making_section(main, self.train, self.figures, out);
        })
    }
}

/// Says in red that numbers come from shortened runs.
pub(super) fn scaled_note(scale: Option<f64>, out: &mut Markup) {
    if let Some(scale) = scale.filter(|scale| *scale != 1.0) {
        let text = format!(
            "Scaled run: trained for {} of the full budget; the scores are not results.",
            number::percent_fine(scale)
        );
        out.leaf("p", &[("class", &"rehearsal"), ("role", &"note")], &text);
    }
}

/// A run that has not met anybody yet.
fn bare_headline(train: Option<&TrainRecord>, out: &mut Markup) {
    out.open("header", &[]);
    let Some(train) = train else {
        out.leaf("h1", &[], "A run without records");
        out.close("header");
        return;
    };
    out.leaf("p", &[("class", &"kicker")], &format!("pace · {} · {}", train.game, train.method));
    out.leaf("h1", &[], &format!("{} learns {}", train.method.to_uppercase(), train.game));
    let lead = format!("Preset {}, seed {}. No evaluation is recorded yet.", train.preset, train.seed);
    out.leaf("p", &[("class", &"lead")], &lead);
    let last = |name: &str| train.curves.get(name).and_then(|points| points.last()).map(|(_, value)| *value);
    out.open("dl", &[("class", &"headline")]);
    let steps = train.curves.values().flatten().map(|(step, _)| *step).max().unwrap_or(0);
    card(out, "steps", "value", &number::count(steps), "");
    for (name, words) in [("charts/episodic_return", "return per episode"), ("charts/success", "success")] {
        if let Some(value) = last(name) {
            card(out, words, "value", &number::typeset(value, 3), "at the end of training");
        }
    }
    out.close("dl");
    out.close("header");
}

/// Studies beside the main one: a table, and the curve of each.
fn others_section(evaluations: &[(&str, &AdaptRecord)], out: &mut Markup) {
    if evaluations.is_empty() {
        return;
    }
    out.open("section", &[]);
    out.leaf("h2", &[], "Other evaluations of the same agent");
    out.open("table", &[("role", &"table")]);
    out.open("thead", &[("role", &"rowgroup")]);
    out.open("tr", &[("role", &"row")]);
    let names = ["evaluation", "pool", "episodes", "score", "oracle", "bayes", "normalised"];
    for (place, name) in names.into_iter().enumerate() {
        let class = if place < 2 { "words" } else { "" };
        out.leaf("th", &[("role", &"columnheader"), ("scope", &"col"), ("class", &class)], name);
    }
    out.close("tr");
    out.close("thead");
    out.open("tbody", &[("role", &"rowgroup")]);
    for (name, adapt) in evaluations {
        let decimals = number::decimals(adapt.standard_error);
        let reference = |name: &str| {
            let known = adapt.references.get(name);
            known.map_or(nothing(), |reference| number::typeset(reference.mean, decimals))
        };
        out.open("tr", &[("role", &"row")]);
        cell(out, "evaluation", "words", name);
        cell(out, "pool", "words", &adapt.pool);
        cell(out, "episodes", "number", &adapt.episodes.to_string());
        score_cell(out, "score", adapt.mean, adapt.standard_error, decimals);
        cell(out, "oracle", "number", &reference("oracle"));
        cell(out, "bayes", "number", &reference("bayes"));
        cell(out, "normalised", "number", &adapt.normalised.map_or(nothing(), number::percent));
        out.close("tr");
    }
    out.close("tbody");
    out.close("table");
    for (number, (name, adapt)) in evaluations.iter().enumerate() {
        if adapt.blocks.is_empty() {
            continue;
        }
        out.open("details", &[]);
        out.leaf("summary", &[], &format!("{name}: adaptation curve"));
        if let Some(detection) = &adapt.detection {
            let line = detection_line(detection, &adapt.words.episodes);
            out.leaf("p", &[("class", &"note")], &format!("The {line}."));
        }
        let id = format!("evaluation-{number}");
        figure(out, &adaptation::chart(adapt), &id, (832.0, 380.0), (344.0, 340.0));
        command(&adapt.command, out);
        out.close("details");
    }
    out.close("section");
}

fn training_section(train: &TrainRecord, out: &mut Markup) {
    let (Some(wide), Some(narrow)) = (
        training::inline(train, 3, 262.0, "training-wide"),
        training::inline(train, 1, 344.0, "training-narrow"),
    ) else {
        return;
    };
    out.open("section", &[]);
    out.leaf("h2", &[], "Training");
    out.leaf("p", &[("class", &"note")], "Training metrics over ego decisions.");
    out.open("figure", &[]);
    both(out, &wide, &narrow);
    out.close("figure");
    let n_shown = training::panels(train).len();
    if train.curves.len() > n_shown {
        let names: Vec<&str> = train.curves.keys().map(String::as_str).collect();
        out.leaf(
            "p",
            &[("class", &"note")],
            &format!("{n_shown} of {} metrics are shown. Recorded: {}.", names.len(), names.join(", ")),
        );
    }
    out.close("section");
}

fn making_section(
    adapt: Option<&AdaptRecord>,
    train: Option<&TrainRecord>,
    figures: &[String],
    out: &mut Markup,
) {
    let no_run = RunRecord { seed: train.map_or(0, |train| train.seed), ..RunRecord::default() };
    let run = adapt.map_or(&no_run, |adapt| &adapt.run);
    out.open("section", &[]);
    out.leaf("h2", &[], "Provenance");
    if let Some(adapt) = adapt {
        command(&adapt.command, out);
    }
    out.open("dl", &[("class", &"facts")]);
    let wall_clock = run.wall_clock_secs.or(train.map(|train| train.wall_clock_secs));
    let of_train = |value: fn(&TrainRecord) -> &String| train.map(|train| value(train).clone());
    let context = adapt.and_then(|adapt| {
        let n = adapt.context_episodes?;
        Some(format!("the last {}", counted(n, &adapt.words.episode, &adapt.words.episodes)))
    });
    let game = adapt.map(|adapt| format!("{}, {}", adapt.game, adapt.preset));
    let facts = [
        ("run", Some(run.folder.clone())),
        ("game, preset", game.or(train.map(|train| format!("{}, {}", train.game, train.preset)))),
        ("method", adapt.map(|adapt| adapt.method.clone()).or(of_train(|train| &train.method))),
        ("metric", adapt.map(|adapt| adapt.metric.name().to_owned())),
        ("game keys changed for this evaluation", adapt.map(game_keys)),
        ("context", context),
        ("seed", Some(run.seed.to_string())),
        ("training steps", Some(run.steps).filter(|steps| *steps > 0).map(number::count)),
        ("training time", wall_clock.map(number::duration)),
        ("commit", run.commit.clone().or(train.and_then(|train| train.commit.clone()))),
        ("config hash", run.config_hash.clone()),
        ("record format", Some(crate::FORMAT_VERSION.to_string())),
    ];
    for (name, value) in facts {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            out.leaf("dt", &[], name);
            out.leaf("dd", &[], &value);
        }
    }
    out.close("dl");
    if !figures.is_empty() {
        let links: Vec<(String, String)> =
            figures.iter().map(|name| (format!("{name}.svg"), format!("figures/{name}.svg"))).collect();
        let links: Vec<(&str, &str)> = links.iter().map(|(name, path)| (&**name, &**path)).collect();
        files(&links, out);
    }
    if let Some(train) = train.filter(|train| !train.config.is_null()) {
        let config = serde_json::to_string_pretty(&train.config).expect("a JSON value can be written");
        out.open("details", &[]);
        out.leaf("summary", &[], "Configuration with every resolved key");
        out.leaf("pre", &[], &config);
        out.close("details");
    }
    out.close("section");
}

/// What was typed, word by word, so that a narrow screen does not break `--pool` between its hyphens.
pub(super) fn command(command: &str, out: &mut Markup) {
    if command.is_empty() {
        return;
    }
    let words = command.split_inclusive(' ');
    let pieces: Vec<_> = words
        .flat_map(|word| {
            let bare = word.trim_end_matches(' ');
            [(Some(("span", "word")), bare), (None, &word[bare.len()..])]
        })
        .collect();
    out.pieces("pre", &[], &pieces);
}
