//! Output of pictures made of text: on a terminal each one replaces the last, elsewhere they are written one after another.
//!
//! This module does not depend on games or agents.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};

/// The style of a piece of text.
#[derive(Clone, Copy, Debug)]
pub enum TextStyle {
    /// No style.
    Plain,
    /// A heading.
    Bold,
    /// Green, for success.
    Good,
    /// Red, for failure.
    Bad,
    /// Bold yellow, for a part of a drawing that differs from the last one.
    Changed,
}

/// Writes pictures and lines to a terminal, or to a file or pipe.
pub struct EncounterScreen<'a> {
    out: &'a mut dyn Write,
    /// Whether a picture replaces the last one.
    is_live: bool,
    has_colours: bool,
    delay: Duration,
    /// Whether to wait for Enter after every picture.
    waits: bool,
    /// Lines of the picture that the next one replaces.
    n_lines: usize,
    drawing: Vec<Vec<char>>,
}

/// Default pause after a picture on a terminal.
const DELAY_MS: u64 = 250;
/// Maximum width of a drawing. Wider lines are captions, which have no text next to them.
const MAX_DRAWING_WIDTH: usize = 54;
/// Minimum height of a drawing with text next to it; below a smaller drawing the text follows.
const MIN_DRAWING_LINES: usize = 4;

impl<'a> EncounterScreen<'a> {
    pub fn new(out: &'a mut dyn Write, delay_ms: Option<u64>, waits: bool) -> EncounterScreen<'a> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_live =
            io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let delay_ms = delay_ms.unwrap_or(if io::stdout().is_terminal() { DELAY_MS } else { 0 });
        EncounterScreen {
            out,
            is_live,
            has_colours: is_live && !is_set("NO_COLOR"),
            delay: Duration::from_millis(delay_ms),
            waits,
            n_lines: 0,
            drawing: Vec::new(),
        }
    }

    /// Whether a picture replaces the last one, so that it must be complete.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Text in a style, or plain text if there are no colours.
    pub fn paint(&self, text_style: TextStyle, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let style = match text_style {
            TextStyle::Plain => Style::new(),
            TextStyle::Bold => Style::new().bold(),
            TextStyle::Good => AnsiColor::Green.on_default(),
            TextStyle::Bad => AnsiColor::Red.on_default(),
            TextStyle::Changed => AnsiColor::Yellow.on_default().bold(),
        };
        format!("{style}{text}{style:#}")
    }

    /// Shows headings, a drawing and side lines next to it (below it if it is small); then pauses.
    pub fn show(&mut self, headings: &[String], drawing: &str, side_lines: &[String]) -> io::Result<()> {
        let mut lines = headings.to_vec();
        lines.extend(self.compose(drawing, side_lines));
        self.draw(&lines, true)?;
        if self.waits {
            write!(self.out, "[Enter] ")?;
            self.out.flush()?;
            io::stdin().lock().read_line(&mut String::new())?;
            // Enter has moved the cursor of the terminal to the next line. Without a terminal the count is not used.
            self.n_lines += 1;
        } else if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        Ok(())
    }

    /// Writes lines that the next picture does not replace.
    pub fn write(&mut self, lines: &[String]) -> io::Result<()> {
        self.draw(lines, false)
    }

    fn draw(&mut self, lines: &[String], is_picture: bool) -> io::Result<()> {
        let mut text = String::new();
        if self.is_live {
            if self.n_lines > 0 {
                text.push_str(&format!("\x1b[{}A", self.n_lines));
            }
            text.push_str("\r\x1b[J");
        }
        // A line that is wider than the terminal must not become two lines of a picture: the next one would not cover it.
        let is_cut = self.is_live && is_picture;
        text.push_str(if is_cut { "\x1b[?7l" } else { "" });
        for line in lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text.push_str(if is_cut { "\x1b[?7h" } else { "" });
        self.n_lines = if is_picture { lines.len() } else { 0 };
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    /// Combines a drawing with its side lines.
    fn compose(&mut self, drawing: &str, side_lines: &[String]) -> Vec<String> {
        let rows: Vec<Vec<char>> = drawing.lines().map(|line| line.chars().collect()).collect();
        let before = std::mem::replace(&mut self.drawing, rows.clone());
        let is_caption = |row: &&Vec<char>| row.len() > MAX_DRAWING_WIDTH;
        let first = rows.iter().take_while(is_caption).count();
        let last = rows.len() - rows[first..].iter().rev().take_while(is_caption).count();
        let width = rows[first..last].iter().map(Vec::len).max().unwrap_or(0) + 4;
        let has_room = last - first >= MIN_DRAWING_LINES;
        let n_at_side = if has_room { last - first } else { 0 };
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let mut line = self.mark_changes(row, before.get(index).map(Vec::as_slice));
            let side_line =
                index.checked_sub(first).filter(|at| *at < n_at_side).and_then(|at| side_lines.get(at));
            if let Some(side_line) = side_line {
                line.push_str(&" ".repeat(width - row.len()));
                line.push_str(side_line);
            }
            lines.push(line);
        }
        // Side lines that do not fit next to the drawing follow below it.
        let indent = " ".repeat(if has_room { width } else { 4 });
        let rest = side_lines.iter().skip(n_at_side).map(|side_line| format!("{indent}{side_line}"));
        lines.splice(last..last, rest);
        lines
    }

    fn mark_changes(&self, row: &[char], before: Option<&[char]>) -> String {
        let Some(before) = before.filter(|before| self.has_colours && before.len() == row.len()) else {
            return row.iter().collect();
        };
        let mark = |(now, then): (&char, &char)| {
            if now == then { now.to_string() } else { self.paint(TextStyle::Changed, &now.to_string()) }
        };
        row.iter().zip(before).map(mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{EncounterScreen, TextStyle};

    fn screen(out: &mut Vec<u8>, is_live: bool, has_colours: bool) -> EncounterScreen<'_> {
        let delay = Duration::ZERO;
        EncounterScreen { out, is_live, has_colours, delay, waits: false, n_lines: 0, drawing: Vec::new() }
    }

    fn texts<const N: usize>(lines: [&str; N]) -> Vec<String> {
        lines.map(str::to_owned).to_vec()
    }

    const CAPTION: &str = "a caption that is much too wide for a terminal to have side lines next to it";

    #[test]
    fn side_lines_are_next_to_a_drawing_and_below_a_small_one() {
        let check = |drawing: &str, side_lines: &[String], expected: &str| {
            let mut out = Vec::new();
            screen(&mut out, false, false).show(&texts(["heading"]), drawing, side_lines).expect("a vector");
            assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
        };
        let grid = format!("{CAPTION}\n##\n##\n###\n##\n{CAPTION}\n");
        check(
            &grid,
            &texts(["one", "two", "three"]),
            &format!("heading\n{CAPTION}\n##     one\n##     two\n###    three\n##\n{CAPTION}\n"),
        );
        check(
            "1\n2\n3\n4\n",
            &texts(["one", "", "three", "four", "five"]),
            "heading\n1    one\n2\n3    three\n4    four\n     five\n",
        );
        check("small\n", &texts(["one", "two"]), "heading\nsmall\n    one\n    two\n");
        check("alone\n", &[], "heading\nalone\n");
        check(CAPTION, &texts(["one"]), &format!("heading\n{CAPTION}\n    one\n"));
        check("", &texts(["one"]), "heading\n    one\n");
    }

    #[test]
    fn a_live_picture_replaces_the_last_one() {
        let mut out = Vec::new();
        let mut live = screen(&mut out, true, true);
        live.show(&[], "ab\ncd", &[]).expect("a vector");
        live.show(&[], "ab\nce", &[]).expect("a vector");
        live.write(&texts(["stays"])).expect("a vector");
        live.write(&texts(["stays too"])).expect("a vector");
        let expected = "\r\x1b[J\x1b[?7lab\ncd\n\x1b[?7h\
                        \x1b[2A\r\x1b[J\x1b[?7lab\nc\x1b[1m\x1b[33me\x1b[0m\n\x1b[?7h\
                        \x1b[2A\r\x1b[Jstays\n\
                        \r\x1b[Jstays too\n";
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }

    #[test]
    fn without_colours_text_has_no_escape_codes() {
        let mut out = Vec::new();
        for text_style in
            [TextStyle::Plain, TextStyle::Bold, TextStyle::Good, TextStyle::Bad, TextStyle::Changed]
        {
            assert_eq!(screen(&mut out, true, false).paint(text_style, "text"), "text");
        }
        assert_eq!(screen(&mut out, true, true).paint(TextStyle::Good, "text"), "\x1b[32mtext\x1b[0m");
        assert_eq!(screen(&mut out, true, true).paint(TextStyle::Plain, "text"), "text");
    }
}
