//! A writer of HTML and SVG that escapes all text and checks that every element is closed.
//!
//! All pages and figures use this writer, so no description of a peer can become a tag.

use std::fmt::{Display, Write};

/// The name of an attribute, and its value, which is escaped when it is written.
pub(crate) type Attribute<'a> = (&'static str, &'a dyn Display);

/// Markup under construction.
#[derive(Debug, Default)]
pub(crate) struct Markup {
    written: String,
    open: Vec<&'static str>,
}

impl Markup {
    pub(crate) fn new() -> Markup {
        Markup::default()
    }

    /// Opens an element on a line of its own.
    pub(crate) fn open(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.start(tag, attributes);
        self.written.push('>');
        self.open.push(tag);
    }

    /// Closes the element opened last.
    pub(crate) fn close(&mut self, tag: &'static str) {
        assert_eq!(self.open.pop(), Some(tag), "elements close in the order they were opened");
        self.new_line();
        write!(self.written, "</{tag}>").expect("a string takes any text");
    }

    /// Writes a complete element with text in it.
    pub(crate) fn leaf(&mut self, tag: &'static str, attributes: &[Attribute<'_>], text: &str) {
        self.start(tag, attributes);
        write!(self.written, ">{}</{tag}>", escaped(text)).expect("a string takes any text");
    }

    /// Writes a complete element with several pieces of text in it. A piece may have its own element, given as tag and class.
    pub(crate) fn pieces(
        &mut self,
        tag: &'static str,
        attributes: &[Attribute<'_>],
        pieces: &[(Option<(&str, &str)>, &str)],
    ) {
        self.start(tag, attributes);
        self.written.push('>');
        for (mark, text) in pieces {
            let text = escaped(text);
            match mark {
                None => write!(self.written, "{text}"),
                Some((inner, class)) => write!(self.written, "<{inner} class=\"{class}\">{text}</{inner}>"),
            }
            .expect("a string takes any text");
        }
        write!(self.written, "</{tag}>").expect("a string takes any text");
    }

    /// Writes an element without content.
    pub(crate) fn empty(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.start(tag, attributes);
        self.written.push_str("/>");
    }

    /// Writes a style sheet of this crate. HTML does not unescape style sheets, so the text is checked instead.
    pub(crate) fn style(&mut self, sheet: &'static str) {
        assert!(!sheet.contains(['<', '&']), "our style sheets need no escape");
        self.new_line();
        write!(self.written, "<style>\n{}\n</style>", sheet.trim()).expect("a string takes any text");
    }

    /// Writes a script of this crate. HTML does not unescape scripts, so the text is checked instead.
    pub(crate) fn script(&mut self, text: &str) {
        assert!(!text.contains("</") && !text.contains("<!--"), "our scripts close no element");
        self.new_line();
        write!(self.written, "<script type=\"module\">{text}</script>").expect("a string takes any text");
    }

    /// Writes data for a script, as JSON. No data can end the element, because `<` is written as a JSON escape sequence.
    pub(crate) fn data(&mut self, value: &impl serde::Serialize) {
        let json = serde_json::to_string(value).expect("a record is plain data");
        let safe = json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        self.new_line();
        write!(self.written, "<script type=\"application/json\">{safe}</script>")
            .expect("a string takes any text");
    }

    /// Adds complete markup.
    pub(crate) fn append(&mut self, other: &Markup) {
        assert!(other.open.is_empty(), "markup must be closed before it is added to other markup");
        self.new_line();
        self.written.push_str(&other.written);
    }

    /// Returns the text, with a line end.
    pub(crate) fn finish(mut self) -> String {
        assert!(self.open.is_empty(), "left open: {:?}", self.open);
        self.written.push('\n');
        self.written
    }

    fn start(&mut self, tag: &'static str, attributes: &[Attribute<'_>]) {
        self.new_line();
        write!(self.written, "<{tag}").expect("a string takes any text");
        for (name, value) in attributes {
            let value = value.to_string();
            write!(self.written, " {name}=\"{}\"", escaped(&value)).expect("a string takes any text");
        }
    }

    fn new_line(&mut self) {
        if !self.written.is_empty() {
            self.written.push('\n');
        }
    }
}

/// A length in a drawing, rounded to a tenth of a unit, which is not visible and keeps files small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // Adding zero converts −0 to 0.
        write!(formatter, "{}", tenths / 10.0 + 0.0)
    }
}

/// Escapes a text for use between tags and inside quotes. Characters that XML forbids become the replacement character.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(character),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            control if control.is_control() => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::{Markup, Px, escaped};

    #[test]
    fn tags_quotes_and_control_characters_are_escaped() {
        assert_eq!(escaped("<b a='1'>\"&\u{1b}[31m"), "&lt;b a=&#39;1&#39;&gt;&quot;&amp;\u{fffd}[31m");
    }

    #[test]
    fn elements_are_written_with_attributes_and_pieces() {
        let mut markup = Markup::new();
        markup.open("g", &[("class", &"a\"b"), ("x", &Px(-0.04))]);
        markup.pieces("p", &[], &[(None, "1 < 2 "), (Some(("b", "strong")), "&")]);
        markup.empty("path", &[("d", &"M0 0")]);
        markup.close("g");
        assert_eq!(
            markup.finish(),
            "<g class=\"a&quot;b\" x=\"0\">\n<p>1 &lt; 2 <b class=\"strong\">&amp;</b></p>\n<path d=\"M0 0\"/>\n</g>\n"
        );
    }
}
