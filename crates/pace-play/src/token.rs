//! Unpredictable tokens, secrets and seeds from the system's random numbers. Everything else in the project uses seeded streams.

use crate::session::SEED_LIMIT;

/// A new token: 128 random bits in hexadecimal.
pub(crate) fn fresh_token() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system provides random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A new secret for signing links.
pub(crate) fn fresh_secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system provides random numbers");
    bytes
}

/// The key of a participant's link. Two keys are compared in constant time.
pub(crate) fn link_key(secret: &[u8; 32], participant: &str) -> blake3::Hash {
    blake3::keyed_hash(secret, participant.as_bytes())
}

/// A new seed of a session.
pub(crate) fn fresh_seed() -> u64 {
    getrandom::u64().expect("the system provides random numbers") % SEED_LIMIT
}

/// The hash of a token. Only the hash is stored, so that a reader of the database cannot take over a session.
pub(crate) fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex()[..32].to_owned()
}

/// Whether a text has the format of a token.
pub(crate) fn is_token(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
