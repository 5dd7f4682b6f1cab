//! Pages and figures are well-formed: matching tags, quoted attributes, unique ids, and drawings within their frames.

use std::collections::BTreeSet;

use pace_report::svg::ChartFrame;
use pace_report::{figures, page};

use crate::sample::{hostile, kuhn, switched};

#[derive(Debug)]
pub struct Tag {
    pub name: String,
    pub attributes: Vec<(String, String)>,
    pub is_closing: bool,
    pub is_whole: bool,
}

/// Every tag of a text, by the rules of XML; HTML that follows them is valid too.
pub fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = text.strip_prefix("<!DOCTYPE html>").unwrap_or(text);
    let mut is_script = false;
    // The text of a script is not markup.
    while let Some(start) = if is_script { rest.find("</script") } else { rest.find('<') } {
        let inside = &rest[start + 1..];
        let end = inside.find('>').expect("a tag ends");
        let (tag, after) = (&inside[..end], &inside[end + 1..]);
        rest = after;
        let is_closing = tag.starts_with('/');
        let is_whole = tag.ends_with('/');
        let tag = tag.trim_matches('/');
        let (name, mut attributes_text) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric()), "tag {tag}");
        is_script = name == "script" && !is_closing;
        let mut attributes = Vec::new();
        while !attributes_text.trim().is_empty() {
            let (key, value) = attributes_text.trim_start().split_once("=\"").expect("a quoted attribute");
            let (value, after) = value.split_once('"').expect("a closed quote");
            attributes.push((key.to_owned(), value.to_owned()));
            attributes_text = after;
        }
        tags.push(Tag { name: name.to_owned(), attributes, is_closing, is_whole });
    }
    tags
}

#[track_caller]
fn check(text: &str) {
    let mut open: Vec<String> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut referenced = BTreeSet::new();
    for tag in tags(text) {
        for (name, value) in &tag.attributes {
            match name.as_str() {
                "id" => assert!(ids.insert(value.clone()), "duplicate id {value}"),
                "aria-labelledby" => referenced.extend(value.split(' ').map(str::to_owned)),
                _ => (),
            }
            assert!(!value.contains("NaN") && !value.contains("inf"), "{tag:?}");
        }
        if tag.is_closing {
            assert_eq!(open.pop(), Some(tag.name));
        } else if !tag.is_whole {
            open.push(tag.name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(ids, referenced);
    // Every ampersand starts an entity.
    for after in text.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|entity| after.starts_with(entity)));
    }
}

#[test]
fn pages_and_figures_are_well_formed() {
    for (adapt, train) in [kuhn(), hostile()] {
        check(&page::render(&adapt, Some(&train)));
        check(&page::render(&adapt, None));
        check(&figures::adaptation::figure(&adapt));
        check(&figures::training::figure(&train).expect("there are curves"));
        figures::identification::figure(&adapt).iter().for_each(|figure| check(figure));
        figures::keypoint::figure(&adapt).iter().for_each(|figure| check(figure));
    }
}

#[test]
fn the_replacement_of_peers_is_shown_in_figures_and_text() {
    let record = switched();
    let page = page::render(&record, None);
    check(&page);
    for words in [
        "peers replaced",
        "When the peers change",
        "detector drop:0.8 (clearing keeps last): finds the switch in 75 % of the encounters, 1.4 episodes after it",
        "0 in 17 %, 1 in 50 %, 3 in 33 %",
        "decisions since the start of the encounter",
        "horizon_steps = 50",
        "the last 3 episodes",
    ] {
        assert!(page.contains(words), "no {words:?}");
    }
    // The curve ends where half of the encounters have ended.
    let chart = figures::identification::by_decision(&record).expect("the record has identification");
    assert_eq!(chart.series[0].points.len(), 3);
    check(&chart.document(ChartFrame { width: 560.0, height: 360.0, heading: true, names: true }));
    // Single episodes have their own figure only if blocks are longer.
    assert!(figures::adaptation::by_episode(&record).is_none());
    let (mut kuhn, _) = kuhn();
    kuhn.by_episode = (1..=100)
        .map(|episode| pace_report::BlockRecord { first: episode, last: episode, ..kuhn.blocks[0].clone() })
        .collect();
    assert_eq!(
        figures::adaptation::by_episode(&kuhn).expect("finer than blocks").series[0].points.len(),
        100
    );
    check(&page::render(&kuhn, None));
}

#[test]
fn a_record_without_blocks_peers_and_curves_has_a_page() {
    let (mut adapt, mut train) = hostile();
    adapt.blocks.clear();
    adapt.peers.clear();
    adapt.references.clear();
    train.curves.clear();
    check(&page::render(&adapt, Some(&train)));
    assert!(figures::training::figure(&train).is_none());
    assert!(figures::identification::figure(&adapt).is_none());
    // Records in memory may contain NaN, but drawings do not.
    let (mut adapt, _) = kuhn();
    adapt.blocks[2].mean = f64::NAN;
    adapt.peers[2].mean = f64::NAN;
    adapt.peers[2].blocks[0].mean = f64::INFINITY;
    check(&page::render(&adapt, None));
}

#[test]
fn names_at_the_ends_of_lines_do_not_overlap() {
    let (mut adapt, _) = kuhn();
    // The worst case: all reference agents have the same score.
    for reference in adapt.references.values_mut() {
        reference.blocks.clear();
        reference.mean = 0.056;
    }
    for (width, height) in [(832.0, 430.0), (344.0, 380.0)] {
        let frame = ChartFrame { width, height, heading: false, names: true };
        let svg = figures::adaptation::chart(&adapt).document(frame);
        let mut heights: Vec<f64> = tags(&svg)
            .into_iter()
            .filter(|tag| tag.name == "text" && !tag.is_closing)
            .filter(|tag| tag.attributes[0].1 != "quiet")
            .map(|tag| tag.attributes.iter().find(|(name, _)| name == "y").unwrap().1.parse().unwrap())
            .collect();
        heights.sort_by(f64::total_cmp);
        assert_eq!(heights.len(), 5);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 14.9), "{heights:?}");
        assert!(heights[0] >= 0.0 && heights[4] <= height, "{heights:?}");
    }
}

#[test]
fn reference_agents_are_not_called_bounds() {
    let (adapt, train) = kuhn();
    let page = page::render(&adapt, Some(&train));
    assert!(page.contains("their scores are no limits for a learned agent"));
    assert!(page.contains("bayes knows the family of its peers and infers the rest from their actions"));
    for claim in ["as well as", "bound"] {
        assert!(!page.contains(claim), "{claim}");
    }
}

#[test]
fn lines_on_another_scale_are_listed() {
    let (one, _) = kuhn();
    let description = |change: f64| {
        let mut other = one.clone();
        other.references.values_mut().for_each(|reference| reference.mean += change);
        let groups = [("PACE".to_owned(), vec![&one]), ("PACE, preset reference".to_owned(), vec![&other])];
        figures::comparison::adaptation("", &groups).expect("there are blocks").description
    };
    let expected =
        " not comparable with the other rows: PACE, preset reference (oracle 1.077, static 1.021).";
    assert!(description(1.0).ends_with(expected), "{}", description(1.0));
    assert!(!description(0.001).contains("another scale"), "{}", description(0.001));
}

#[test]
fn figures_have_a_text_for_readers_who_cannot_see_them() {
    let (adapt, _) = kuhn();
    let svg = figures::adaptation::figure(&adapt);
    assert!(svg.contains("role=\"img\""));
    assert!(svg.contains("PACE goes from 0.006 in hands 1–10 to 0.056 in hands 91–100."));
    assert!(svg.contains("prefers-color-scheme:dark"));
}
