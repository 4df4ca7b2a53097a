//! Closures that are sent to the driver, and look-ups of names.

use super::product::Product;
use crate::tidy::rust::Token;

/// Everything that is sent to the driver is defined here.
const MESSAGES: [&str; 2] = ["crates/server/src/message.rs", "crates/control/src/request.rs"];

/// Types of closures in messages to the driver.
pub(super) fn closures(product: &Product<'_>) -> Vec<String> {
    places(product, |file, tokens, at| {
        MESSAGES.contains(&file) && matches!(tokens[at].text, "Fn" | "FnMut" | "FnOnce")
    })
}

/// Calls of `NamedCommand::resolve` on the way of a request. A story that is played on the bare rules makes no request.
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
        let is_ours = ["server", "azure", "control", "forewarn"].contains(&package);
        let found = (0..tokens.len()).filter(|at| is_ours && holds(&module.file, tokens, *at));
        places.extend(found.map(|at| format!("{}:{}", module.file, tokens[at].line + 1)));
    }
    places
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
            file("crates/server/src/lib.rs", "mod message;\nmod other;\n"),
            file(
                "crates/server/src/message.rs",
                "struct Data(u8);\ntype Look = Box<dyn FnOnce(Option<State<'_>>) + Send>;\n",
            ),
            file(
                "crates/server/src/other.rs",
                "fn f(look: impl FnOnce(u8)) {\ncommand.resolve(cluster);\nhosts.resolve(cluster) }\n",
            ),
        ]);
        let packages = packages(&texts).unwrap();
        let product = Product::read(&texts, &packages);
        assert_eq!(closures(&product), ["crates/server/src/message.rs:2"]);
        assert_eq!(look_ups(&product), ["crates/server/src/other.rs:2"]);
    }
}
