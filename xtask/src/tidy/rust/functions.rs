//! The functions of a module.

use super::tokens::{Token, after_group};

/// A function with a name; closures are a part of the function around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tidy) struct Function<'a, 'b> {
    pub(in crate::tidy) name: &'a str,
    /// The type whose `impl` it is in.
    pub(in crate::tidy) of: Option<&'a str>,
    /// It is `pub` without a restriction.
    pub(in crate::tidy) is_public: bool,
    /// Counted from 0.
    pub(in crate::tidy) line: usize,
    /// Parameters, result and conditions.
    pub(in crate::tidy) signature: &'b [Token<'a>],
    /// With its braces; empty, if it has none.
    pub(in crate::tidy) body: &'b [Token<'a>],
}

pub(in crate::tidy) fn functions<'a, 'b>(tokens: &'b [Token<'a>]) -> Vec<Function<'a, 'b>> {
    let mut found = Vec::new();
    // The `impl` that was entered last, and the index behind it.
    let mut within = (None, 0);
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).filter(|next| next.is_word());
        match (token.text, next) {
            ("impl", _) if !is_type(tokens, at) => {
                let (of, start) = implemented(tokens, at + 1);
                within = (of, after_group(tokens, start));
            }
            ("fn", Some(name)) => {
                let start = body_start(tokens, at + 2);
                let has_body = tokens.get(start).is_some_and(|token| token.text == "{");
                let end = if has_body { after_group(tokens, start) } else { start };
                found.push(Function {
                    name: name.text,
                    of: within.0.filter(|_| at < within.1),
                    is_public: is_public(&tokens[..at]),
                    line: token.line,
                    signature: &tokens[at + 2..start],
                    body: &tokens[start..end],
                });
            }
            _ => {}
        }
    }
    found
}

/// `impl` begins a type, as in `-> impl Iterator`, and no block.
fn is_type(tokens: &[Token<'_>], at: usize) -> bool {
    let before = at.checked_sub(1).map_or("", |before| tokens[before].text);
    !matches!(before, "" | "}" | ";" | "]" | "unsafe" | "{")
}

/// The type of an `impl` whose head begins at `start`, and the index of its block.
fn implemented<'a>(tokens: &[Token<'a>], start: usize) -> (Option<&'a str>, usize) {
    let end =
        tokens[start..].iter().position(|token| token.text == "{").map_or(tokens.len(), |at| start + at);
    let head = &tokens[start..end];
    let head = match head.iter().rposition(|token| token.text == "for") {
        Some(at) => &head[at + 1..],
        None if head.first().is_some_and(|token| token.text == "<") => &head[after_angles(head)..],
        None => head,
    };
    let path = head.iter().take_while(|token| token.text != "<" && token.text != "where");
    (path.filter(|token| token.is_word()).last().map(|token| token.text), end)
}

/// The index behind the `<…>` at the start.
fn after_angles(tokens: &[Token<'_>]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The index of the brace or semicolon behind a signature.
fn body_start(tokens: &[Token<'_>], start: usize) -> usize {
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "{" | ";" => return at,
            _ if token.opens() => at = after_group(tokens, at),
            _ => at += 1,
        }
    }
    tokens.len()
}

fn is_public(before: &[Token<'_>]) -> bool {
    let is_qualifier = |token: &&Token<'_>| {
        matches!(token.text, "async" | "const" | "unsafe" | "extern") || token.text.starts_with('"')
    };
    before.iter().rev().find(|token| !is_qualifier(token)).is_some_and(|token| token.text == "pub")
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens;
    use super::*;

    #[test]
    fn a_function_is_found_with_the_type_it_belongs_to() {
        let source = "pub fn a() -> impl Iterator<Item = [u8; 2]> { fn inner() {} }\n\
                      impl<'a, T: Copy> Of<'a, T> where T: Send { pub const fn b(&mut self) {} pub(crate) fn c(); }\n\
                      impl fmt::Display for crate::Shown<'_> { fn fmt(&self) {} }\nfn d(x: fn(u8)) {}";
        let found = tokens(source);
        let shown: Vec<_> = functions(&found)
            .iter()
            .map(|function| (function.name, function.of, function.is_public, function.line))
            .collect();
        let expected = [
            ("a", None, true, 0),
            ("inner", None, false, 0),
            ("b", Some("Of"), true, 1),
            ("c", Some("Of"), false, 1),
            ("fmt", Some("Shown"), false, 2),
            ("d", None, false, 3),
        ];
        assert_eq!(shown, expected);
    }
}
