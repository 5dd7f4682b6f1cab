//! Secrets that name sessions, and chance that nobody can foresee. Everything else in the project draws from seeds.

use crate::session::SEED_LIMIT;

/// A fresh token: 128 bits of the system's randomness in hexadecimal.
pub(crate) fn fresh_token() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A fresh secret, to sign links with.
pub(crate) fn fresh_secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

/// The key of a participant's link. Comparing two of them takes the same time wherever they differ.
pub(crate) fn link_key(secret: &[u8; 32], participant: &str) -> blake3::Hash {
    blake3::keyed_hash(secret, participant.as_bytes())
}

/// A fresh seed for an encounter.
pub(crate) fn fresh_seed() -> u64 {
    getrandom::u64().expect("the system has randomness") % SEED_LIMIT
}

/// What is kept of a token: whoever reads the database cannot take over a session.
pub(crate) fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex()[..32].to_owned()
}

/// Whether text has the form of a token.
pub(crate) fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
