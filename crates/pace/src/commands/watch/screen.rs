//! A window of text: on a terminal each picture takes the place of the last one, elsewhere they follow each other.
//!
//! Nothing here knows what it shows.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};

/// What text may look like.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// Nothing special.
    Plain,
    /// A heading.
    Bold,
    /// Good news.
    Good,
    /// Bad news.
    Bad,
    /// A part of a drawing that is not what it was.
    Changed,
}

/// Where pictures are shown.
pub struct Screen<'a> {
    out: &'a mut dyn Write,
    /// Whether a picture may take the place of the last one.
    is_live: bool,
    has_colours: bool,
    delay: Duration,
    waits: bool,
    /// Lines of the picture that the next one replaces.
    n_lines: usize,
    drawing: Vec<Vec<char>>,
}

/// How long a picture stays when nobody says.
const DELAY_MS: u64 = 250;
/// Lines of a drawing that are wider are captions, and nothing stands beside them.
const WIDEST_DRAWING: usize = 54;
/// A drawing of fewer lines has nothing beside it.
const FEWEST_LINES: usize = 4;

impl<'a> Screen<'a> {
    pub fn new(out: &'a mut dyn Write, delay_ms: Option<u64>, waits: bool) -> Screen<'a> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_live =
            io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let delay_ms = delay_ms.unwrap_or(if io::stdout().is_terminal() { DELAY_MS } else { 0 });
        Screen {
            out,
            is_live,
            has_colours: is_live && !is_set("NO_COLOR"),
            delay: Duration::from_millis(delay_ms),
            waits,
            n_lines: 0,
            drawing: Vec::new(),
        }
    }

    /// Whether a picture takes the place of the last one, so that it must say everything itself.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Text with a look, where there are colours.
    pub fn paint(&self, look: Look, text: &str) -> String {
        if !self.has_colours {
            return text.to_owned();
        }
        let style = match look {
            Look::Plain => Style::new(),
            Look::Bold => Style::new().bold(),
            Look::Good => AnsiColor::Green.on_default(),
            Look::Bad => AnsiColor::Red.on_default(),
            Look::Changed => AnsiColor::Yellow.on_default().bold(),
        };
        format!("{style}{text}{style:#}")
    }

    /// Shows headings, a drawing, and lines beside it (or below, where it is small); then waits.
    pub fn show(&mut self, headings: &[String], drawing: &str, beside: &[String]) -> io::Result<()> {
        let mut lines = headings.to_vec();
        lines.extend(self.compose(drawing, beside));
        self.draw(&lines, true)?;
        if self.waits {
            write!(self.out, "[Enter] ")?;
            self.out.flush()?;
            io::stdin().lock().read_line(&mut String::new())?;
            // The key has ended the line, at a terminal; elsewhere nobody sees the difference.
            self.n_lines += 1;
        } else if !self.delay.is_zero() {
            std::thread::sleep(self.delay);
        }
        Ok(())
    }

    /// Writes lines that stay.
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

    /// The drawing with what stands beside it.
    fn compose(&mut self, drawing: &str, beside: &[String]) -> Vec<String> {
        let rows: Vec<Vec<char>> = drawing.lines().map(|line| line.chars().collect()).collect();
        let before = std::mem::replace(&mut self.drawing, rows.clone());
        let is_caption = |row: &&Vec<char>| row.len() > WIDEST_DRAWING;
        let first = rows.iter().take_while(is_caption).count();
        let last = rows.len() - rows[first..].iter().rev().take_while(is_caption).count();
        let width = rows[first..last].iter().map(Vec::len).max().unwrap_or(0) + 4;
        let has_room = last - first >= FEWEST_LINES;
        let n_beside = if has_room { last - first } else { 0 };
        let mut lines = Vec::new();
        for (index, row) in rows.iter().enumerate() {
            let mut line = self.mark_changes(row, before.get(index).map(Vec::as_slice));
            let neighbour =
                index.checked_sub(first).filter(|at| *at < n_beside).and_then(|at| beside.get(at));
            if let Some(neighbour) = neighbour {
                line.push_str(&" ".repeat(width - row.len()));
                line.push_str(neighbour);
            }
            lines.push(line);
        }
        // What is longer than the drawing goes on below it.
        let indent = " ".repeat(if has_room { width } else { 4 });
        let rest = beside.iter().skip(n_beside).map(|neighbour| format!("{indent}{neighbour}"));
        lines.splice(last..last, rest);
        lines
    }

    fn mark_changes(&self, row: &[char], before: Option<&[char]>) -> String {
        let Some(before) = before.filter(|before| self.has_colours && before.len() == row.len()) else {
            return row.iter().collect();
        };
        let mark = |(now, then): (&char, &char)| {
            if now == then { now.to_string() } else { self.paint(Look::Changed, &now.to_string()) }
        };
        row.iter().zip(before).map(mark).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Look, Screen};

    fn screen(out: &mut Vec<u8>, is_live: bool, has_colours: bool) -> Screen<'_> {
        let delay = Duration::ZERO;
        Screen { out, is_live, has_colours, delay, waits: false, n_lines: 0, drawing: Vec::new() }
    }

    fn texts<const N: usize>(lines: [&str; N]) -> Vec<String> {
        lines.map(str::to_owned).to_vec()
    }

    const CAPTION: &str = "a caption that is much too wide for anything to stand beside it on a terminal";

    #[test]
    fn lines_stand_beside_a_drawing_and_below_a_small_one() {
        let check = |drawing: &str, beside: &[String], expected: &str| {
            let mut out = Vec::new();
            screen(&mut out, false, false).show(&texts(["heading"]), drawing, beside).expect("a vector");
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
    fn a_live_picture_takes_the_place_of_the_last_one() {
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
    fn without_colours_text_is_text() {
        let mut out = Vec::new();
        for look in [Look::Plain, Look::Bold, Look::Good, Look::Bad, Look::Changed] {
            assert_eq!(screen(&mut out, true, false).paint(look, "text"), "text");
        }
        assert_eq!(screen(&mut out, true, true).paint(Look::Good, "text"), "\x1b[32mtext\x1b[0m");
        assert_eq!(screen(&mut out, true, true).paint(Look::Plain, "text"), "text");
    }
}
