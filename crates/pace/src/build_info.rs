//! What this program was built from.

use pace_lab::{BuildInfo, STOP_WITH_INPUT};

/// The build, and the command line it was started with.
pub fn build() -> BuildInfo {
    let known = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    BuildInfo {
        version: env!("CARGO_PKG_VERSION"),
        commit: known(env!("PACE_COMMIT")),
        rustc: env!("PACE_RUSTC"),
        argv: arguments(),
    }
}

/// The command line as one line, for records.
pub fn command_line() -> String {
    arguments().join(" ")
}

/// The arguments as text; a path need not be UTF-8. The program goes by its name: where it lies is nobody's business.
fn arguments() -> Vec<String> {
    let rest = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    // Nobody who repeats a run of a lab by hand has its input.
    let rest = rest.filter(|argument| argument != STOP_WITH_INPUT);
    std::iter::once("pace".to_owned()).chain(rest).collect()
}

/// Threads to use when nobody says how many.
pub fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
