//! Replay links. A link contains the settings and actions of a session, so that the session can be played again.
//!
//! Nothing is stored for a replay. A link works as long as its agent is in the catalog.

use pace_games::Action;

use crate::catalog::AgentCatalog;
use crate::error::PlayError;
use crate::session::{Detail, SEED_LIMIT, Session, SessionConfig, SessionFrame, Summary};

/// A session that was played again from its link.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionReplay {
    /// The settings of the session.
    pub config: SessionConfig,
    /// All frames, with the full state.
    pub frames: Vec<SessionFrame>,
    /// The results.
    pub summary: Summary,
    /// Whether the last episode was finished.
    pub is_over: bool,
}

/// Version of the link format, the first part of every link. A link of version 1 may show wrong actions: its program sampled the
/// agent's actions differently.
const LINK_VERSION: &str = "2";
/// Maximum number of actions in a link; no encounter has more.
const MAX_ACTIONS: usize = 16_384;

/// The replay link of a session: its settings and actions, separated by `~`, which no id contains.
pub fn link(session: &Session) -> String {
    let agent = session.agent();
    link_from_parts(session.config(), &agent.fingerprint, session.actions(), agent.game.spec().n_actions())
}

/// The replay link of a stored session.
pub(crate) fn link_from_parts(
    config: &SessionConfig,
    fingerprint: &str,
    actions: &[Action],
    n_actions: usize,
) -> String {
    let SessionConfig { agent, slot, tuple, n_episodes, seed } = config;
    let (fingerprint, n, actions) = (short(fingerprint), actions.len(), packed(actions, n_actions));
    format!("{LINK_VERSION}~{agent}~{fingerprint}~{slot}~{tuple}~{n_episodes}~{seed:x}~{n}~{actions}")
}

/// Plays the session of a link again.
pub fn replay(catalog: &AgentCatalog, link: &str) -> Result<SessionReplay, PlayError> {
    let bad = |reason: &'static str| PlayError::BadLink { reason };
    let parts: Vec<&str> = link.split('~').collect();
    if parts[0] == "1" {
        return Err(bad("it was made by an older version of pace, which played it differently"));
    }
    let [LINK_VERSION, agent, fingerprint, slot, tuple, n_episodes, seed, n_actions, actions] = parts[..]
    else {
        return Err(bad("expected nine parts separated by `~`"));
    };
    let number = |text: &str| text.parse::<usize>().map_err(|_| bad("a field of the link is not a number"));
    let agent = catalog.find(agent)?;
    if short(&agent.fingerprint) != fingerprint {
        return Err(PlayError::AgentChanged { agent: agent.id.clone() });
    }
    let seed = u64::from_str_radix(seed, 16).ok().filter(|seed| *seed < SEED_LIMIT);
    let config = SessionConfig {
        agent: agent.id.clone(),
        slot: number(slot)?,
        tuple: number(tuple)?,
        n_episodes: number(n_episodes)?,
        seed: seed.ok_or_else(|| bad("the seed is invalid"))?,
    };
    let n_actions = number(n_actions)?;
    if n_actions > MAX_ACTIONS {
        return Err(bad("it is too long"));
    }
    let actions = unpacked(actions, n_actions, agent.game.spec().n_actions())
        .ok_or_else(|| bad("its actions cannot be read"))?;
    let (mut session, mut frames) = Session::begin(agent, config, Detail::Everything)?;
    for (index, action) in actions.into_iter().enumerate() {
        frames.extend(session.act(index, action)?.frames);
    }
    let summary = session.summary()?;
    Ok(SessionReplay { config: session.config().clone(), frames, summary, is_over: session.is_over() })
}

/// The part of a fingerprint that a link contains.
fn short(fingerprint: &str) -> String {
    fingerprint.chars().filter(char::is_ascii_alphanumeric).take(12).collect()
}

/// The characters of URL-safe Base64; each stands for six bits.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Number of actions per character of a link.
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
    use crate::session::tests::{play_out, session_config};
    use crate::session::{Detail, Session};

    #[test]
    fn link_restores_the_session() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        for agent in catalog.all().iter().filter(|agent| !agent.id.contains("bayes-")) {
            let (mut session, _) =
                Session::begin(agent, session_config(agent, 1), Detail::Seen).expect("a session");
            play_out(&mut session, 9);
            let link = link(&session);
            assert!(link.len() < 400 && link.is_ascii(), "{link}");
            let replay = replay(&catalog, &link).expect("it can be read");
            assert!(replay.is_over);
            assert_eq!(replay.summary, session.summary().expect("a summary"));
            let last = replay.frames.last().expect("frames");
            assert_eq!(last.scene, session.last_frame().scene);
            assert!(replay.frames.iter().all(|frame| frame.everything.is_some()));
        }
    }

    #[test]
    fn invalid_links_are_refused_with_a_reason() {
        let catalog = AgentCatalog::scripted().expect("scripted egos");
        let agent = catalog.find("kuhn-poker.nash").expect("a scripted ego");
        let (session, _) = Session::begin(agent, session_config(agent, 1), Detail::Seen).expect("a session");
        let good = link(&session);
        assert!(replay(&catalog, &good).is_ok());
        let refused = |link: &str| replay(&catalog, link).expect_err(link);
        assert!(matches!(refused(""), PlayError::BadLink { .. }));
        assert!(matches!(refused(&good.replacen('2', "3", 1)), PlayError::BadLink { .. }));
        assert!(refused(&good.replacen('2', "1", 1)).to_string().contains("older version"));
        assert!(matches!(refused(&good.replace("nash", "nosh")), PlayError::UnknownAgent { .. }));
        assert!(matches!(refused(&good.replace("scripted1", "scripted2")), PlayError::AgentChanged { .. }));
        assert!(matches!(refused(&format!("{good}A")), PlayError::BadLink { .. }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn packed_actions_round_trip(n_actions in 1usize..20, raw in vec(any::<u8>(), 0..50)) {
            let actions: Vec<u8> = raw.iter().map(|value| value % n_actions as u8).collect();
            let text = packed(&actions, n_actions);
            prop_assert_eq!(unpacked(&text, actions.len(), n_actions), Some(actions));
        }

        #[test]
        fn arbitrary_text_is_refused(link in any::<String>()) {
            let catalog = AgentCatalog::default();
            prop_assert_eq!(replay(&catalog, &link).is_err(), true);
        }
    }
}
