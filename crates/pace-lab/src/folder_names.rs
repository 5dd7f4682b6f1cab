//! Folder names in records, for runs that were moved or copied after their commands ran.

use std::path::Path;

use crate::records::RunRecords;

/// Replaces the recorded folder of a run by `name`, its current folder, in the run and the command of every evaluation and
/// replay.
pub fn update(records: &mut RunRecords, name: &str) {
    let evaluations = records.evaluations.values_mut().map(|record| (&mut record.command, &mut record.run));
    let replays = records.replays.values_mut().map(|record| (&mut record.command, &mut record.run));
    for (command, run) in evaluations.chain(replays) {
        *command = renamed(command, &run.folder, name);
        name.clone_into(&mut run.folder);
    }
}

/// The command that trained the run, with `name` in place of its `--out` folder.
pub(crate) fn train_command(records: &RunRecords, name: &str) -> String {
    let words = &records.manifest.spec.argv;
    let command = words.join(" ");
    out_folder(words).map_or(command.clone(), |folder| renamed(&command, folder, name))
}

/// The value of `--out` in the words of a command.
pub(crate) fn out_folder(words: &[String]) -> Option<&str> {
    let value = |(place, word): (usize, &String)| match word == "--out" {
        true => words.get(place + 1).map(String::as_str),
        false => None,
    };
    let after_sign = || words.iter().find_map(|word| word.strip_prefix("--out="));
    words.iter().enumerate().find_map(value).or_else(after_sign)
}

/// Replaces the folder `from` by `to` in a command, also as the start of a path and as the value of a key or option.
pub(crate) fn renamed(command: &str, from: &str, to: &str) -> String {
    let from = from.trim_end_matches('/');
    if from.is_empty() {
        return command.to_owned();
    }
    let rename = |path: &str| match path.strip_prefix(from) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{to}{rest}"),
        _ => path.to_owned(),
    };
    with_paths(command, rename)
}

/// Shortens every absolute path in a command to its last name, so that the command says nothing about its machine.
pub(crate) fn without_absolute_paths(command: &str) -> String {
    with_paths(command, |path| {
        let last = Path::new(path).file_name().filter(|_| Path::new(path).is_absolute());
        last.map_or(path.to_owned(), |last| last.to_string_lossy().into_owned())
    })
}

/// Applies a change to every word of a command; of `NAME=VALUE`, to the value.
fn with_paths(command: &str, change: impl Fn(&str) -> String) -> String {
    let changed = |word: &str| {
        let path = word.rfind('=').map_or(0, |end| end + 1);
        format!("{}{}", &word[..path], change(&word[path..]))
    };
    command.split(' ').map(changed).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{renamed, without_absolute_paths};

    #[test]
    fn commands_get_the_current_folder() {
        let check = |command: &str, expected: &str| {
            assert_eq!(renamed(command, "lab/runs/one", "two"), expected);
        };
        check("pace adapt lab/runs/one --json", "pace adapt two --json");
        check("pace train kuhn-poker --out=lab/runs/one/", "pace train kuhn-poker --out=two/");
        check("pace adapt lab/runs/one --latents lab/runs/one/a.csv", "pace adapt two --latents two/a.csv");
        // Another folder, and an empty name.
        check("pace adapt lab/runs/one-more", "pace adapt lab/runs/one-more");
        assert_eq!(renamed("pace list", "", "two"), "pace list");
    }

    #[cfg(unix)]
    #[test]
    fn absolute_paths_are_shortened() {
        let check = |command: &str, expected: &str| assert_eq!(without_absolute_paths(command), expected);
        check("pace adapt /home/me/one --latents=/tmp/a.csv", "pace adapt one --latents=a.csv");
        check("pace adapt runs/one --seed 1", "pace adapt runs/one --seed 1");
    }
}
