//! Fields of CSV tables in the format of RFC 4180, but with plain line feeds.

/// Quotes texts and joins them to fields of a row.
pub(crate) fn quoted_row(texts: &[&str]) -> String {
    texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(",")
}

/// Formats a number, or an empty field.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// Quotes a text, so that it may contain commas and line feeds.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
