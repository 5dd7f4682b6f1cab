//! Links that hold a whole encounter: what was booked and what the person did. The encounter is played again from them, so that
//! nothing has to be kept for a replay, and a link works for as long as its agent is on offer.

use pace_games::Action;

use crate::catalog::AgentCatalog;
use crate::error::PlayError;
use crate::session::{Detail, SEED_LIMIT, Session, SessionConfig, SessionFrame, Summary};

/// An encounter, played again.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Replay {
    /// What was booked.
    pub booking: SessionConfig,
    /// Every moment of it.
    pub frames: Vec<SessionFrame>,
    /// What came of it.
    pub summary: Summary,
    /// Whether it was played to its end.
    pub is_over: bool,
}

/// The first part of every link: the version of how a session is played again. Version 2 samples the agent's actions as
/// training does; a link of version 1 could show other actions than those that were played.
const MARK: &str = "2";
/// No encounter has more actions than this.
const MOST_ACTIONS: usize = 16_384;

/// The link to an encounter: the parts of the booking and the actions, with tildes between them, which no id has.
pub fn link(session: &Session) -> String {
    let offer = session.offer();
    link_of(session.booking(), &offer.fingerprint, session.actions(), offer.game.spec().n_actions())
}

/// The same from its parts, for an encounter that nobody is at.
pub(crate) fn link_of(
    booking: &SessionConfig,
    fingerprint: &str,
    actions: &[Action],
    n_actions: usize,
) -> String {
    let SessionConfig { offer, slot, tuple, n_episodes, seed } = booking;
    let (fingerprint, n, actions) = (short(fingerprint), actions.len(), packed(actions, n_actions));
    format!("{MARK}~{offer}~{fingerprint}~{slot}~{tuple}~{n_episodes}~{seed:x}~{n}~{actions}")
}

/// Plays the encounter of a link again.
pub fn replay(offers: &AgentCatalog, link: &str) -> Result<Replay, PlayError> {
    let bad = |reason: &'static str| PlayError::BadLink { reason };
    let parts: Vec<&str> = link.split('~').collect();
    if parts[0] == "1" {
        return Err(bad("it was made by an older version of pace, which played it differently"));
    }
    let [MARK, offer, fingerprint, slot, tuple, n_episodes, seed, n_actions, actions] = parts[..] else {
        return Err(bad("expected nine parts separated by `~`"));
    };
    let number = |text: &str| text.parse::<usize>().map_err(|_| bad("a field of the link is not a number"));
    let offer = offers.find(offer)?;
    if short(&offer.fingerprint) != fingerprint {
        return Err(PlayError::OtherAgent { offer: offer.id.clone() });
    }
    let seed = u64::from_str_radix(seed, 16).ok().filter(|seed| *seed < SEED_LIMIT);
    let booking = SessionConfig {
        offer: offer.id.clone(),
        slot: number(slot)?,
        tuple: number(tuple)?,
        n_episodes: number(n_episodes)?,
        seed: seed.ok_or_else(|| bad("the seed is invalid"))?,
    };
    let n_actions = number(n_actions)?;
    if n_actions > MOST_ACTIONS {
        return Err(bad("it is too long"));
    }
    let actions = unpacked(actions, n_actions, offer.game.spec().n_actions())
        .ok_or_else(|| bad("its actions cannot be read"))?;
    let (mut session, mut frames) = Session::begin(offer, booking, Detail::Everything)?;
    for (index, action) in actions.into_iter().enumerate() {
        frames.extend(session.act(index, action)?.frames);
    }
    let summary = session.summary()?;
    Ok(Replay { booking: session.booking().clone(), frames, summary, is_over: session.is_over() })
}

/// A fingerprint short enough for a link.
fn short(fingerprint: &str) -> String {
    fingerprint.chars().filter(char::is_ascii_alphanumeric).take(12).collect()
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// How many actions go into one character of a link.
fn per_digit(n_actions: usize) -> usize {
    match n_actions {
        ..=2 => 6,
        3..=4 => 3,
        5..=8 => 2,
        _ => 1,
    }
}

fn packed(actions: &[Action], n_actions: usize) -> String {
    let per_digit = per_digit(n_actions);
    let bits = 6 / per_digit;
    let digit = |actions: &[Action]| {
        let value = actions.iter().rev().fold(0, |value, action| value << bits | usize::from(*action));
        char::from(DIGITS[value])
    };
    actions.chunks(per_digit).map(digit).collect()
}

fn unpacked(text: &str, n: usize, n_actions: usize) -> Option<Vec<Action>> {
    let per_digit = per_digit(n_actions);
    let bits = 6 / per_digit;
    if text.len() != n.div_ceil(per_digit) {
        return None;
    }
    let mut actions = Vec::with_capacity(n);
    for character in text.bytes() {
        let mut value = DIGITS.iter().position(|digit| *digit == character)?;
        for _ in 0..per_digit {
            actions.push((value & ((1 << bits) - 1)) as Action);
            value >>= bits;
        }
    }
    actions.truncate(n);
    Some(actions)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use proptest::{collection::vec, prelude::ProptestConfig};

    use super::{link, packed, replay, unpacked};
    use crate::catalog::AgentCatalog;
    use crate::error::PlayError;
    use crate::session::tests::{booking, play_out};
    use crate::session::{Detail, Session};

    #[test]
    fn a_link_brings_the_whole_encounter_back() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        for offer in offers.all().iter().filter(|offer| !offer.id.contains("bayes-")) {
            let (mut session, _) = Session::begin(offer, booking(offer, 1), Detail::Seen).expect("a session");
            play_out(&mut session, 9);
            let link = link(&session);
            assert!(link.len() < 400 && link.is_ascii(), "{link}");
            let replay = replay(&offers, &link).expect("it can be read");
            assert!(replay.is_over);
            assert_eq!(replay.summary, session.summary().expect("a summary"));
            let last = replay.frames.last().expect("frames");
            assert_eq!(last.scene, session.last_frame().scene);
            assert!(replay.frames.iter().all(|frame| frame.everything.is_some()));
        }
    }

    #[test]
    fn damaged_links_are_refused_in_words() {
        let offers = AgentCatalog::scripted().expect("scripted egos");
        let offer = offers.find("kuhn-poker.nash").expect("it is there");
        let (session, _) = Session::begin(offer, booking(offer, 1), Detail::Seen).expect("a session");
        let good = link(&session);
        assert!(replay(&offers, &good).is_ok());
        let refused = |link: &str| replay(&offers, link).expect_err(link);
        assert!(matches!(refused(""), PlayError::BadLink { .. }));
        assert!(matches!(refused(&good.replacen('2', "3", 1)), PlayError::BadLink { .. }));
        assert!(refused(&good.replacen('2', "1", 1)).to_string().contains("older version"));
        assert!(matches!(refused(&good.replace("nash", "nosh")), PlayError::NoSuchOffer { .. }));
        assert!(matches!(refused(&good.replace("scripted1", "scripted2")), PlayError::OtherAgent { .. }));
        assert!(matches!(refused(&format!("{good}A")), PlayError::BadLink { .. }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn actions_survive_a_link(n_actions in 1usize..20, raw in vec(any::<u8>(), 0..50)) {
            let actions: Vec<u8> = raw.iter().map(|value| value % n_actions as u8).collect();
            let text = packed(&actions, n_actions);
            prop_assert_eq!(unpacked(&text, actions.len(), n_actions), Some(actions));
        }

        #[test]
        fn no_link_is_too_strange(link in any::<String>()) {
            let offers = AgentCatalog::default();
            prop_assert_eq!(replay(&offers, &link).is_err(), true);
        }
    }
}
