//! `pace watch` with trained agents and scripted egos.

use std::path::Path;

use pace_games::{Action, GAMES, NO_ACTION, Seed, Split};
use pace_lab::{RunView, TrainedAgent};
use serde_json::Value;

use crate::commands::{check_error, json, run};

/// Trains a run of a few iterations.
fn train(game: &str, out: &Path, more: &[&str]) -> String {
    let out = out.to_str().expect("UTF-8");
    let mut arguments = vec!["train", game, "--steps", "2000", "--out", out];
    for key in ["encounters_per_tuple=1", "epochs=1", "minibatches=2", "warm_up_steps=0", "hidden_width=8"] {
        arguments.extend(["--set", key]);
    }
    arguments.extend(more);
    run(&arguments);
    out.to_owned()
}

#[test]
fn watch_shows_actions_and_beliefs_of_a_trained_agent() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for entry in GAMES {
        let folder = train(entry.id, &scratch.path().join(entry.id), &["--set", "episodes_per_encounter=3"]);
        let arguments = ["watch", &folder, "--peer", "2", "--pool", "train"];
        let shown = run(&arguments);
        assert_eq!(run(&arguments), shown, "{}", entry.id);
        for words in
            [" 3 of 3 ==", "-- step 1: ego ", "belief about ", "action probabilities", "value ", "identified"]
        {
            assert!(shown.contains(words), "{}: no {words:?} in {shown}", entry.id);
        }
        assert!(shown.contains(", train peer 2") && shown.contains(" over 3"), "{shown}");
        assert!(!shown.contains('\x1b'), "escape codes where there is no terminal");
        let one = run(&["watch", &folder, "--pool", "train", "--peer", "2", "--only-episode", "2"]);
        assert!(
            one.contains(" 2 of 3 ==") && !one.contains(" 1 of 3 ==") && !one.contains(" 3 of 3 =="),
            "{one}"
        );
        let last = |shown: &str| shown.lines().rev().take(8).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(last(&one), last(&shown));
        let from = run(&["watch", &folder, "--pool", "train", "--peer", "2", "--from-episode", "2"]);
        assert!(
            from.contains(" 2 of 3 ==") && !from.contains(" 1 of 3 ==") && from.contains(" 3 of 3 =="),
            "{from}"
        );
        let scripted = run(&["watch", &folder, "--ego", "oracle", "--episodes", "2"]);
        assert!(scripted.contains("oracle, test peer 0") && !scripted.contains("guess"), "{scripted}");
    }
}

#[test]
fn watch_shows_the_first_encounter_of_adapt() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = train("predator-prey", &scratch.path().join("run"), &["--preset", "reference"]);
    let record: Value =
        json(&["adapt", &folder, "--encounters", "1", "--episodes", "2", "--seed", "6", "--json"]);
    for peer in [0, 5, 23] {
        let number = peer.to_string();
        let shown = run(&[
            "watch",
            &folder,
            "--peer",
            &number,
            "--episodes",
            "2",
            "--seed",
            "6",
            "--only-episode",
            "1",
        ]);
        let mean = record["peers"][peer]["mean"].as_f64().expect("a mean");
        assert!(shown.contains(&format!("return per episode {mean:.3} over 2")), "{mean}: {shown}");
    }
}

#[test]
fn a_watched_encounter_its_replay_and_a_session_take_the_same_actions() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for entry in GAMES {
        let folder = train(entry.id, &scratch.path().join(entry.id), &["--set", "episodes_per_encounter=3"]);
        let arguments = ["watch", &folder, "--peer", "3", "--seed", "6"];
        let trained =
            TrainedAgent::load(&RunView::open(Path::new(&folder)).expect("a run")).expect("an agent");
        let spec = trained.game.spec();
        let seed = Seed::new(6).child("encounter", &[3, 0]);
        let session = trained.agent.session(&*trained.game, Split::Test, 3, &[], 3, seed);
        let mut session = session.expect("a tuple");
        let (mut expected, mut expected_of_peers) = (Vec::new(), Vec::new());
        loop {
            let moment = session.moment();
            expected.extend(moment.decision.map(|decision| usize::from(decision.action)));
            let of_peers = moment.step.map(|step| step.peer_actions.to_vec());
            expected_of_peers.extend(of_peers);
            if !session.step().expect("finite weights") {
                break;
            }
        }
        let shown = run(&arguments);
        let steps = shown.lines().filter_map(|line| line.split_once("-- step ")?.1.split_once(": ego "));
        let name = |step: &str| step.split([',', ';']).next().expect("a name").to_owned();
        let watched: Vec<String> = steps.map(|(_, step)| name(step)).collect();
        let names: Vec<String> =
            expected.iter().map(|action| spec.action_names[*action].to_owned()).collect();
        assert_eq!(watched, names, "{}", entry.id);
        let file = scratch.path().join("replay.json");
        run(&[&arguments[..], &["--record", file.to_str().expect("UTF-8")]].concat());
        let replay = std::fs::read_to_string(&file).expect("it was written");
        let replay: Value = serde_json::from_str(&replay).expect("JSON");
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let moments: Vec<Value> =
            list(&replay["episodes"]).iter().flat_map(|episode| list(&episode["moments"])).collect();
        let actions = moments.iter().filter_map(|moment| moment["action"].as_u64());
        assert_eq!(actions.map(|action| action as usize).collect::<Vec<_>>(), expected, "{}", entry.id);
        let action = |action: &Value| action.as_u64().map_or(NO_ACTION, |action| action as Action);
        let of_peers = moments.iter().filter(|moment| moment["task_reward"].is_number());
        let of_peers: Vec<Vec<Action>> =
            of_peers.map(|moment| list(&moment["peer_actions"]).iter().map(action).collect()).collect();
        assert_eq!(of_peers, expected_of_peers, "{}", entry.id);
    }
}

#[test]
fn an_agent_without_identification_is_shown_without_beliefs() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let method = ["--method", "pace-reward-aux"];
    let folder = train("kuhn-poker", &scratch.path().join("run"), &method);
    let shown = run(&["watch", &folder, "--episodes", "2"]);
    assert!(shown.contains("value ") && !shown.contains("belief about"), "{shown}");
}

#[test]
fn a_method_without_an_identifier_is_shown_without_beliefs() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for method in ["liam", "liamx", "lili"] {
        let folder = train("kuhn-poker", &scratch.path().join(method), &["--method", method]);
        let shown = run(&["watch", &folder, "--episodes", "2"]);
        assert!(shown.contains("value ") && !shown.contains("belief about"), "{method}: {shown}");
    }
}

#[test]
fn the_legend_of_a_trained_agent_explains_its_panel() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = train("kuhn-poker", &scratch.path().join("run"), &[]);
    let shown = run(&["watch", &folder, "--episodes", "1"]);
    let (legend, _) = shown.split_once("\n\n==").expect("the first episode");
    for words in ["belief about:", "action probabilities:", "value:", "a full bar is probability 1"] {
        assert!(legend.contains(words), "no {words:?} in {legend}");
    }
    // A skipped episode takes one line, and the legend is printed once.
    let from = run(&["watch", &folder, "--episodes", "2", "--from-episode", "2"]);
    assert!(from.starts_with("hand 1: ") && from.matches("legend\n").count() == 1, "{from}");
}

#[test]
fn invalid_watch_arguments_get_one_clear_line() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = train("kuhn-poker", &scratch.path().join("run"), &[]);
    check_error(
        &["watch", "runs-of-mine"],
        2,
        &["unknown game or run folder \"runs-of-mine\"", "kuhn-poker"],
    );
    let nowhere = scratch.path().join("nowhere");
    check_error(
        &["watch", nowhere.to_str().expect("UTF-8")],
        3,
        &["nowhere is not a run folder", "pace train"],
    );
    check_error(&["watch", scratch.path().to_str().expect("UTF-8")], 3, &["is not a run folder"]);
    check_error(&["watch", &folder, "--peer", "10"], 2, &["no peer 10 in pool test", "0 to 9"]);
    check_error(&["watch", &folder, "--pool", "tets"], 2, &["tets", "did you mean \"test\"?"]);
    check_error(&["watch", &folder, "--ego", "byes"], 2, &["byes", "did you mean \"bayes\"?"]);
    check_error(&["watch", &folder, "--episodes", "0"], 2, &["--episodes: found 0", "1 to 10000"]);
    check_error(&["watch", &folder, "--from-episode", "101"], 2, &["--from-episode: found 101", "1 to 100"]);
    check_error(&["watch", &folder, "--only-episode", "0"], 2, &["--only-episode: found 0", "1 to 100"]);
    check_error(&["watch", &folder, "--delay", "61000"], 2, &["61000", "--delay"]);
    check_error(&["watch", &folder, "--set", "episodes_per_encounter=2"], 2, &["--set", "its own keys"]);
    check_error(&["watch", &folder, "--preset", "paper"], 2, &["--preset", "its own keys"]);
    for checkpoint in std::fs::read_dir(Path::new(&folder).join("checkpoints")).expect("readable") {
        std::fs::remove_dir_all(checkpoint.expect("readable").path()).expect("removed");
    }
    check_error(&["watch", &folder], 3, &["has no checkpoint:", "copy its checkpoints folder"]);
}
