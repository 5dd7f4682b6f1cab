//! Formats of numbers: decimals, percentages, thousands and durations.

/// The number of decimals that shows a standard error with one significant digit, or with two if the first is 1 or 2. More
/// decimals of the mean would be noise.
pub(crate) fn decimals(standard_error: Option<f64>) -> usize {
    let Some(error) = standard_error.filter(|error| *error > 0.0 && error.is_finite()) else {
        return 4;
    };
    (1..6)
        .find(|decimals| error * 10_f64.powi(*decimals) >= 2.5)
        .map_or(6, |decimals| decimals as usize)
        .max(2)
}

/// The number of decimals, from two to four, that shows an error with two significant digits; for tables with similar rows.
pub(crate) fn decimals_of_two_figures(error: Option<f64>) -> usize {
    let Some(error) = error.filter(|error| *error > 0.0 && error.is_finite()) else {
        return 4;
    };
    (2..4).find(|decimals| error * 10_f64.powi(*decimals) >= 9.5).map_or(4, |decimals| decimals as usize)
}

/// Formats a number with this many decimals and an ASCII minus. Zero never has a minus.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if text.starts_with('-') && !text.contains(|digit: char| ('1'..='9').contains(&digit)) {
        return text.trim_start_matches('-').to_owned();
    }
    text
}

/// Formats a number with a typographic minus sign, for pages and figures.
pub(crate) fn typeset(value: f64, decimals: usize) -> String {
    fixed(value, decimals).replace('-', "\u{2212}")
}

/// Formats a share in whole per cent, with a non-breaking space.
pub(crate) fn percent(share: f64) -> String {
    format!("{}\u{a0}%", typeset(share * 100.0, 0))
}

/// Formats a share in per cent with up to three decimals, for small shares: 1 %, 0.25 %.
pub(crate) fn percent_fine(share: f64) -> String {
    let text = fixed(share * 100.0, 3);
    format!("{}\u{a0}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a count with thin spaces between thousands.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats a number of steps on an axis: 0, 250k, 1.5M.
pub(crate) fn steps(n: f64) -> String {
    let (scaled, unit) = match n.abs() {
        n_abs if n_abs >= 1e9 => (n / 1e9, "G"),
        n_abs if n_abs >= 1e6 => (n / 1e6, "M"),
        n_abs if n_abs >= 1e3 => (n / 1e3, "k"),
        _ => (n, ""),
    };
    let text = fixed(scaled, 2);
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Formats a duration in its two largest units.
pub(crate) fn duration(secs: f64) -> String {
    if secs < 60.0 {
        return format!("{}\u{a0}s", fixed(secs, 1));
    }
    let whole = secs.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        return format!("{hours}\u{a0}h {minutes}\u{a0}min");
    }
    format!("{minutes}\u{a0}min {rest}\u{a0}s")
}

#[cfg(test)]
mod tests {
    use super::{count, decimals, decimals_of_two_figures, duration, fixed, percent, steps, typeset};

    #[test]
    fn decimals_depend_on_the_standard_error() {
        assert_eq!(decimals(Some(0.0008)), 4);
        assert_eq!(decimals(Some(0.0013)), 4);
        assert_eq!(decimals(Some(0.017)), 3);
        assert_eq!(decimals(Some(0.036)), 2);
        assert_eq!(decimals(Some(3.0)), 2);
        assert_eq!(decimals(Some(0.0)), 4);
        assert_eq!(decimals(None), 4);
        assert_eq!(decimals(Some(1e-12)), 6);
        let figures = [Some(0.0027), Some(0.029), Some(0.25), Some(3.0), Some(1e-9), None];
        assert_eq!(figures.map(decimals_of_two_figures), [4, 3, 2, 2, 4, 4]);
    }

    #[test]
    fn number_formats() {
        assert_eq!(fixed(-0.00001, 3), "0.000");
        assert_eq!(typeset(-0.0556, 4), "\u{2212}0.0556");
        assert_eq!(percent(0.414), "41\u{a0}%");
        assert_eq!(count(4_960_000), "4\u{202f}960\u{202f}000");
        assert_eq!(count(999), "999");
        assert_eq!(steps(1_500_000.0), "1.5M");
        assert_eq!(steps(250_000.0), "250k");
        assert_eq!(steps(0.0), "0");
        assert_eq!(duration(31.24), "31.2\u{a0}s");
        assert_eq!(duration(252.0), "4\u{a0}min 12\u{a0}s");
        assert_eq!(duration(7_260.0), "2\u{a0}h 1\u{a0}min");
    }
}
