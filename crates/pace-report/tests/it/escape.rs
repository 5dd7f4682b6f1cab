//! No text of a record becomes a tag, an attribute or a control sequence of a terminal.

use pace_report::{figures, page, table};

use crate::sample::{hostile, kuhn};
use crate::well_formed::tags;

#[test]
fn texts_of_records_are_escaped() {
    let (adapt, train) = hostile();
    let mut outputs = vec![
        page::render(&adapt, Some(&train)),
        page::render(&adapt, None),
        figures::adaptation::figure(&adapt),
        figures::training::figure(&train).expect("there is a curve"),
    ];
    let (mut adapt, train) = kuhn();
    adapt.peers[0].description = crate::sample::HOSTILE.to_owned();
    outputs.push(page::render(&adapt, Some(&train)));
    for output in &outputs {
        assert!(!output.contains("<script"), "{output}");
        assert!(output.contains("&lt;script&gt;"));
        assert!(!output.contains('\u{1b}'));
        for tag in tags(output) {
            assert!(!tag.attributes.iter().any(|(name, _)| name.starts_with("on")), "{tag:?}");
        }
    }
}

#[test]
fn tables_contain_no_control_sequences() {
    let (adapt, _) = hostile();
    for text in [table::headline(&adapt), table::blocks(&adapt), table::peers(&adapt)] {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn a_page_makes_no_network_requests() {
    let (adapt, train) = kuhn();
    let page = page::render(&adapt, Some(&train));
    assert!(page.contains("default-src &#39;none&#39;"));
    for word in ["http://", "https://", "url(", "@import", "src=", "href="] {
        assert!(!page.contains(word), "{word}");
    }
}
