//! What this program was built from.

use pace_lab::Build;

/// The build, and the command line it was started with.
pub fn build() -> Build {
    let known = |text: &'static str| Some(text).filter(|text| !text.is_empty());
    Build {
        version: env!("CARGO_PKG_VERSION"),
        commit: known(env!("PACE_COMMIT")),
        rustc: env!("PACE_RUSTC"),
        argv: arguments().collect(),
    }
}

/// The command line as one line, for records.
pub fn command_line() -> String {
    let arguments: Vec<String> = arguments().skip(1).collect();
    format!("pace {}", arguments.join(" "))
}

/// The arguments as text; a path need not be UTF-8.
fn arguments() -> impl Iterator<Item = String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned())
}

/// Threads to use when nobody says how many.
pub fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
