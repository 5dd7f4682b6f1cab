//! Fuzz target: an arbitrary replay link is replayed or refused, without a panic.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use pace_play::{AgentCatalog, replay};

static CATALOG: OnceLock<AgentCatalog> = OnceLock::new();

fuzz_target!(|bytes: &[u8]| {
    if let Ok(link) = std::str::from_utf8(bytes) {
        let catalog = CATALOG.get_or_init(|| AgentCatalog::scripted().expect("scripted egos"));
        let _ = replay::replay(catalog, link);
    }
});
