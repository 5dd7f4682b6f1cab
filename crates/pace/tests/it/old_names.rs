//! Options and keys with the names of earlier versions, on the command line.

use crate::commands::{check_error, run};

/// A command with an old option and a value that the option rejects, and the new option, which the message names.
const OPTIONS: &[(&[&str], &str)] = &[
    (&["adapt", "run", "--passes", "0"], "--encounters"),
    (&["adapt", "run", "--clear-keeps"], "--keep-on-clear"),
    (&["play", "--most-sessions", "0"], "--max-sessions"),
    (&["play", "--idle", "0"], "--idle-minutes"),
    (&["play", "--study", "study.toml", "--store"], "--database"),
    (&["watch", "kuhn-poker", "--from", "0"], "--from-episode"),
    (&["bench", "play", "--arrival", "-1"], "--ramp-up"),
    (&["bench", "train", "--in-this-process", "--threads", "0"], "--threads"),
    (&["resume", "run", "--stop-with-input", "--threads", "0"], "--threads"),
];

#[test]
fn old_options_are_accepted_and_not_in_the_help() {
    for (arguments, option) in OPTIONS {
        check_error(arguments, 2, &[&format!("{option}: found ")]);
        let commands: Vec<&str> =
            arguments.iter().take_while(|word| !word.starts_with("--")).copied().collect();
        let old =
            arguments.iter().rev().find(|word| word.starts_with("--") && *word != option).expect("an option");
        let help = run(&[&commands[..], &["--help"]].concat());
        let listed: Vec<&str> = help.split_whitespace().collect();
        assert!(listed.contains(option) && !listed.contains(old), "{help}");
    }
}

#[test]
fn old_keys_of_a_game_are_accepted() {
    let peers = |keys: &[&str]| {
        let sets = keys.iter().flat_map(|key| ["--set", *key]);
        run(&["list", "peers", "predator-prey", "--pool", "train"]
            .into_iter()
            .chain(sets)
            .collect::<Vec<_>>())
    };
    let all = peers(&["rotated_tuples=true", "augmented_copies=1"]);
    assert_eq!(peers(&["turned_tuples=true", "practice_copies=1"]), all);
    assert_ne!(peers(&[]), all);
    let keys = ["check", "predator-prey", "--set", "clock=often"];
    check_error(&keys, 3, &["key `observe_time`: found", "often", "expected true or false"]);
}
