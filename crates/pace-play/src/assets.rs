//! The files of the page, compiled into the binary. Nothing is loaded from disk or from other hosts.
//!
//! The modules that reports share come from `pace-report`, the drawing of a game from the game's folder.

use std::sync::LazyLock;

use pace_games::GAMES;
use pace_report::page::{STAGE_MODULES, STAGE_STYLE};

/// A file of the page.
#[derive(Clone, Debug)]
pub struct Asset {
    /// Path below `/assets/`.
    pub path: String,
    /// Content of the file.
    pub content: String,
}

impl Asset {
    /// The media type, from the extension.
    pub fn media_type(&self) -> &'static str {
        match self.path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("html") => "text/html; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        }
    }
}

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../assets/", $path)))),*]
    };
}

/// The files of this crate.
const OWN: &[(&str, &str)] = files![
    "index.html",
    "style.css",
    "icon.svg",
    "main.js",
    "notices.js",
    "connection.js",
    "encounter.js",
    "start_page.js",
    "session_page.js",
    "summary.js",
    "replay_page.js",
    "study_pages.js",
];

/// Finds a file by its path.
pub fn find_asset(path: &str) -> Option<&'static Asset> {
    static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(assets);
    ASSETS.iter().find(|asset| asset.path == path)
}

/// All files of the page.
fn assets() -> Vec<Asset> {
    let asset = |path: &str, content: &str| Asset { path: path.to_owned(), content: content.to_owned() };
    let shared = OWN.iter().chain(STAGE_MODULES).chain(&[("stage.css", STAGE_STYLE)]);
    let mut assets: Vec<Asset> = shared.map(|(path, content)| asset(path, content)).collect();
    // Games without a page are shown as text.
    let (mut imports, mut listed, mut styles) = (String::new(), String::new(), String::new());
    for (number, entry) in GAMES.iter().enumerate() {
        let (id, Some(page)) = (entry.id, entry.page) else { continue };
        assets.push(asset(&format!("games/{id}.js"), page.script));
        imports.push_str(&format!("import * as page{number} from \"./{id}.js\";\n"));
        listed.push_str(&format!("  \"{id}\": page{number},\n"));
        styles.push_str(page.style);
    }
    let index = format!(
        "// The games that have a page, by id.\n\nimport {{ textGame }} from \"../text_game.js\";\n{imports}\n\
         const PAGES = {{\n{listed}}};\n\n/** The words, controls and drawings of an encounter's game; see text_game.js. */\n\
         export const gameOf = (about) => ({{ ...textGame(about), ...PAGES[about.game] }});\n"
    );
    assets.push(asset("games/index.js", &index));
    assets.push(asset("games/style.css", &styles));
    assets
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::{OWN, assets};

    #[test]
    fn list_matches_the_folder() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let name = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.expect("a readable entry").file_name().to_string_lossy().into_owned()
        };
        let found: BTreeSet<String> = std::fs::read_dir(root).expect("a readable folder").map(name).collect();
        let listed: BTreeSet<String> = OWN.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(found, listed);
    }

    #[test]
    fn pages_of_games_and_all_imports_exist() {
        let assets = assets();
        let paths: BTreeSet<&str> = assets.iter().map(|asset| &*asset.path).collect();
        assert_eq!(paths.len(), assets.len(), "paths are unique");
        for entry in pace_games::GAMES.iter().filter(|entry| entry.page.is_some()) {
            assert!(paths.contains(&format!("games/{}.js", entry.id)[..]), "{}", entry.id);
        }
        for asset in &assets {
            let folder = asset.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for line in asset.content.lines().filter(|line| line.starts_with("import ")) {
                let from = line.split('"').nth(1).expect("a module");
                let path = match from.strip_prefix("../") {
                    Some(above) => above.to_owned(),
                    None if folder.is_empty() => from.trim_start_matches("./").to_owned(),
                    None => format!("{folder}/{}", from.trim_start_matches("./")),
                };
                assert!(paths.contains(&path[..]), "{} imports {from}", asset.path);
            }
        }
    }

    #[test]
    fn only_pages_of_games_name_a_game() {
        for asset in assets().iter().filter(|asset| !asset.path.starts_with("games/")) {
            for entry in pace_games::GAMES {
                assert!(!asset.content.contains(entry.id), "{} names {}", asset.path, entry.id);
            }
        }
    }

    #[test]
    fn page_uses_no_other_host_and_no_inline_code() {
        for asset in assets() {
            let text = &asset.content;
            for line in text.lines().filter(|line| line.contains("http://") || line.contains("https://")) {
                assert!(line.contains("http://www.w3.org/"), "{}: {line}", asset.path);
            }
            for inline in ["onclick=", "style=\"", "<script>", "innerHTML", "eval("] {
                assert!(!text.contains(inline), "{} has {inline}", asset.path);
            }
        }
    }
}
