//! The scripts of a page: modules put together into one text, and the hash by which the page allows that text alone.

/// Several modules as one: imports among them are dropped, exports become plain declarations. Names must not collide.
pub(super) fn bundle(modules: &[&str]) -> String {
    modules.iter().map(|module| plain(module)).collect::<Vec<_>>().join("\n")
}

/// A module as an expression of its own scope, whose value has the module's exports.
pub(super) fn enclosed(module: &str) -> String {
    let name = |line: &str| {
        let (_, rest) = line.strip_prefix("export ")?.split_once(' ')?;
        Some(rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?.to_owned())
    };
    let names: Vec<String> = module.lines().filter_map(name).collect();
    format!("(() => {{\n{}\nreturn {{ {} }};\n}})()", plain(module), names.join(", "))
}

fn plain(module: &str) -> String {
    let lines =
        module.lines().filter(|line| !line.starts_with("import ") && !line.trim_start().starts_with("//"));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The hash of a script as a content security policy names it.
pub(super) fn hash(script: &str) -> String {
    format!("sha256-{}", base64(&sha256(script.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 63) as usize] as char;
            text.push(if place <= chunk.len() { digit } else { '=' });
        }
    }
    text
}

/// SHA-256 (FIPS 180-4). Policies know no other family of hashes, and this is the one place that needs it.
fn sha256(message: &[u8]) -> [u8; 32] {
    // The first 32 bits of the fractional parts of the cube and square roots of the first primes.
    let primes: Vec<u32> = (2u32..).filter(|n| (2..*n).all(|divisor| n % divisor != 0)).take(64).collect();
    let fraction = |root: f64| ((root - root.floor()) * 4_294_967_296.0) as u32;
    let rounds: Vec<u32> = primes.iter().map(|prime| fraction(f64::from(*prime).cbrt())).collect();
    let mut state: Vec<u32> = primes[..8].iter().map(|prime| fraction(f64::from(*prime).sqrt())).collect();

    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|bytes| u32::from_be_bytes(bytes.try_into().expect("four bytes")))
            .collect();
        for place in 16..64 {
            let (one, other) = (words[place - 15], words[place - 2]);
            let small = one.rotate_right(7) ^ one.rotate_right(18) ^ one >> 3;
            let large = other.rotate_right(17) ^ other.rotate_right(19) ^ other >> 10;
            words.push(
                words[place - 16].wrapping_add(small).wrapping_add(words[place - 7]).wrapping_add(large),
            );
        }
        let mut turned = state.clone();
        for (word, round) in words.iter().zip(&rounds) {
            let (a, e) = (turned[0], turned[4]);
            let choice = e & turned[5] ^ !e & turned[6];
            let sum = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let first =
                turned[7].wrapping_add(sum).wrapping_add(choice).wrapping_add(*round).wrapping_add(*word);
            let majority = a & turned[1] ^ a & turned[2] ^ turned[1] & turned[2];
            let second = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(majority);
            turned.rotate_right(1);
            turned[0] = first.wrapping_add(second);
            turned[4] = turned[4].wrapping_add(first);
        }
        state.iter_mut().zip(turned).for_each(|(kept, more)| *kept = kept.wrapping_add(more));
    }
    let mut digest = [0; 32];
    digest
        .chunks_exact_mut(4)
        .zip(state)
        .for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    digest
}

#[cfg(test)]
mod tests {
    use super::{base64, bundle, enclosed, hash, sha256};

    fn hex(message: &str) -> String {
        sha256(message.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hashes_from_the_standard() {
        assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        // Two blocks.
        assert_eq!(
            hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        );
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn base64_from_the_standard() {
        let cases = [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in cases {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn modules_become_one_text() {
        let pen = "// A pen.\nexport function pen() {}\n";
        let page = "import { pen } from \"./pen.js\";\n\npen();\n";
        assert_eq!(bundle(&[pen, page]), "function pen() {}\n\npen();");
        let whole = enclosed("const own = 1;\nexport const plane = own;\nexport function draw(pen) {}");
        let expected = "(() => {\nconst own = 1;\nconst plane = own;\nfunction draw(pen) {}\nreturn { plane, draw };\n})()";
        assert_eq!(whole, expected);
    }
}
