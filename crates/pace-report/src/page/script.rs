//! The scripts of a page: modules put together into one text, and the hash by which the page allows that text alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

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
    format!("sha256-{}", STANDARD.encode(Sha256::digest(script)))
}

#[cfg(test)]
mod tests {
    use super::{bundle, enclosed, hash};

    #[test]
    fn hash_is_written_as_content_security_policies_write_it() {
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
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
