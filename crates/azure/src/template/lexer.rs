//! Tokens of an expression: `concat('a', variables('b').c[0])`, without the enclosing brackets.

use super::error::{TemplateError, bad, quoted};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Name of a function or a property.
    Name(String),
    /// A quoted text; a quote inside is doubled.
    Text(String),
    Number(i64),
    /// One of `( ) [ ] . ,`
    Mark(char),
}

/// Splits an expression into tokens.
pub(super) fn tokens(expression: &str) -> Result<Vec<Token>, TemplateError> {
    let mut rest = expression.trim_start();
    let mut tokens = Vec::new();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '\'' => text(rest)?,
            '-' | '0'..='9' => number(rest)?,
            '(' | ')' | '[' | ']' | '.' | ',' => (Token::Mark(first), &rest[first.len_utf8()..]),
            _ if is_of_name(first) => name(rest),
            _ => {
                return Err(bad(format!("the character {} means nothing in an expression", quoted(&first))));
            }
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '$'
}

fn name(text: &str) -> (Token, &str) {
    let end = text.find(|letter| !is_of_name(letter)).unwrap_or(text.len());
    (Token::Name(text[..end].to_owned()), &text[end..])
}

fn number(text: &str) -> Result<(Token, &str), TemplateError> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = text.len() - digits.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let number = text[..end].parse().map_err(|_| bad(format!("not a whole number: {}", quoted(&text))))?;
    Ok((Token::Number(number), &text[end..]))
}

fn text(from: &str) -> Result<(Token, &str), TemplateError> {
    let mut text = String::new();
    let mut rest = &from[1..];
    loop {
        let Some((before, after)) = rest.split_once('\'') else {
            return Err(bad(format!("a text without its closing quote: {}", quoted(&from))));
        };
        text.push_str(before);
        match after.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                rest = more;
            }
            None => return Ok((Token::Text(text), after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_names_texts_numbers_and_marks() {
        let words = tokens(" f('it''s', -12 ,a_$1)[0].b ").unwrap();
        let mark = Token::Mark;
        let name = |text: &str| Token::Name(text.to_owned());
        let expected = [
            name("f"),
            mark('('),
            Token::Text("it's".to_owned()),
            mark(','),
            Token::Number(-12),
            mark(','),
            name("a_$1"),
            mark(')'),
            mark('['),
            Token::Number(0),
            mark(']'),
            mark('.'),
            name("b"),
        ];
        assert_eq!(words, expected);
        assert_eq!(tokens("''").unwrap(), [Token::Text(String::new())]);
        assert_eq!(tokens("").unwrap(), []);
    }

    #[test]
    fn invalid_tokens_are_rejected() {
        for wrong in ["'open", "'open''", "-", "99999999999999999999", "f(é)", "a + b", "\"x\""] {
            assert!(matches!(tokens(wrong), Err(TemplateError::Refused(_))), "{wrong}");
        }
    }
}
