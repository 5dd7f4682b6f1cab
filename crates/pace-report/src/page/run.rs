//! The page of one run: its evaluations, replays, learning curves and provenance.

use super::evaluation::{
    adaptation_section, blocks_section, headline, identification_section, peers_section, switch_section,
};
use super::replay::{self, GamePage};
use super::{
    both, card, cell, close_table, config_details, counted, dash, facts, figure, files, open_table,
    score_cell, shell,
};
use crate::figures::{adaptation, training};
use crate::markup::Markup;
use crate::number;
use crate::record::{AdaptRecord, RunRecord, TrainRecord};
use crate::replay::ReplayRecord;
use crate::table::{detection_line, game_keys};

/// The content of the page of a run.
#[derive(Clone, Debug, Default)]
pub struct RunPage<'a> {
    /// The evaluations with their names, starting with the main one.
    pub evaluations: Vec<(&'a str, &'a AdaptRecord)>,
    /// The configuration and learning curves.
    pub train: Option<&'a TrainRecord>,
    /// Recorded encounters.
    pub replays: &'a [ReplayRecord],
    /// The drawings of games.
    pub pages: &'a [GamePage],
    /// The factor for step budgets; 1 for the full budget.
    pub scale: Option<f64>,
    /// The names of the SVG files in `figures/`, which is next to the page.
    pub figures: &'a [String],
}

impl RunPage<'_> {
    /// Writes the page.
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
                None => training_headline(self.train, out),
            }
            scaled_note(self.scale, out);
            if let Some(adapt) = main {
                adaptation_section(adapt, out);
                switch_section(adapt, out);
            }
            replay::section(self.replays, out);
            if let Some(adapt) = main {
                identification_section(adapt, out);
                blocks_section(adapt, out);
                peers_section(adapt, out);
            }
            others_section(self.evaluations.get(1..).unwrap_or_default(), out);
            if let Some(train) = self.train {
                training_section(train, out);
            }
            provenance_section(main, self.train, self.figures, out);
        })
    }
}

/// Writes a warning if scores come from scaled runs.
pub(super) fn scaled_note(scale: Option<f64>, out: &mut Markup) {
    if let Some(scale) = scale.filter(|scale| *scale != 1.0) {
        let text = format!(
            "Scaled run: trained for {} of the full budget; the scores are not results.",
            number::percent_fine(scale)
        );
        out.leaf("p", &[("class", &"scaled"), ("role", &"note")], &text);
    }
}

/// The headline of a run without evaluations.
fn training_headline(train: Option<&TrainRecord>, out: &mut Markup) {
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

/// Evaluations other than the main one: a table, and the adaptation curve of each.
fn others_section(evaluations: &[(&str, &AdaptRecord)], out: &mut Markup) {
    if evaluations.is_empty() {
        return;
    }
    out.open("section", &[]);
    out.leaf("h2", &[], "Other evaluations of the same agent");
    let headings = [
        ("words", "evaluation"),
        ("words", "pool"),
        ("", "episodes"),
        ("", "score"),
        ("", "oracle"),
        ("", "bayes"),
        ("", "normalised"),
    ];
    open_table("", &headings, out);
    for (name, adapt) in evaluations {
        let decimals = number::decimals(adapt.standard_error);
        let reference = |name: &str| {
            let known = adapt.references.get(name);
            known.map_or(dash(), |reference| number::typeset(reference.mean, decimals))
        };
        out.open("tr", &[("role", &"row")]);
        cell(out, "evaluation", "words", name);
        cell(out, "pool", "words", &adapt.pool);
        cell(out, "episodes", "number", &adapt.episodes.to_string());
        score_cell(out, "score", adapt.mean, adapt.standard_error, decimals);
        cell(out, "oracle", "number", &reference("oracle"));
        cell(out, "bayes", "number", &reference("bayes"));
        cell(out, "normalised", "number", &adapt.normalised.map_or(dash(), number::percent));
        out.close("tr");
    }
    close_table(out);
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

fn provenance_section(
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
    let wall_clock = run.wall_clock_secs.or(train.map(|train| train.wall_clock_secs));
    let of_train = |value: fn(&TrainRecord) -> &String| train.map(|train| value(train).clone());
    let context = adapt.and_then(|adapt| {
        let n = adapt.context_episodes?;
        Some(format!("the last {}", counted(n, &adapt.words.episode, &adapt.words.episodes)))
    });
    let game = adapt.map(|adapt| format!("{}, {}", adapt.game, adapt.preset));
    let of_run = [
        ("run", Some(run.folder.clone())),
        ("game, preset", game.or(train.map(|train| format!("{}, {}", train.game, train.preset)))),
        ("method", adapt.map(|adapt| adapt.method.clone()).or(of_train(|train| &train.method))),
        ("metric", adapt.map(|adapt| adapt.metric.to_string())),
        ("game keys changed for this evaluation", adapt.map(game_keys)),
        ("context", context),
        ("seed", Some(run.seed.to_string())),
        ("training steps", Some(run.steps).filter(|steps| *steps > 0).map(number::count)),
        ("training time", wall_clock.map(number::duration)),
        ("commit", run.commit.clone().or(train.and_then(|train| train.commit.clone()))),
        ("config hash", run.config_hash.clone()),
        ("record format", Some(crate::FORMAT_VERSION.to_string())),
    ];
    facts(&of_run, out);
    if !figures.is_empty() {
        let links: Vec<(String, String)> =
            figures.iter().map(|name| (format!("{name}.svg"), format!("figures/{name}.svg"))).collect();
        let links: Vec<(&str, &str)> = links.iter().map(|(name, path)| (&**name, &**path)).collect();
        files(&links, out);
    }
    if let Some(train) = train.filter(|train| !train.config.is_null()) {
        config_details("Configuration with every resolved key", &train.config, out);
    }
    out.close("section");
}

/// Writes a command. Every word has its own element, so that narrow screens do not break `--pool` between its hyphens.
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
