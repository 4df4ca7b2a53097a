//! Error messages in a source: string literals of error attributes, macros, methods and constructors.

use crate::tidy::rust::{Token, after_group, tokens};

/// Macros whose first string is an error message.
const MACROS: [&str; 3] = ["bail", "anyhow", "ensure"];

/// Methods and variants whose strings are error messages.
const CALLS: [&str; 5] = ["context", "with_context", "Err", "ok_or", "ok_or_else"];

/// Ends of the names of types whose constructors take an error message.
const TYPES: [&str; 4] = ["Error", "Problem", "Fault", "Refusal"];

/// The error messages with their lines, counted from 1.
pub(super) fn errors(code: &str) -> Vec<(usize, String)> {
    let tokens = tokens(code);
    let texts = (0..tokens.len()).filter_map(|index| {
        let group = group(&tokens, index)?;
        let end = after_group(&tokens, group);
        let texts = || tokens[group..end].iter().filter(|token| is_text(token));
        // A condition before the message may compare with a word.
        texts().find(|token| token.text.contains(' ')).or_else(|| texts().next())
    });
    let mut messages: Vec<_> = texts.map(|token| (token.line + 1, one_line(token.text))).collect();
    messages.sort();
    messages.dedup();
    messages
}

/// The index of the bracket behind the name at `index`, if its group contains an error message.
fn group(tokens: &[Token<'_>], index: usize) -> Option<usize> {
    let text = |offset: usize| tokens.get(index + offset).map_or("", |token| token.text);
    let before = |offset: usize| index.checked_sub(offset).map_or("", |index| tokens[index].text);
    let name = tokens[index].text;
    if MACROS.contains(&name) && text(1) == "!" {
        return Some(index + 2);
    }
    if name == "error" && before(1) == "[" && before(2) == "#" && text(1) == "(" {
        return Some(index + 1);
    }
    if CALLS.contains(&name) && text(1) == "(" {
        return Some(index + 1);
    }
    let is_type = TYPES.iter().any(|end| name.ends_with(end));
    (is_type && text(1) == "::" && text(3) == "(").then_some(index + 3)
}

fn is_text(token: &Token<'_>) -> bool {
    let text = token.text.trim_start_matches(['b', 'r', '#']);
    text.starts_with('"') && text.trim_matches(['"', '#']).contains(char::is_alphabetic)
}

/// The literal without its quotes and without line continuations.
fn one_line(literal: &str) -> String {
    let text = literal.trim_start_matches(['r', '#']).trim_end_matches('#');
    let text = text.strip_prefix('"').unwrap_or(text);
    let text = text.strip_suffix('"').unwrap_or(text);
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |joined, part| joined + part.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_are_found_with_their_lines() {
        let code = "#[error(\"disk full: {0}\")]\nstruct Full(String);\nfn f() {\n    bail!(\n        \"no {x} \\\n         \
                    here\"\n    );\n    ensure!(a > 0, \"zero\");\n    g().with_context(|| format!(\"cannot read: {p}\"))?;\n    \
                    return Err(ApiError::bad(\"bad request\"));\n}\n";
        let expected = [
            (1, "disk full: {0}".to_owned()),
            (5, "no {x} here".to_owned()),
            (8, "zero".to_owned()),
            (9, "cannot read: {p}".to_owned()),
            (10, "bad request".to_owned()),
        ];
        assert_eq!(errors(code), expected);
    }

    #[test]
    fn other_strings_are_not_messages() {
        assert!(errors("let a = \"text\"; f(\"text\"); error(\"text\"); Err(problem)").is_empty());
    }
}
