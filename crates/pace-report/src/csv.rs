//! Tables for other programs, by the rules of RFC 4180 but with plain line ends.

/// In quotes, so that commas and line ends within stay within.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
