//! The modules of a crate, without code that only tests compile.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{Import, imports, is_use};
use super::tokens::{Token, after_group, tokens};
use crate::tidy::Texts;

/// A crate: its modules, of which the first is the root.
#[derive(Debug)]
pub(in crate::tidy) struct CrateSource<'a> {
    pub(in crate::tidy) modules: Vec<Module<'a>>,
}

/// A module in a file, or in a block of one.
#[derive(Debug)]
pub(in crate::tidy) struct Module<'a> {
    pub(in crate::tidy) name: &'a str,
    pub(in crate::tidy) parent: Option<usize>,
    pub(in crate::tidy) file: String,
    /// All tokens but those of modules in blocks.
    pub(in crate::tidy) tokens: Vec<Token<'a>>,
    pub(super) children: BTreeMap<&'a str, usize>,
    /// The names of the items that are defined here.
    pub(super) items: BTreeSet<&'a str>,
    /// Imports that belong to the module; those of a function are not among them.
    pub(super) imports: Vec<Import<'a>>,
}

/// Keywords behind which the name of an item stands.
const ITEMS: [&str; 9] = ["struct", "enum", "union", "trait", "type", "fn", "const", "static", "macro_rules"];

impl<'a> CrateSource<'a> {
    /// Reads a crate from its root file on: `src/lib.rs`, `src/main.rs`.
    pub(in crate::tidy) fn read(texts: &'a Texts, root: &str) -> Self {
        let mut source = Self { modules: Vec::new() };
        if let Some(text) = texts.get(root) {
            let place = ModuleSource { name: "crate", parent: None, file: root, directory: parent_of(root) };
            source.add(texts, &place, &without_tests(&tokens(text)));
        }
        source
    }

    /// The names of the modules from the root to this one, without the root.
    pub(in crate::tidy) fn path(&self, module: usize) -> Vec<&'a str> {
        let mut names = Vec::new();
        let mut at = module;
        while let Some(parent) = self.modules[at].parent {
            names.push(self.modules[at].name);
            at = parent;
        }
        names.reverse();
        names
    }

    fn add(&mut self, texts: &'a Texts, place: &ModuleSource<'a, '_>, tokens: &[Token<'a>]) -> usize {
        let index = self.modules.len();
        self.modules.push(Module {
            name: place.name,
            parent: place.parent,
            file: place.file.to_owned(),
            tokens: Vec::new(),
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: Vec::new(),
        });
        let mut kept = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let start = at;
            at = match (tokens[at].text, tokens.get(at + 1), tokens.get(at + 2)) {
                ("mod", Some(name), Some(next)) if next.text == ";" => {
                    self.add_file(texts, place, index, name.text, path_attribute(&kept));
                    at + 3
                }
                ("mod", Some(name), Some(next)) if next.text == "{" => {
                    let end = after_group(tokens, at + 2);
                    let directory = format!("{}/{}", place.directory, name.text);
                    let child = ModuleSource {
                        name: name.text,
                        parent: Some(index),
                        file: place.file,
                        directory: &directory,
                    };
                    let child = self.add(texts, &child, &tokens[at + 3..end - 1]);
                    self.modules[index].children.insert(name.text, child);
                    end
                }
                ("use", _, _) if is_use(tokens, at) => {
                    let (found, end) = imports(tokens, at);
                    self.modules[index].imports.extend(found);
                    kept.extend_from_slice(&tokens[start..end.min(tokens.len())]);
                    end
                }
                (keyword, _, _) => {
                    let name = tokens[at + 1..].iter().find(|token| token.text != "!");
                    if let Some(name) = name.filter(|name| ITEMS.contains(&keyword) && name.is_word()) {
                        self.modules[index].items.insert(name.text);
                    }
                    let end = if tokens[at].opens() { after_group(tokens, at) } else { at + 1 };
                    kept.extend_from_slice(&tokens[start..end]);
                    end
                }
            };
        }
        self.modules[index].tokens = kept;
        index
    }

    fn add_file(
        &mut self,
        texts: &'a Texts,
        place: &ModuleSource<'a, '_>,
        parent: usize,
        name: &'a str,
        path: Option<&str>,
    ) {
        let directory = format!("{}/{name}", place.directory);
        let candidates = match path {
            Some(path) => vec![format!("{}/{path}", parent_of(place.file))],
            None => vec![format!("{directory}.rs"), format!("{directory}/mod.rs")],
        };
        for file in candidates {
            if let Some(text) = texts.get(&file) {
                let child = ModuleSource { name, parent: Some(parent), file: &file, directory: &directory };
                let child = self.add(texts, &child, &without_tests(&tokens(text)));
                self.modules[parent].children.insert(name, child);
            }
        }
    }
}

impl<'a> Module<'a> {
    /// The paths that it imports, each with the name that it has here.
    pub(in crate::tidy) fn imported(&self) -> impl Iterator<Item = (&[&'a str], &'a str)> {
        self.imports.iter().filter_map(|import| Some((import.path.as_slice(), import.name?)))
    }
}

/// The source of a module.
struct ModuleSource<'a, 'b> {
    name: &'a str,
    parent: Option<usize>,
    file: &'b str,
    /// The directory of its children.
    directory: &'b str,
}

fn parent_of(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// The file of `#[path = "file"]`, where that attribute comes last.
fn path_attribute<'a>(before: &[Token<'a>]) -> Option<&'a str> {
    let visibility = before.iter().rev().take_while(|token| token.text != "]" && token.text != ";").count();
    let attribute = &before[..before.len() - visibility];
    let [.., name, equals, value, end] = attribute else { return None };
    let is_path = (name.text, equals.text, end.text) == ("path", "=", "]");
    is_path.then(|| value.text.trim_matches('"'))
}

/// The tokens without the items, fields and statements behind `#[cfg(test)]`.
fn without_tests<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        if is_cfg_test(&tokens[at..]) {
            at = after_item(tokens, after_group(tokens, at + 1));
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

fn is_cfg_test(tokens: &[Token<'_>]) -> bool {
    let wanted = ["#", "[", "cfg", "(", "test", ")", "]"];
    tokens.len() >= wanted.len() && tokens.iter().zip(wanted).all(|(token, text)| token.text == text)
}

/// The index behind the item, field or statement that begins at `start`, perhaps with more attributes.
fn after_item(tokens: &[Token<'_>], start: usize) -> usize {
    let mut at = start;
    while tokens.get(at).is_some_and(|token| token.text == "#") {
        at = after_group(tokens, at + 1);
    }
    let head: Vec<_> = tokens[at..].iter().take(6).map(|token| token.text).collect();
    let has = |words: &[&str]| head.iter().any(|word| words.contains(word));
    let is_block = has(&["fn", "impl", "mod", "struct", "enum", "trait", "union", "macro_rules"]);
    let is_declaration = has(&["use", "const", "static", "type", "let", "extern"]);
    while let Some(token) = tokens.get(at) {
        match token.text {
            ";" => return at + 1,
            "," if !is_block && !is_declaration => return at + 1,
            "{" if is_block => return after_group(tokens, at),
            _ if token.closes() => return at,
            _ if token.opens() => at = after_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Texts {
        files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn modules_are_found_in_files_folders_and_blocks() {
        let texts = texts(&[
            ("src/lib.rs", "mod a;\npub mod b { struct In; mod c; }\n#[path = \"x/other.rs\"]\nmod d;\n"),
            ("src/a/mod.rs", "pub(crate) mod e;\nfn f() {}"),
            ("src/a/e.rs", "mod g;"),
            ("src/a/e/g.rs", "macro_rules! h { () => {} }"),
            ("src/b/c.rs", ""),
            ("src/x/other.rs", ""),
        ]);
        let source = CrateSource::read(&texts, "src/lib.rs");
        let paths: Vec<_> = (0..source.modules.len()).map(|module| source.path(module).join("::")).collect();
        assert_eq!(paths, ["", "a", "a::e", "a::e::g", "b", "b::c", "d"]);
        assert!(source.modules[1].items.contains("f") && source.modules[3].items.contains("h"));
        assert_eq!(source.modules[6].file, "src/x/other.rs");
    }

    #[test]
    fn nothing_that_only_tests_compile_is_kept() {
        let text = "use a::B;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\n#[path = \"t.rs\"]\nmod t { fn x() {} }\n\
                    struct S { #[cfg(test)] slow: super::tests::Slow, kept: u8 }\n\
                    impl S { #[cfg(test)] fn f<A, B>(a: A, b: B) -> C { d } fn g(&self) { #[cfg(test)] self.h(i, j); k } }\n\
                    #[cfg(test)]\nuse tests::{A, B};\nfn last() {}";
        let shown: Vec<_> = without_tests(&tokens(text)).iter().map(|token| token.text).collect();
        let expected = "use a :: B ; struct S { kept : u8 } impl S { fn g ( & self ) { k } } fn last ( ) { }";
        assert_eq!(shown.join(" "), expected);
    }
}
