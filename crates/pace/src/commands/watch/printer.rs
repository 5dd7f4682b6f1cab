//! The text about an encounter: one picture per step, one line per episode, and a table of results.

use std::io;
use std::ops::Range;

use pace_games::{Action, AnyGame, Ending, GameSpec, Inference, Metric, Moment, NO_ACTION};
use pace_lab::{Guess, PeerBeliefs};

use super::screen::{EncounterScreen, TextStyle};

/// Prints one encounter.
pub struct EncounterPrinter<'a> {
    spec: &'a GameSpec,
    /// Lines that explain the game's symbols.
    game_legend: &'static [&'static str],
    is_explained: bool,
    screen: EncounterScreen<'a>,
    n_episodes: usize,
    /// The episodes that are shown step by step.
    shown: Range<usize>,
    current: Episode,
    finished: Vec<Episode>,
}

#[derive(Debug, Default)]
struct Episode {
    n_steps: usize,
    task_return: f64,
    ending: Option<Ending>,
    /// The first step at which the keypoint was visited.
    keypoint_step: Option<usize>,
    /// The most likely kind of each peer at the end of the episode.
    guesses: Vec<Guess>,
}

/// The output of the agent's network, its next action, and its beliefs about the peers if it has any.
pub type AgentState<'a> = (&'a Inference, Action, Option<&'a PeerBeliefs>);

/// Length of a bar for probability 1.
const BAR: usize = 12;
/// Number of kinds shown per peer, the most likely first.
const N_KINDS: usize = 3;

impl<'a> EncounterPrinter<'a> {
    pub fn new(
        game: &'a dyn AnyGame,
        screen: EncounterScreen<'a>,
        n_episodes: usize,
        shown: Range<usize>,
    ) -> EncounterPrinter<'a> {
        EncounterPrinter {
            spec: game.spec(),
            game_legend: game.legend(),
            is_explained: false,
            screen,
            n_episodes,
            shown,
            current: Episode::default(),
            finished: Vec::new(),
        }
    }

    /// Explains the line above a picture, the panel of the agent's state, and the game's symbols.
    fn legend(&self, state: Option<AgentState<'_>>) -> Vec<String> {
        let mut lines = vec![
            "-- step N: action of each player (- means none), reward of the ego, sum of its rewards so far"
                .to_owned(),
            format!("* {}: a step that is informative about the peers", self.spec.nouns.keypoint),
        ];
        if let Some((_, _, mind)) = state {
            if mind.is_some() {
                lines.push(format!(
                    "belief about: probabilities of the {N_KINDS} most likely kinds of a peer; (right) marks the true kind"
                ));
            }
            lines.push("action probabilities: the policy; > marks the action that is taken".to_owned());
            lines.push("value: the expected discounted sum of future rewards".to_owned());
            lines.push(format!("{} a full bar is probability 1", "#".repeat(BAR)));
        }
        lines.extend(self.game_legend.iter().map(|line| (*line).to_owned()));
        let mut legend = vec![self.screen.paint(TextStyle::Bold, "legend")];
        legend.extend(lines.into_iter().map(|line| format!("  {line}")));
        legend
    }

    /// Adds one moment to the results and prints it if its episode is shown.
    pub fn print_moment(&mut self, moment: Moment<'_>, state: Option<AgentState<'_>>) -> io::Result<()> {
        if let Some(step) = moment.step {
            let current = &mut self.current;
            current.n_steps = moment.n_steps;
            current.task_return += step.outcome.task_reward;
            current.ending = step.outcome.ending;
            if step.outcome.keypoint_visited {
                current.keypoint_step.get_or_insert(moment.n_steps);
            }
        }
        if !self.shown.contains(&moment.episode) {
            return Ok(());
        }
        if !std::mem::replace(&mut self.is_explained, true) {
            let legend = self.legend(state);
            self.screen.write(&legend)?;
        }
        let headings = self.headings(moment);
        let panel = state.map_or(Vec::new(), |state| self.panel(state));
        self.screen.show(&headings, &moment.encounter.render(), &panel)
    }

    fn headings(&self, moment: Moment<'_>) -> Vec<String> {
        let name = |action: Action| match action {
            NO_ACTION => "-",
            action => self.spec.action_names[usize::from(action)],
        };
        let mut headings = Vec::new();
        if moment.step.is_none() || self.screen.is_live() {
            // In a file or pipe an empty line separates episodes.
            headings.extend((!self.screen.is_live()).then(String::new));
            headings.push(self.screen.paint(
                TextStyle::Bold,
                &format!("== {} {} of {} ==", self.spec.nouns.episode, moment.episode + 1, self.n_episodes),
            ));
        }
        match moment.step {
            None if self.screen.is_live() => headings.push(String::new()),
            None => {}
            Some(step) => {
                let roles = self.spec.peer_roles.iter().zip(step.peer_actions);
                let peers: Vec<String> =
                    roles.map(|(role, action)| format!(", {role} {}", name(*action))).collect();
                let task_reward = step.outcome.task_reward;
                let text_style = if task_reward > 0.0 {
                    TextStyle::Good
                } else if task_reward < 0.0 {
                    TextStyle::Bad
                } else {
                    TextStyle::Plain
                };
                let mark = if step.outcome.keypoint_visited {
                    format!("  * {}", self.spec.nouns.keypoint)
                } else {
                    String::new()
                };
                headings.push(format!(
                    "-- step {}: ego {}{}; reward {}, so far {}{mark}",
                    moment.n_steps,
                    name(step.ego_action),
                    peers.concat(),
                    self.screen.paint(text_style, &signed(task_reward)),
                    signed(self.current.task_return)
                ));
            }
        }
        headings
    }

    /// Lines with the agent's beliefs, action probabilities and value.
    fn panel(&self, (inference, action, mind): AgentState<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        let bar = |mark: &str, probability: f32, what: &str| {
            let full = (probability * BAR as f32).round() as usize;
            format!("{mark} {probability:.2} {:<BAR$} {what}", "#".repeat(full))
        };
        for slot in mind.map_or(&[][..], PeerBeliefs::slots) {
            lines.push(self.screen.paint(TextStyle::Bold, &format!("belief about {}", slot.role)));
            lines.extend(slot.ranked().take(N_KINDS).map(|guess| match guess.is_right {
                Some(true) => {
                    self.screen.paint(
                        TextStyle::Good,
                        &bar(" ", guess.probability, &format!("{} (right)", guess.kind)),
                    )
                }
                _ => bar(" ", guess.probability, &guess.kind),
            }));
        }
        lines.push(self.screen.paint(TextStyle::Bold, "action probabilities"));
        for (index, probability) in inference.probabilities.iter().enumerate() {
            let mark = if index == usize::from(action) { ">" } else { " " };
            lines.push(bar(mark, *probability, self.spec.action_names[index]));
        }
        lines.push(format!("{} {:+.2}", self.screen.paint(TextStyle::Bold, "value"), inference.value));
        lines
    }

    /// Prints the result of the finished episode.
    pub fn end_episode(&mut self, mind: Option<&PeerBeliefs>) -> io::Result<()> {
        let mut episode = std::mem::take(&mut self.current);
        let slots = mind.map_or(&[][..], PeerBeliefs::slots);
        episode.guesses = slots.iter().filter_map(|slot| slot.ranked().next()).collect();
        let ending = match episode.ending {
            Some(Ending::Succeeded) => self.screen.paint(TextStyle::Good, "succeeded"),
            Some(Ending::TimedOut) => self.screen.paint(TextStyle::Bad, "timed out"),
            Some(Ending::Finished) | None => "over".to_owned(),
        };
        let nouns = &self.spec.nouns;
        let plural = if episode.n_steps == 1 { "" } else { "s" };
        let mut line = format!(
            "{} {}: {ending} after {} step{plural}, return {}",
            nouns.episode,
            self.finished.len() + 1,
            episode.n_steps,
            signed(episode.task_return)
        );
        if let Some(step) = episode.keypoint_step {
            line.push_str(&format!(", {} at step {step}", nouns.keypoint));
        }
        let guesses: Vec<String> = episode.guesses.iter().map(|guess| self.guess(guess)).collect();
        if !guesses.is_empty() {
            line.push_str(&format!("; guess: {}", guesses.join("; ")));
        }
        self.finished.push(episode);
        self.screen.write(&[line])
    }

    fn guess(&self, guess: &Guess) -> String {
        let verdict = match guess.is_right {
            Some(true) => self.screen.paint(TextStyle::Good, ", right"),
            Some(false) => self.screen.paint(TextStyle::Bad, ", wrong"),
            None => String::new(),
        };
        format!("{} ({:.2}{verdict})", guess.kind, guess.probability)
    }

    /// Prints the results of all episodes. `expected` are their expected returns, for games that know them in closed form.
    pub fn end_encounter(&mut self, setting: &str, expected: Option<&[f64]>) -> io::Result<()> {
        let mean = |values: &mut dyn Iterator<Item = f64>, n: usize| values.sum::<f64>() / n as f64;
        let is_success = |episode: &Episode| f64::from(u8::from(episode.ending == Some(Ending::Succeeded)));
        let has_goal = self.spec.metric == Metric::Success;
        let mut lines = vec![String::new()];
        let first_column = self.spec.nouns.episodes;
        lines.push(format!(
            "{first_column:>8}   return{}  steps{}",
            if has_goal { "  success" } else { "" },
            if self.finished[0].guesses.is_empty() { "" } else { "  guess" }
        ));
        for block in pace_report::outcomes::blocks(self.n_episodes, None) {
            let episodes = &self.finished[block.clone()];
            let n = episodes.len();
            let label = match n {
                1 => format!("{}", block.end),
                _ => format!("{}-{}", block.start + 1, block.end),
            };
            let task_return = signed(mean(&mut episodes.iter().map(|episode| episode.task_return), n));
            let n_steps = mean(&mut episodes.iter().map(|episode| episode.n_steps as f64), n);
            let success = mean(&mut episodes.iter().map(is_success), n);
            let success = if has_goal { format!("  {success:>7.2}") } else { String::new() };
            let guesses: Vec<String> =
                episodes[n - 1].guesses.iter().map(|guess| self.guess(guess)).collect();
            lines.push(format!(
                "{label:>8}  {task_return:>7}{success}  {n_steps:>5.1}  {}",
                guesses.join("; ")
            ));
        }
        let n = self.finished.len();
        let (score_name, score) = match (self.spec.metric, expected) {
            (Metric::Return, Some(expected)) => ("expected return", mean(&mut expected.iter().copied(), n)),
            (Metric::Return, None) => {
                ("return", mean(&mut self.finished.iter().map(|episode| episode.task_return), n))
            }
            (Metric::Success, _) => ("success", mean(&mut self.finished.iter().map(is_success), n)),
        };
        let EncounterPrinter { spec, screen, .. } = self;
        lines.push(String::new());
        lines.push(format!(
            "{}: {setting}; {score_name} per {} {score:.3} over {n}",
            spec.title, spec.nouns.episode
        ));
        screen.write(&lines)
    }

    /// Writes other lines.
    pub fn write_lines(&mut self, lines: &[String]) -> io::Result<()> {
        self.screen.write(lines)
    }
}

/// A number with its sign; one that rounds to zero gets a plus.
fn signed(value: f64) -> String {
    let text = format!("{value:+.3}");
    if text == "-0.000" { "+0.000".to_owned() } else { text }
}
