//! A source as tokens, without comments.

/// A token and its line, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl Token<'_> {
    /// A keyword or an identifier.
    pub(in crate::tidy) fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    }

    pub(in crate::tidy) fn opens(&self) -> bool {
        matches!(self.text, "(" | "[" | "{")
    }

    pub(in crate::tidy) fn closes(&self) -> bool {
        matches!(self.text, ")" | "]" | "}")
    }
}

/// Marks of two characters; every other mark is a token by itself.
const PAIRS: [&str; 17] =
    ["::", "=>", "->", "==", "!=", "<=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "&&", "||", ".."];

pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { rest: source, line: 0 };
    std::iter::from_fn(|| lexer.next_token()).collect()
}

/// The index behind the group of brackets that opens at `start`.
pub(crate) fn after_group(tokens: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(start) {
        if token.opens() {
            depth += 1;
        } else if token.closes() {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn next_token(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let line = self.line;
        let text = self.rest;
        let length = self.token_length()?;
        self.skip(length);
        // A raw identifier is the same name without its mark.
        let text = &text[..length];
        Some(Token { text: text.strip_prefix("r#").filter(|name| !name.contains('"')).unwrap_or(text), line })
    }

    fn skip(&mut self, length: usize) {
        let (skipped, rest) = self.rest.split_at(length);
        self.line += skipped.matches('\n').count();
        self.rest = rest;
    }

    fn skip_blanks(&mut self) {
        loop {
            let blanks = self.rest.len() - self.rest.trim_start().len();
            self.skip(blanks);
            if self.rest.starts_with("//") {
                self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                self.skip(block_comment(self.rest));
            } else {
                return;
            }
        }
    }

    fn token_length(&self) -> Option<usize> {
        let rest = self.rest;
        let first = rest.chars().next()?;
        if let Some(length) = text_literal(rest) {
            return Some(length);
        }
        if first == '\'' {
            return Some(character_or_lifetime(rest));
        }
        let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
        if is_of_word(first) {
            let mark = if rest.starts_with("r#") { 2 } else { 0 };
            return Some(mark + rest[mark..].find(|c| !is_of_word(c)).unwrap_or(rest.len() - mark));
        }
        let pair = PAIRS.iter().find(|pair| rest.starts_with(**pair));
        Some(pair.map_or(first.len_utf8(), |pair| pair.len()))
    }
}

/// The length of a comment; comments may be nested.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let step = &text[at..];
        if step.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if step.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += step.chars().next().map_or(1, char::len_utf8);
        }
    }
    at
}

/// The length of a string literal of any kind: `"a"`, `b"a"`, `c"a"`, `r"a"`, `br##"a"##`.
fn text_literal(text: &str) -> Option<usize> {
    let letters = text.find(|c: char| !matches!(c, 'b' | 'c' | 'r'))?;
    let marks = text[letters..].find(|c| c != '#')?;
    let open = letters + marks;
    if letters > 2 || !text[open..].starts_with('"') {
        return None;
    }
    if text[..letters].contains('r') {
        let end = format!("\"{}", "#".repeat(marks));
        return Some(text[open + 1..].find(&end).map_or(text.len(), |at| open + 1 + at + end.len()));
    }
    if marks > 0 {
        return None;
    }
    let mut escaped = false;
    let end = text[open + 1..].find(|c: char| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    Some(end.map_or(text.len(), |at| open + 1 + at + 1))
}

/// The length of `'a'`, `'\n'`, or of a lifetime.
fn character_or_lifetime(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            text[after..].find('\'').map_or(text.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => {
            let name = text[1..].find(|c: char| !c.is_alphanumeric() && c != '_');
            name.map_or(text.len(), |end| 1 + end.max(1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_and_marks_are_tokens_and_comments_are_not() {
        let source = "a::b(c) // d\n/* e /* f */ g */ -> h += 1;";
        assert_eq!(texts(source), ["a", "::", "b", "(", "c", ")", "->", "h", "+=", "1", ";"]);
        assert_eq!(tokens(source)[6].line, 1);
    }

    #[test]
    fn a_literal_is_one_token() {
        let source = "\"a \\\" b\" b\"c\" r#\"d \" e\"# 'f' '\\'' '\\u{1f}' 'g r#type br";
        let expected =
            ["\"a \\\" b\"", "b\"c\"", "r#\"d \" e\"#", "'f'", "'\\''", "'\\u{1f}'", "'g", "type", "br"];
        assert_eq!(texts(source), expected);
    }

    #[test]
    fn a_group_ends_with_its_own_bracket() {
        let found = tokens("f(a[b], {c}) d");
        assert_eq!(found[after_group(&found, 1)].text, "d");
    }
}
