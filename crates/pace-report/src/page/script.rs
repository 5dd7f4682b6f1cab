//! The script of a page: JavaScript modules combined into one text, and its hash for the content security policy.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Combines several modules. Their imports are removed, and exports become plain declarations. Names must be unique.
pub(super) fn bundle(modules: &[&str]) -> String {
    modules.iter().map(|module| plain(module)).collect::<Vec<_>>().join("\n")
}

/// Converts a module to an expression with its own scope, whose value is an object with the module's exports.
pub(super) fn enclosed(module: &str) -> String {
    let name = |line: &str| {
        let (_, rest) = line.strip_prefix("export ")?.split_once(' ')?;
        Some(rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?.to_owned())
    };
    let names: Vec<String> = module.lines().filter_map(name).collect();
    format!("(() => {{\n{}\nreturn {{ {} }};\n}})()", plain(module), names.join(", "))
}

/// The text of a module without imports, comment lines and the keyword `export`.
fn plain(module: &str) -> String {
    let lines =
        module.lines().filter(|line| !line.starts_with("import ") && !line.trim_start().starts_with("//"));
    lines.map(|line| line.strip_prefix("export ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The hash of a script in the format of a content security policy.
pub(super) fn hash(script: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(script)))
}

#[cfg(test)]
mod tests {
    use super::{bundle, enclosed, hash};

    #[test]
    fn hash_has_the_format_of_content_security_policies() {
        assert_eq!(hash(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn modules_are_combined_into_one_text() {
        let pen = "// A pen.\nexport function pen() {}\n";
        let page = "import { pen } from \"./pen.js\";\n\npen();\n";
        assert_eq!(bundle(&[pen, page]), "function pen() {}\n\npen();");
        let whole = enclosed("const own = 1;\nexport const plane = own;\nexport function draw(pen) {}");
        let expected = "(() => {\nconst own = 1;\nconst plane = own;\nfunction draw(pen) {}\nreturn { plane, draw };\n})()";
        assert_eq!(whole, expected);
    }
}
