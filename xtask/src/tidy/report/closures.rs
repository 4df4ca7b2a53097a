//! Closures that are sent to the driver, and look-ups of names.

use super::product::Product;
use crate::tidy::rust::{Token, after_group};

/// Where requests to the driver are defined.
const ENGINE: &str = "crates/server/src/engine/";

/// Values whose `look` and `arrange` send a closure to the driver.
const HANDLES: [&str; 2] = ["engine", "visit"];

/// Types of closures over the state in the engine, and the places that make one.
pub(super) fn closures(product: &Product<'_>) -> Vec<String> {
    places(product, |file, tokens, at| {
        let is_type = file.starts_with(ENGINE) && takes_state(tokens, at);
        let is_sent = is_call(tokens, at, &["look", "arrange"])
            && at
                .checked_sub(2)
                .is_some_and(|of| tokens[of].text == ")" || HANDLES.contains(&tokens[of].text));
        let is_condition = is_sequence(tokens, at, &["Condition", "(", "Box"]);
        is_type || is_sent || is_condition
    })
}

/// Calls of `NamedCommand::resolve`.
pub(super) fn look_ups(product: &Product<'_>) -> Vec<String> {
    places(product, |_, tokens, at| {
        let of_command = at.checked_sub(2).is_some_and(|of| tokens[of].text.ends_with("command"));
        is_call(tokens, at, &["resolve"]) && of_command
            || is_sequence(tokens, at, &["NamedCommand", "::", "resolve"])
    })
}

/// The files and lines of tokens at which something holds.
fn places(product: &Product<'_>, holds: impl Fn(&str, &[Token<'_>], usize) -> bool) -> Vec<String> {
    let mut places = Vec::new();
    for (package, module) in product.modules() {
        let tokens = &module.tokens;
        let is_ours = ["server", "azure", "control", "forewarn", "story"].contains(&package);
        let found = (0..tokens.len()).filter(|at| is_ours && holds(&module.file, tokens, *at));
        places.extend(found.map(|at| format!("{}:{}", module.file, tokens[at].line + 1)));
    }
    places
}

/// `FnOnce(&State<'_>)`, `Fn(…)` and so on.
fn takes_state(tokens: &[Token<'_>], at: usize) -> bool {
    let is_closure = matches!(tokens[at].text, "Fn" | "FnMut" | "FnOnce");
    let is_open = tokens.get(at + 1).is_some_and(|next| next.text == "(");
    is_closure
        && is_open
        && tokens[at + 1..after_group(tokens, at + 1)].iter().any(|token| token.text.ends_with("State"))
}

/// A call of a method with one of the names.
fn is_call(tokens: &[Token<'_>], at: usize, names: &[&str]) -> bool {
    names.contains(&tokens[at].text)
        && at.checked_sub(1).is_some_and(|before| tokens[before].text == ".")
        && tokens.get(at + 1).is_some_and(|next| next.text == "(")
}

fn is_sequence(tokens: &[Token<'_>], at: usize, wanted: &[&str]) -> bool {
    tokens.len() >= at + wanted.len()
        && tokens[at..].iter().zip(wanted).all(|(token, text)| token.text == *text)
}

#[cfg(test)]
mod tests {
    use super::super::product::Product;
    use super::*;
    use crate::tidy::Texts;
    use crate::tidy::manifests::packages;

    #[test]
    fn closures_and_look_ups_are_found() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let texts = Texts::from([
            file("crates/server/Cargo.toml", "[package]\nname = \"forewarn-server\"\n"),
            file("crates/server/src/lib.rs", "mod engine;\nmod other;\n"),
            file(
                "crates/server/src/engine/mod.rs",
                "type Look = Box<dyn FnOnce(Option<State<'_>>) + Send>;\nfn ask(a: impl FnOnce(Sender) -> Request) {}\n",
            ),
            file(
                "crates/server/src/other.rs",
                "fn f() { visit.engine.look(a);\nengine.of(b).arrange(c);\nself.look(d);\nCondition(Box::new(e));\n\
                 command.resolve(cluster);\nhosts.resolve(cluster) }\n",
            ),
        ]);
        let packages = packages(&texts).unwrap();
        let product = Product::read(&texts, &packages);
        let (engine, other) = ("crates/server/src/engine/mod.rs", "crates/server/src/other.rs");
        let expected =
            [format!("{engine}:1"), format!("{other}:1"), format!("{other}:2"), format!("{other}:4")];
        assert_eq!(closures(&product), expected);
        assert_eq!(look_ups(&product), [format!("{other}:5")]);
    }
}
