//! Tables, figures and a page of the committed record are equal to golden files. `UPDATE_GOLDEN=1` rewrites them.

use pace_report::{figures, page, table};

use crate::sample::{golden_path, kuhn, read, switched};

#[track_caller]
fn check(name: &str, found: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden_path(name), found).expect("the golden file can be written");
    }
    let golden = read(name);
    for (number, (found, golden)) in found.lines().zip(golden.lines()).enumerate() {
        assert_eq!(found, golden, "{name} line {}; UPDATE_GOLDEN=1 rewrites it", number + 1);
    }
    assert_eq!(found, golden, "{name}");
}

#[test]
fn tables() {
    let (adapt, _) = kuhn();
    let text = [table::headline(&adapt), table::blocks(&adapt), table::peers(&adapt)].join("\n");
    check("kuhn.tables.txt", &text);
}

#[test]
fn adaptation_figure() {
    check("kuhn.adaptation.svg", &figures::adaptation::figure(&kuhn().0));
}

#[test]
fn training_figure() {
    check("kuhn.training.svg", &figures::training::figure(&kuhn().1).expect("there are curves"));
}

#[test]
fn whole_page() {
    let (adapt, train) = kuhn();
    check("kuhn.page.html", &page::render(&adapt, Some(&train)));
}

#[test]
fn tables_and_figure_with_a_replacement_of_peers() {
    let record = switched();
    let text = [
        table::headline(&record),
        table::blocks(&record),
        table::diagnostics(&record),
        table::identification(&record),
    ];
    check("switch.tables.txt", &text.join("\n"));
    check("switch.adaptation.svg", &figures::adaptation::figure(&record));
}
