//! Whatever stands behind `/replay#`, it is played again or refused.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pace_play::{AgentCatalog, replay};

static OFFERS: OnceLock<AgentCatalog> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    if let Ok(link) = std::str::from_utf8(bytes) {
        let offers = OFFERS.get_or_init(|| AgentCatalog::scripted().expect("scripted egos"));
        let _ = replay::replay(offers, link);
    }
});
