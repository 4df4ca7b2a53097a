//! The modules that a path leads to, through imports and re-exports.

use std::collections::BTreeSet;

use super::imports::{imports, is_use};
use super::modules::CrateSource;

/// A module names something of another module of its crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::tidy) struct Reference {
    pub(in crate::tidy) from: usize,
    pub(in crate::tidy) to: usize,
    /// The line in the file of `from`, counted from 0.
    pub(in crate::tidy) line: usize,
}

/// The module that a name stands for, or the module that defines it.
#[derive(Clone, Copy, Debug)]
enum Definition {
    Module(usize),
    Item(usize),
}

/// The names that were looked up on the way, each in its module: re-exports may lead in a circle.
type Visited = BTreeSet<(usize, String)>;

/// Every reference of a crate: by `use`, by a path, and by a name that a `use …::*` brings.
pub(in crate::tidy) fn references(source: &CrateSource<'_>) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    for from in 0..source.modules.len() {
        let mut add = |path: &[&str], line: usize| {
            let mut seen = BTreeSet::new();
            Names { source }.resolve(from, path, &mut seen, &mut Visited::new());
            found.extend(seen.into_iter().filter(|to| *to != from).map(|to| Reference { from, to, line }));
        };
        let tokens = &source.modules[from].tokens;
        let mut at = 0;
        while at < tokens.len() {
            if is_use(tokens, at) {
                let (imported, end) = imports(tokens, at);
                imported.iter().for_each(|import| add(&import.path, import.line));
                at = end;
                continue;
            }
            let starts = tokens[at].is_word()
                && !at.checked_sub(1).is_some_and(|before| matches!(tokens[before].text, "." | "::"));
            let mut path = vec![tokens[at].text];
            let mut next = at + 1;
            while starts
                && tokens.get(next).is_some_and(|token| token.text == "::")
                && tokens.get(next + 1).is_some_and(super::Token::is_word)
            {
                path.push(tokens[next + 1].text);
                next += 2;
            }
            let is_called = tokens.get(next).is_some_and(|token| matches!(token.text, "(" | "!"));
            let is_type = tokens[at].text.starts_with(|c: char| c.is_ascii_uppercase());
            if starts && (path.len() > 1 || is_called || is_type) {
                add(&path, tokens[at].line);
            }
            at = next;
        }
    }
    found
}

/// Looks names up in the modules of a crate.
struct Names<'a, 'b> {
    source: &'b CrateSource<'a>,
}

impl Names<'_, '_> {
    /// Follows a path from a module, and notes every module on the way.
    fn resolve(
        &self,
        from: usize,
        path: &[&str],
        seen: &mut BTreeSet<usize>,
        visited: &mut Visited,
    ) -> Option<Definition> {
        let mut module = from;
        let mut reached = None;
        for (place, name) in path.iter().enumerate() {
            let next = match *name {
                "crate" if place == 0 => Definition::Module(0),
                "self" if place == 0 => Definition::Module(from),
                "super" => Definition::Module(self.source.modules[module].parent?),
                name => match self.look_up(module, name, None, seen, visited) {
                    Some(definition) => definition,
                    None => return reached,
                },
            };
            reached = Some(next);
            match next {
                Definition::Module(next) => {
                    seen.insert(next);
                    module = next;
                }
                Definition::Item(definer) => {
                    seen.insert(definer);
                    return reached;
                }
            }
        }
        reached
    }

    /// Finds a name in the scope of a module. For another module that imports all of it, `for_all_of`, only what that
    /// one can see.
    fn look_up(
        &self,
        module: usize,
        name: &str,
        for_all_of: Option<usize>,
        seen: &mut BTreeSet<usize>,
        visited: &mut Visited,
    ) -> Option<Definition> {
        let scope = &self.source.modules[module];
        if let Some(child) = scope.children.get(name) {
            return Some(Definition::Module(*child));
        }
        if scope.items.contains(name) {
            return Some(Definition::Item(module));
        }
        if !visited.insert((module, name.to_owned())) {
            return None;
        }
        let sees_all = for_all_of.is_none_or(|viewer| self.is_within(viewer, module));
        let imports = scope.imports.iter().filter(|import| import.is_public || sees_all);
        let named = imports.clone().find(|import| import.name == Some(name));
        if let Some(import) = named.filter(|import| import.path[0] != name) {
            return self.resolve(module, &import.path, seen, visited);
        }
        if named.is_some() {
            return None;
        }
        imports.filter(|import| import.name.is_none()).find_map(|glob| {
            let mut on_the_way = BTreeSet::new();
            let Some(Definition::Module(target)) = self.resolve(module, &glob.path, &mut on_the_way, visited)
            else {
                return None;
            };
            let found = self.look_up(target, name, Some(module), &mut on_the_way, visited)?;
            seen.extend(on_the_way);
            Some(found)
        })
    }

    /// A module is another one, or lies below it: it sees what is private there.
    fn is_within(&self, module: usize, other: usize) -> bool {
        let mut above = Some(module);
        while let Some(at) = above.filter(|at| *at != other) {
            above = self.source.modules[at].parent;
        }
        above.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Texts;

    /// The references of all modules but the root: `from -> to:line`.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let texts: Texts =
            files.iter().map(|(path, text)| (format!("src/{path}"), (*text).to_owned())).collect();
        let source = CrateSource::read(&texts, "src/lib.rs");
        let name = |module: usize| source.path(module).join("::");
        let shown = |reference: &Reference| {
            format!("{} -> {}:{}", name(reference.from), name(reference.to), reference.line)
        };
        let between = |reference: &&Reference| reference.from > 0 && reference.to > 0;
        references(&source).iter().filter(between).map(shown).collect()
    }

    #[test]
    fn imports_and_paths_are_references() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use super::b::B;\nfn f() { crate::c::g(); other::h(); x.crate_of::<u8>() }"),
            ("b.rs", "pub struct B;"),
            ("c.rs", "pub fn g() {}\nfn h() { std::mem::drop(super::b::B) }"),
        ];
        assert_eq!(found(&files), ["a -> b:0", "a -> c:1", "c -> b:1"]);
    }

    #[test]
    fn a_name_is_followed_through_re_exports() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use b::*; pub use c::inner::D as E;"),
            ("a.rs", "use crate::B;\nuse super::E;\nfn f() { crate::b::g() }"),
            ("b.rs", "pub struct B;\npub use crate::c::g;"),
            ("c.rs", "pub mod inner { pub struct D; }\npub fn g() {}"),
        ];
        let expected = ["a -> b:0", "a -> b:2", "a -> c:1", "a -> c:2", "a -> c::inner:1", "b -> c:1"];
        assert_eq!(found(&files), expected);
    }

    #[test]
    fn a_name_that_comes_with_all_others_is_a_reference() {
        let files = [
            ("lib.rs", "mod a; mod b; use b::{B, g};"),
            ("a.rs", "use super::*;\nfn f(value: B) { g(); value.g(); let b = 1; b }"),
            ("b.rs", "pub struct B; pub fn g() {}"),
        ];
        assert_eq!(found(&files), ["a -> b:1"]);
    }

    #[test]
    fn a_private_import_is_not_brought_to_others() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; pub use a::*; pub use b::*;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "pub struct B;"),
            ("c.rs", "fn f() -> crate::B {}"),
        ];
        assert_eq!(found(&files), ["a -> b:0", "c -> b:0"]);
    }

    #[test]
    fn re_exports_in_a_circle_end() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "pub use super::b::*; pub use super::b::X; fn f() -> X { Y }"),
            ("b.rs", "pub use super::a::*; pub use super::a::X;"),
        ];
        assert!(found(&files).contains(&"a -> b:0".to_owned()));
    }
}
