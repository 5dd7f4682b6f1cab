//! Version, commit and compiler of this program, its command line, and the number of cores.

use pace_lab::{BuildInfo, STOP_ON_STDIN_EOF};

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

/// The command line as one line of text, for records.
pub fn command_line() -> String {
    arguments().join(" ")
}

/// The arguments as text; a path need not be UTF-8. The program is called `pace`, so that records contain no path of this machine.
fn arguments() -> Vec<String> {
    let rest = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    // This option is only useful to `pace reproduce`, which holds the standard input of the process.
    let rest = rest.filter(|argument| argument != STOP_ON_STDIN_EOF);
    std::iter::once("pace".to_owned()).chain(rest).collect()
}

/// Number of available cores, the default number of threads.
pub fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
