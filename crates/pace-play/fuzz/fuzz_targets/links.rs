//! Whatever stands behind `/replay#`, it is played again or refused.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pace_play::{Offers, replay};

static OFFERS: OnceLock<Offers> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    if let Ok(link) = std::str::from_utf8(bytes) {
        let offers = OFFERS.get_or_init(|| Offers::scripted().expect("scripted egos"));
        let _ = replay::replay(offers, link);
    }
});
