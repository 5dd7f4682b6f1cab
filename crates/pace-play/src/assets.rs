//! The page, inside the binary: nothing is read from disk and nothing from other hosts.

/// One file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its path below `/assets/`.
    pub path: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub content: &'static [u8],
}

macro_rules! assets {
    ($($path:literal => $media_type:expr),* $(,)?) => {
        &[$(Asset { path: $path, media_type: $media_type, content: include_bytes!(concat!("../assets/", $path)) }),*]
    };
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Every file of the page.
pub const ASSETS: &[Asset] = assets! {
    "index.html" => HTML,
    "style.css" => CSS,
    "icon.svg" => SVG,
    "main.js" => JS,
    "elements.js" => JS,
    "connection.js" => JS,
    "lobby.js" => JS,
    "table.js" => JS,
    "mind.js" => JS,
    "summary.js" => JS,
    "replay.js" => JS,
    "study.js" => JS,
    "games/index.js" => JS,
    "games/kuhn-poker.js" => JS,
    "games/overcooked.js" => JS,
    "games/predator-prey.js" => JS,
    "games/text.js" => JS,
};

/// The file with this path.
pub fn find_asset(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{ASSETS, find_asset};

    #[test]
    fn the_list_is_the_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut found = BTreeSet::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a readable folder") {
                let path = entry.expect("a readable entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name =
                        path.strip_prefix(&root).expect("below the root").to_string_lossy().into_owned();
                    found.insert(name);
                }
            }
        }
        let listed: BTreeSet<String> = ASSETS.iter().map(|asset| asset.path.to_owned()).collect();
        assert_eq!(found, listed);
    }

    #[test]
    fn every_game_has_a_drawing() {
        for entry in pace_games::GAMES {
            assert!(find_asset(&format!("games/{}.js", entry.id)).is_some(), "{}", entry.id);
        }
    }

    #[test]
    fn the_page_names_no_other_host_and_has_nothing_inline() {
        for asset in ASSETS {
            let text = String::from_utf8_lossy(asset.content);
            for line in text.lines().filter(|line| line.contains("http://") || line.contains("https://")) {
                assert!(line.contains("http://www.w3.org/"), "{}: {line}", asset.path);
            }
            for inline in ["onclick=", "style=\"", "<script>", "innerHTML", "eval("] {
                assert!(!text.contains(inline), "{} has {inline}", asset.path);
            }
        }
    }
}
