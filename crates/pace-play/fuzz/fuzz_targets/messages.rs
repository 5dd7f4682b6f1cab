//! Fuzz target: the parser accepts or refuses arbitrary text, without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pace_play::wire::ClientMessage;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = ClientMessage::parse(text);
    }
});
