//! Finds the line on which a source file defines an item.

use regex::Regex;

const PUBLIC: &str = r"(?:pub(?:\([a-z]+\))? )?";

/// The line, from 1, that defines an item of a file. An item is a `name` at the top level of the file or a member written
/// `Owner::name`: a function, constant or type of an `impl` block, a field, or a variant. In a file that is not Rust, an item
/// is an exported name or the key of a `key = value` line.
pub(super) fn line_of(path: &str, text: &str, item: &str) -> Result<usize, String> {
    let lines: Vec<&str> = text.lines().collect();
    let found: Vec<usize> = match item.rsplit_once("::") {
        _ if !path.ends_with(".rs") => {
            let name = regex::escape(item);
            let definition =
                format!(r"^(?:export )?(?:async )?(?:function\*?|class|const|let) {name}\b|^{name} = ");
            // A key may be set in several sections: the first is its definition.
            matching(&lines, &definition).into_iter().take(1).collect()
        }
        None => {
            let kind = r"(?:(?:const |async )*fn|struct|enum|trait|type|const|static)";
            matching(&lines, &format!(r"^(?:{PUBLIC}{kind}|macro_rules!) {item}\b"))
        }
        Some((owner, name)) => members(&lines, owner, name),
    };
    match found[..] {
        [index] => Ok(index + 1),
        [] => Err(format!("{path} does not define `{item}`")),
        _ => Err(format!("{path} defines `{item}` {} times", found.len())),
    }
}

/// Whether a Rust file has a member `owner::name`.
pub(super) fn has_member(text: &str, owner: &str, name: &str) -> bool {
    text.contains(owner) && !members(&text.lines().collect::<Vec<_>>(), owner, name).is_empty()
}

/// The indices of the lines that define a member of a type or trait.
fn members(lines: &[&str], owner: &str, name: &str) -> Vec<usize> {
    let kind = r"(?:(?:const |async )*fn|type|const)";
    let member = Regex::new(&format!(r"^    {PUBLIC}(?:{kind} {name}\b|{name}:|{name}(?:$|[ ,({{]))"));
    let member = member.expect("an expression");
    let bodies = blocks(lines, owner).into_iter().flatten();
    bodies.filter(|index| member.is_match(lines[*index])).collect()
}

fn matching(lines: &[&str], expression: &str) -> Vec<usize> {
    let expression = Regex::new(expression).expect("an expression");
    (0..lines.len()).filter(|index| expression.is_match(lines[*index])).collect()
}

/// The bodies of a type or trait as line indices: its definition and its `impl` blocks.
fn blocks(lines: &[&str], owner: &str) -> Vec<std::ops::Range<usize>> {
    let definition =
        Regex::new(&format!(r"^{PUBLIC}(?:struct|enum|trait) {owner}\b")).expect("an expression");
    let implementation = Regex::new(r"^impl(?:<.*?>)? (?:.* for )?(\w+)").expect("an expression");
    let is_head = |line: &str| {
        let implements = |found: regex::Captures<'_>| &found[1] == owner;
        !line.ends_with(';')
            && (definition.is_match(line) || implementation.captures(line).is_some_and(implements))
    };
    let end = |start: usize| {
        (start..lines.len()).find(|index| lines[*index].starts_with('}')).unwrap_or(lines.len())
    };
    let heads = (0..lines.len()).filter(|index| is_head(lines[*index]));
    heads.map(|index| index + 1..end(index)).collect()
}

#[test]
fn finds_items_and_members() {
    let text = "\
pub(crate) trait Encoder: Sized {
    fn width(&self) -> usize;
}

/// A pool.
#[derive(Clone)]
struct Pool<const N: usize> {
    width: usize,
}

enum Kind {
    Mean,
    Max(usize),
}

impl<const N: usize> Encoder for Pool<N> {
    fn width(&self) -> usize {
        let width: usize = self.width;
        width
    }
}

const fn free() {}
";
    let line = |item: &str| line_of("pool.rs", text, item);
    assert_eq!(line("Encoder"), Ok(1));
    assert_eq!(line("Encoder::width"), Ok(2));
    assert_eq!(line("Pool"), Ok(7));
    assert_eq!(line("Kind::Max"), Ok(13));
    assert_eq!(line("free"), Ok(23));
    assert_eq!(line("Pool::width").unwrap_err(), "pool.rs defines `Pool::width` 2 times");
    assert_eq!(line("Pool::depth").unwrap_err(), "pool.rs does not define `Pool::depth`");
    assert_eq!(line_of("a.toml", "[paper]\nclip = 1\n[best]\nclip = 2\n", "clip"), Ok(2));
    assert_eq!(line_of("a.js", "export function draw(view) {\n", "draw"), Ok(1));
}
