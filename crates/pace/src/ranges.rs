//! Parsers of option values. A value out of range is rejected before any work, with the range in the message.

use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Parses a whole number within `range`.
pub fn whole<T>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64> + 'static,
{
    move |text| {
        let number = text.parse::<u64>().ok().filter(|number| range.contains(number));
        number
            .and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Parses a number within `range`.
pub fn number(
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse::<f64>().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("expected a number from {} to {}", range.start(), range.end()))
    }
}

/// Parses a random seed.
pub fn seed() -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    whole(0..=u64::MAX)
}

/// Parses a number of threads or processes.
pub fn thread_count() -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    whole(1..=1024)
}

/// Parses a training budget in ego decisions; the key `total_steps` has the same range.
pub fn training_steps() -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    whole(1..=1_000_000_000_000)
}

/// Parses the factor of a scaled run: above 0, at most 1.
pub fn scale(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= 1.0);
    number.ok_or_else(|| "expected a number above 0, and at most 1".to_owned())
}

/// Parses an address to listen on.
pub fn address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "expected an IP address, for example 127.0.0.1 or ::1".to_owned())
}
