//! Reports from stored records: the same bytes every time, and one clear line per unreadable file.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::commands::{check_error, run};

fn records() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository's root")
}

/// Runs `pace` in a folder, so that pages contain no path of this machine.
fn pace_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pace"));
    command.current_dir(folder).args(arguments).output().expect("pace runs")
}

const TINY: [&str; 6] = ["main", "curves", "horizon", "change", "training", "latents"];

fn report(out: &Path) -> Output {
    let experiments: Vec<String> = TINY.iter().map(|name| format!("tiny-{name}.toml")).collect();
    let mut arguments = vec!["report", "kept", "--out", out.to_str().expect("UTF-8")];
    experiments.iter().for_each(|file| arguments.extend(["--experiment", file]));
    pace_in(&records(), &arguments)
}

/// Every file below a folder with its content, by its path there.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a readable folder");
            waiting.extend(entries.map(|entry| entry.expect("a readable entry").path()));
        } else {
            let name = path.strip_prefix(folder).expect("below the folder").display().to_string();
            found.push((name, std::fs::read_to_string(&path).expect("text")));
        }
    }
    found.sort();
    found
}

#[test]
fn a_report_is_the_same_every_time() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let output = report(scratch.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let golden = records().join("report");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let _ = std::fs::remove_dir_all(&golden);
        for (name, text) in files(scratch.path()) {
            let path = golden.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
    }
    let (found, golden) = (files(scratch.path()), files(&golden));
    let names = |all: &[(String, String)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&found), names(&golden), "UPDATE_GOLDEN=1 rewrites them");
    for ((name, found), (_, golden)) in found.iter().zip(&golden) {
        for (number, (found, golden)) in found.lines().zip(golden.lines()).enumerate() {
            assert_eq!(found, golden, "{name} line {}; UPDATE_GOLDEN=1 rewrites it", number + 1);
        }
        assert_eq!(found.len(), golden.len(), "{name}");
    }
}

#[test]
fn a_report_marks_missing_and_scaled_results() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    assert!(report(scratch.path()).status.success());
    let page = std::fs::read_to_string(scratch.path().join("index.html")).expect("a page");
    for words in [
        // The only run of LIAM had half its budget.
        "Scaled run: trained for 50\u{a0}% of the full budget",
        "origin scaled",
        // Three seeds of two methods may be compared.
        "origin best",
        "1 of 3 seeds",
        "paper 0.047 ± 0.004",
        "Additional runs",
        "Silhouette of the latents",
        "right ingredient",
        "commit 0123456789ab",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    // The page has one script of this project and loads nothing from a network.
    assert_eq!(page.matches("<script type=\"module\">").count(), 1);
    assert_eq!(
        page.matches("<script").count(),
        1 + page.matches("<script type=\"application/json\">").count()
    );
    for word in ["http://", "https://", "@import", " src="] {
        let own = word == "http://";
        let found = page.matches(word).count();
        assert!(found == 0 || (own && found == page.matches("http://www.w3.org/2000/svg").count()), "{word}");
    }
    let table = std::fs::read_to_string(scratch.path().join("tables/tiny-main.csv")).expect("a table");
    assert_eq!(table.lines().count(), 5, "{table}");
    let exchange = std::fs::read_to_string(scratch.path().join("marl-eval.json")).expect("a file");
    let exchange: serde_json::Value = serde_json::from_str(&exchange).expect("JSON");
    let seeds = &exchange["kuhn-poker"]["test"];
    let of_pace = seeds
        .as_object()
        .expect("algorithms")
        .iter()
        .find(|(name, seeds)| name.starts_with("pace-paper") && seeds.get("seed_2").is_some());
    let seed = &of_pace.expect("PACE").1["seed_2"];
    assert_eq!(seed["step_1"]["score"].as_array().expect("a list").len(), 10);
    assert_eq!(seed["absolute_metrics"]["score"].as_array().expect("a list").len(), 10);
}

#[test]
fn the_page_of_a_run_has_all_its_evaluations_and_replays() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let kept = records().join("kept");
    let run = std::fs::read_dir(&kept).expect("runs").map(|entry| entry.expect("readable").path());
    let run = run.into_iter().find(|path| path.display().to_string().contains("overcooked")).expect("a run");
    let output = pace_in(
        &kept,
        &["report", run.to_str().expect("UTF-8"), "--out", scratch.path().to_str().expect("UTF-8")],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(scratch.path().join("report.html")).expect("a page");
    for words in [
        "Other evaluations of the same agent",
        "test-episodes-4-switch-2-drop-0.8",
        "An encounter, step by step",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    assert!(scratch.path().join("figures/test-adaptation.svg").is_file());
    assert!(scratch.path().join("figures/training.svg").is_file());
}

/// The texts of all commands on a page, without their marks.
fn commands_of(page: &str) -> Vec<String> {
    let of_pre = page.split("<pre>").skip(1).filter_map(|rest| rest.split("</pre>").next());
    let bare = |text: &str| text.replace("<span class=\"word\">", "").replace("</span>", "");
    of_pre.map(bare).filter(|text| text.starts_with("pace ")).collect()
}

#[test]
fn every_folder_that_a_report_names_exists() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    assert!(report(scratch.path()).status.success());
    let kept = records().join("kept");
    let run = kept.join("overcooked-pace-paper-s1-a192c309d842");
    let (run, out) = (run.to_str().expect("UTF-8"), scratch.path().join("one"));
    assert!(pace_in(&kept, &["report", run, "--out", out.to_str().expect("UTF-8")]).status.success());
    let mut n_folders = 0;
    for page in ["index.html", "one/report.html"] {
        let page = std::fs::read_to_string(scratch.path().join(page)).expect("a page");
        for command in commands_of(&page) {
            let words: Vec<&str> = command.split(' ').collect();
            let folder = match words[1] {
                "adapt" | "watch" => Some(words[2]),
                "train" => words.iter().position(|word| *word == "--out").map(|place| words[place + 1]),
                _ => None,
            };
            if let Some(folder) = folder {
                assert!(kept.join(folder).is_dir(), "{command}");
                n_folders += 1;
            }
        }
        // The folder of the run itself.
        for name in ["folder", "run"] {
            for fact in page.split(&format!("<dt>{name}</dt>\n<dd>")).skip(1) {
                let folder = fact.split('<').next().expect("a fact");
                assert!(kept.join(folder).is_dir(), "{folder}");
                n_folders += 1;
            }
        }
    }
    assert!(n_folders > 30, "{n_folders}");
}

#[test]
fn a_report_links_to_every_file_beside_it() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    assert!(report(scratch.path()).status.success());
    let run = records().join("kept/overcooked-pace-paper-s1-a192c309d842");
    let (run, out) = (run.to_str().expect("UTF-8"), scratch.path().join("one"));
    assert!(pace_in(&records(), &["report", run, "--out", out.to_str().expect("UTF-8")]).status.success());
    for (folder, name) in [(scratch.path().to_owned(), "index.html"), (out.clone(), "report.html")] {
        let page = std::fs::read_to_string(folder.join(name)).expect("a page");
        let mut linked: Vec<&str> =
            page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        linked.retain(|target| !target.starts_with('#'));
        let mut written = files(&folder);
        written.retain(|(path, _)| path != name && (folder == out || !path.starts_with("one/")));
        for (path, _) in &written {
            assert!(linked.contains(&path.as_str()), "{name} has no link to {path}");
        }
        for target in linked {
            assert!(written.iter().any(|(path, _)| path == target), "{name}: {target} does not exist");
        }
    }
}

/// The paper's numbers come from the authors' program, and so do the rules and keys of the preset `reference`.
#[test]
fn numbers_of_the_paper_stand_next_to_preset_reference_alone() {
    let results = std::fs::read_to_string(root().join("RESULTS.md")).expect("RESULTS.md");
    let is_row = |line: &&str| line.starts_with("| PACE") && line.contains(" -3.93 ± 0.04");
    let rows: Vec<&str> = results.lines().filter(is_row).collect();
    assert!(rows.len() >= 2, "{rows:?}");
    assert!(rows.iter().all(|row| !row.contains("preset ")), "{rows:?}");
    assert!(results.contains("-2.82 (not comparable) |"), "the oracle's number is marked");
    assert!(results.contains("\n*not comparable*: "), "and the mark is explained");
}

#[test]
fn the_committed_results_are_made_from_the_records() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let file = scratch.path().join("RESULTS.md");
    let readme = scratch.path().join("README.md");
    std::fs::copy(root().join("README.md"), &readme).expect("copied");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let output =
        pace_in(&root(), &["report", "results", "--markdown", &text(&file), "--claims", &text(&readme)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (name, made) in [("RESULTS.md", &file), ("README.md", &readme)] {
        let made = std::fs::read_to_string(made).expect("a file");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(root().join(name), &made).expect("written");
        }
        let committed = std::fs::read_to_string(root().join(name)).expect("a file");
        assert!(
            committed == made,
            "{name} is out of date; write it with `pace report results --markdown RESULTS.md --claims README.md`"
        );
    }
    // A page without markers stays unchanged.
    check_error(
        &["report", &text(&root().join("results")), "--claims", &text(&file)],
        2,
        &["--claims", "found no markers"],
    );
}

#[test]
fn an_unreadable_file_gets_one_clear_line_and_does_not_affect_others() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = |name: &str| scratch.path().join(name);
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    check_error(&["report", &text(&folder("nowhere"))], 3, &["nowhere has no runs in it", "manifest.json"]);
    check_error(&["report", &text(scratch.path()), "--experiment", "mian"], 3, &["has no runs in it"]);
    // A copy of some runs, with damage of every kind.
    let kept = records().join("kept");
    let mut runs: Vec<PathBuf> =
        std::fs::read_dir(&kept).expect("runs").map(|entry| entry.expect("readable").path()).collect();
    runs.sort();
    for run in &runs[..4] {
        let to = folder("runs").join(run.file_name().expect("a name"));
        for (name, content) in files(run) {
            let path = to.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, content).expect("written");
        }
    }
    let run = |place: usize| folder("runs").join(runs[place].file_name().expect("a name"));
    std::fs::write(run(0).join("adapt/test.json"), "{\"format_version\": 1, \"game\":").expect("written");
    std::fs::write(run(1).join("adapt/other.json"), "{\"format_version\": 9}").expect("written");
    std::fs::write(run(2).join("config.toml"), "game = \"chess\"\n").expect("written");
    // An evaluation that was made before the run was finished.
    let early = run(3).join("adapt/test.json");
    let mut record: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&early).expect("a record")).expect("JSON");
    record["run"]["steps"] = 1.into();
    std::fs::write(&early, record.to_string()).expect("written");
    let out = folder("report");
    let output = pace_in(scratch.path(), &["report", "runs", "--out", &text(&out)]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{message}");
    let told = message.lines().last().expect("an error");
    assert!(told.starts_with("error: 4 files were skipped; first: runs/"), "{told}");
    let page = std::fs::read_to_string(out.join("index.html")).expect("everything else was made");
    for words in [
        "format_version 9 found, this build reads 1",
        "config.toml",
        "evaluates the agent after 1 of",
        "Skipped (unreadable): ",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    check_error(&["report", &text(&run(3)), "--markdown", "x.md"], 2, &["--markdown", "a folder of runs"]);
    check_error(
        &["report", &text(&folder("runs")), "--experiment", "mian"],
        2,
        &["unknown experiment \"mian\"", "did you mean \"main\"?"],
    );
}

#[test]
fn record_and_watch_play_the_same_encounter() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for game in ["kuhn-poker", "overcooked", "predator-prey"] {
        let folder = scratch.path().join(game);
        let folder = folder.to_str().expect("UTF-8");
        let mut arguments = vec!["train", game, "--steps", "2000", "--out", folder];
        for key in
            ["encounters_per_tuple=1", "epochs=1", "minibatches=2", "warm_up_steps=0", "hidden_width=8"]
        {
            arguments.extend(["--set", key]);
        }
        run(&arguments);
        let path = run(&["watch", folder, "--peer", "1", "--episodes", "2", "--seed", "5", "--record"]);
        assert!(path.trim_end().ends_with("replays/test-1-seed-5.json"), "{path}");
        let text = std::fs::read_to_string(path.trim_end()).expect("a record");
        let record = pace_report::ReplayRecord::from_json(&text).expect("a record that can be read");
        assert!(record.constants.is_some());
        // Reading and writing gives the same text, and the same encounter the same file.
        assert_eq!(record.to_json().expect("plain data"), text);
        run(&["watch", folder, "--peer", "1", "--episodes", "2", "--seed", "5", "--record"]);
        assert_eq!(std::fs::read_to_string(path.trim_end()).expect("a record"), text);
        let shown = run(&["watch", folder, "--peer", "1", "--episodes", "2", "--seed", "5"]);
        for (number, episode) in record.episodes.iter().enumerate() {
            let n_steps = episode.moments.len() - 1;
            assert!(
                shown.lines().any(|line| line.contains(&format!(" {}: ", number + 1))
                    && line.contains(&format!(" after {n_steps} step"))
                    && line.contains(&format!("return {:+.3}", episode.task_return))),
                "{game}: {n_steps} steps, return {}: {shown}",
                episode.task_return
            );
            assert!(episode.moments.iter().all(|moment| moment.view.is_object()));
            // What the agent sees is written down where it is not everything.
            assert!(episode.moments.iter().all(|moment| moment.seen.as_ref() != Some(&moment.view)));
            assert!(episode.moments.iter().any(|moment| moment.seen.is_some()));
            let last = episode.moments.last().expect("an end");
            assert!(last.action.is_none() && episode.moments[0].action.is_some());
        }
    }
    check_error(&["watch", "overcooked", "--record"], 2, &["--record", "a run folder"]);
}
