//! `use` declarations: trees of paths.

use super::tokens::{Token, after_group};

/// One path of a `use` declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import<'a> {
    pub(super) path: Vec<&'a str>,
    /// The name that it has here; none, if everything of the path is imported.
    pub(super) name: Option<&'a str>,
    pub(super) line: usize,
    /// It is a re-export: `pub use`, `pub(crate) use` and so on.
    pub(super) is_public: bool,
}

/// A declaration begins here. The `use<'a>` of a type does not count.
pub(super) fn is_use(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at].text == "use" && tokens.get(at + 1).is_some_and(|next| next.text != "<")
}

/// The imports of the declaration whose `use` stands at `start`, and the index behind it.
pub(super) fn imports<'a>(tokens: &[Token<'a>], start: usize) -> (Vec<Import<'a>>, usize) {
    let mut found = Vec::new();
    let before = start.checked_sub(1).map_or("", |before| tokens[before].text);
    let is_public = matches!(before, "pub" | ")");
    let mut reader = Reader { tokens, at: start + 1, is_public, found: &mut found };
    reader.tree(&[]);
    let end = reader.at + 1;
    (found, end)
}

struct Reader<'a, 'b> {
    tokens: &'b [Token<'a>],
    at: usize,
    is_public: bool,
    found: &'b mut Vec<Import<'a>>,
}

impl<'a> Reader<'a, '_> {
    fn text(&self) -> &'a str {
        self.tokens.get(self.at).map_or(";", |token| token.text)
    }

    /// One tree, behind a path.
    fn tree(&mut self, before: &[&'a str]) {
        let mut path = before.to_vec();
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        loop {
            match self.text() {
                "::" => self.at += 1,
                "{" => return self.group(&path),
                "*" => {
                    self.at += 1;
                    return self.found.push(Import { path, name: None, line, is_public: self.is_public });
                }
                "," | "}" | ";" | "as" => break,
                word => {
                    // `a::{self}` is `a`; at the start of a path, `self` is this module.
                    if word != "self" || path.is_empty() {
                        path.push(word);
                    }
                    self.at += 1;
                }
            }
        }
        let mut name = path.last().copied();
        if self.text() == "as" {
            name = self.tokens.get(self.at + 1).map(|token| token.text);
            self.at += 2;
        }
        if !path.is_empty() {
            self.found.push(Import { path, name, line, is_public: self.is_public });
        }
    }

    fn group(&mut self, path: &[&'a str]) {
        let end = after_group(self.tokens, self.at);
        self.at += 1;
        while self.at + 1 < end {
            self.tree(path);
            // The comma; in the body of a macro, perhaps another token.
            self.at += usize::from(self.at + 1 < end);
        }
        self.at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn the_captures_of_a_type_are_no_import() {
        let found = tokens("-> impl Iterator + use<'a> { b; }");
        assert!(!(0..found.len()).any(|at| is_use(&found, at)));
    }

    #[test]
    fn a_tree_gives_every_path_with_its_name() {
        let found = tokens("use crate::a::{self, B, c::{D as E, f::*},\n};\nx");
        let (imports, end) = imports(&found, 0);
        let shown: Vec<_> = imports.iter().map(|import| (import.path.join("::"), import.name)).collect();
        let expected = [
            ("crate::a".to_owned(), Some("a")),
            ("crate::a::B".to_owned(), Some("B")),
            ("crate::a::c::D".to_owned(), Some("E")),
            ("crate::a::c::f".to_owned(), None),
        ];
        assert_eq!(shown, expected);
        assert_eq!(found[end].text, "x");
    }
}
