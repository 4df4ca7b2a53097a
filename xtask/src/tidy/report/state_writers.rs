//! Functions that write durable state.
//!
//! The types of the state are known by name. In the package that defines one, a function counts if it is public and
//! takes it by `&mut`: others are its parts. In every other package a function counts if it takes one by `&mut`, or
//! changes a field of one.

use std::collections::BTreeSet;

use super::product::Product;
use crate::tidy::rust::{Function, Module, Token, after_group, functions};

/// The types, each with the packages that may define it.
const TYPES: [(&str, &str); 4] =
    [("store", "State"), ("store", "Estate"), ("control", "ControlState"), ("control", "ClusterState")];

/// Methods of collections, and of parts of the state, that change them.
const CHANGING: [&str; 16] = [
    "append",
    "clear",
    "drain",
    "evolve",
    "extend",
    "get_mut",
    "insert",
    "iter_mut",
    "make_mut",
    "pop_first",
    "push",
    "remove",
    "replace",
    "retain",
    "take",
    "values_mut",
];

pub(super) fn state_writers(product: &Product<'_>) -> Vec<String> {
    let fields = fields(product);
    let mut found = Vec::new();
    for (package, _) in &product.packages {
        let package = package.name.as_str();
        let names: Vec<_> = product.modules_of(package).map(|module| local_names(package, module)).collect();
        let holders: BTreeSet<_> = product
            .modules_of(package)
            .zip(&names)
            .flat_map(|(module, names)| holders(&module.tokens, names))
            .collect();
        let own: Vec<_> = TYPES.iter().filter(|(home, _)| *home == package).map(|(_, name)| *name).collect();
        for (module, names) in product.modules_of(package).zip(&names) {
            let writers = functions(&module.tokens).into_iter().filter(|function| {
                let is_home = function.of.is_some_and(|of| own.contains(&of)) || takes(function, &own);
                let takes_it = takes(function, names) || takes_itself(function) && is_home;
                if is_home {
                    return takes_it && function.is_public;
                }
                takes_it || own.is_empty() && changes(function.body, &holders, &fields)
            });
            found
                .extend(writers.map(|writer| format!("{}:{} {}", module.file, writer.line + 1, writer.name)));
        }
    }
    found
}

/// The names of the fields of all types of the state.
fn fields<'a>(product: &Product<'a>) -> BTreeSet<&'a str> {
    let mut fields = BTreeSet::new();
    for (package, name) in TYPES {
        for module in product.modules_of(package) {
            let tokens = &module.tokens;
            let definition = tokens.windows(3).position(|window| {
                window[0].text == "struct" && window[1].text == name && window[2].text == "{"
            });
            let Some(start) = definition.map(|at| at + 2) else { continue };
            let body = &tokens[start..after_group(tokens, start)];
            let names = body.windows(2).filter(|pair| pair[1].text == ":" && pair[0].is_word());
            fields.extend(names.map(|pair| pair[0].text));
        }
    }
    fields
}

/// The names that the types of the state have in a module.
fn local_names<'a>(package: &str, module: &Module<'a>) -> Vec<&'a str> {
    let mut names: Vec<&'a str> =
        TYPES.iter().filter(|(home, _)| *home == package).map(|(_, name)| *name).collect();
    for (path, name) in module.imported() {
        let is_of_state = TYPES.iter().any(|(home, known)| {
            // `State` is a common name; the others are enough by themselves.
            path.last() == Some(known) && (*known != "State" || path[0] == format!("forewarn_{home}"))
        });
        if is_of_state {
            names.push(name);
        }
    }
    names
}

/// Names of fields, parameters and variables that have such a type: `kept` in `kept: Arc<State>`.
fn holders<'a>(tokens: &[Token<'a>], names: &[&str]) -> BTreeSet<&'a str> {
    let typed = (0..tokens.len()).filter(|at| names.contains(&tokens[*at].text));
    typed
        .filter_map(|at| {
            let before = tokens[..at].iter().rposition(|token| {
                !matches!(token.text, "&" | "mut" | "<" | "Arc" | "Box") && !token.text.starts_with('\'')
            })?;
            let name = before.checked_sub(1).map(|name| tokens[name])?;
            (tokens[before].text == ":" && name.is_word()).then_some(name.text)
        })
        .collect()
}

fn takes_itself(function: &Function<'_, '_>) -> bool {
    function.signature.windows(3).any(|window| {
        let texts = (window[0].text, window[1].text, window[2].text);
        texts == ("&", "mut", "self")
    })
}

/// A parameter is `&mut` of one of the types.
fn takes(function: &Function<'_, '_>, names: &[&str]) -> bool {
    function
        .signature
        .windows(3)
        .any(|window| window[0].text == "&" && window[1].text == "mut" && names.contains(&window[2].text))
}

/// Something is assigned to a field, a changing method is called on one, or one is lent by `&mut`.
fn changes(body: &[Token<'_>], holders: &BTreeSet<&str>, fields: &BTreeSet<&str>) -> bool {
    (0..body.len().saturating_sub(2)).any(|at| {
        let is_field =
            holders.contains(body[at].text) && body[at + 1].text == "." && fields.contains(body[at + 2].text);
        is_field && (is_lent(&body[..at]) || chain_changes(&body[at + 3..]))
    })
}

/// `&mut` stands before the value, perhaps with `self.` between.
fn is_lent(before: &[Token<'_>]) -> bool {
    let before = match before {
        [rest @ .., own, dot] if own.text == "self" && dot.text == "." => rest,
        other => other,
    };
    matches!(before, [.., lent, kind] if lent.text == "&" && kind.text == "mut")
}

/// True if the tokens after a field, which may be fields, calls and indexes, change it.
fn chain_changes(rest: &[Token<'_>]) -> bool {
    let mut at = 0;
    while let Some(token) = rest.get(at) {
        match token.text {
            "." => {
                let name = rest.get(at + 1).map_or("", |token| token.text);
                let is_called = rest.get(at + 2).is_some_and(|token| token.text == "(");
                if is_called && CHANGING.contains(&name) {
                    return true;
                }
                at += 2;
            }
            "(" | "[" => at = after_group(rest, at),
            "?" => at += 1,
            text => {
                return text == "=" || text.len() == 2 && text.ends_with('=') && !"!=<>".contains(&text[..1]);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::Texts;
    use crate::tidy::manifests::packages;

    #[test]
    fn functions_that_write_the_state_are_found() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file("crates/control/Cargo.toml", "[package]\nname = \"forewarn-control\"\n"),
            file(
                "crates/control/src/lib.rs",
                "pub struct ControlState { pub names: Names, pub(crate) boot: u8 }\nimpl ControlState {\n\
                 pub fn apply(&mut self) { self.rename() }\nfn rename(&mut self) {}\npub fn name(&self) {}\n}\n",
            ),
            file("crates/server/Cargo.toml", "[package]\nname = \"forewarn-server\"\n"),
            file(
                "crates/server/src/lib.rs",
                "use forewarn_control::ControlState as Kept;\nstruct D { kept: Arc<Kept> }\nimpl D {\n\
                 fn replay(&mut self) { self.kept.apply(r) }\n\
                 fn reads(&self) { self.kept.names.get(a) == self.kept.boot }\n\
                 fn inserts(&mut self) { self.kept.names.all[0].insert(b) }\n\
                 fn assigns(&mut self) { self.kept.boot += 1 }\n\
                 fn lends(&mut self) { f(&mut self.kept.names) }\n}\n\
                 fn takes(kept: &mut Kept) {}\n",
            ),
        ]);
        let packages = packages(&texts).unwrap();
        let product = Product::read(&texts, &packages);
        let expected = [
            "crates/control/src/lib.rs:3 apply",
            "crates/server/src/lib.rs:6 inserts",
            "crates/server/src/lib.rs:7 assigns",
            "crates/server/src/lib.rs:8 lends",
            "crates/server/src/lib.rs:10 takes",
        ];
        assert_eq!(state_writers(&product), expected);
    }
}
