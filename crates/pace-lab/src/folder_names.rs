//! Folder names in records, for runs that were moved or copied after their commands ran.

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
    let value = |(place, word): (usize, &String)| match word.strip_prefix("--out=") {
        Some(value) => Some(value.to_owned()),
        None if word == "--out" => words.get(place + 1).cloned(),
        None => None,
    };
    let folder = words.iter().enumerate().find_map(value);
    folder.map_or(command.clone(), |folder| renamed(&command, &folder, name))
}

/// Replaces the folder `from` by `to` in a command, also as the start of a path and as the value of a key or option.
fn renamed(command: &str, from: &str, to: &str) -> String {
    let from = from.trim_end_matches('/');
    if from.is_empty() {
        return command.to_owned();
    }
    let rename = |word: &str| {
        let path = word.rfind('=').map_or(0, |end| end + 1);
        match word[path..].strip_prefix(from) {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{to}{rest}", &word[..path]),
            _ => word.to_owned(),
        }
    };
    command.split(' ').map(rename).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::renamed;

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
}
