//! Parser of expressions.

use super::error::{TemplateError, bad, quoted};
use super::lexer::{Token, tokens};
use super::limits::{ARGUMENTS_MAX, EXPRESSION_BYTES_MAX, NESTING_MAX};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expression {
    Text(String),
    Number(i64),
    /// A function with its arguments.
    Call(String, Vec<Expression>),
    /// A property or an element of a value.
    Member(Box<Expression>, Box<Expression>),
}

/// Kind of a text in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextKind<'a> {
    Literal(&'a str),
    /// An expression, without its brackets.
    Expression(&'a str),
}

/// Distinguishes expressions from texts: `[f()]` is one, `[[f()]` is the text `[f()]`.
pub(super) fn read(text: &str) -> TextKind<'_> {
    match text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) if inner.starts_with('[') => TextKind::Literal(&text[1..]),
        Some(inner) => TextKind::Expression(inner),
        None => TextKind::Literal(text),
    }
}

pub(super) fn parse(text: &str) -> Result<Expression, TemplateError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(bad(format!("an expression has at most {EXPRESSION_BYTES_MAX} bytes")));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, text };
    let expression = parser.expression(0)?;
    if parser.tokens.is_empty() { Ok(expression) } else { Err(parser.surprise()) }
}

struct Parser<'a> {
    tokens: &'a [Token],
    /// The whole expression, for messages.
    text: &'a str,
}

impl Parser<'_> {
    fn expression(&mut self, depth: usize) -> Result<Expression, TemplateError> {
        if depth > NESTING_MAX {
            return Err(bad(format!("an expression is nested at most {NESTING_MAX} deep")));
        }
        let mut expression = match self.next() {
            Some(Token::Text(text)) => Expression::Text(text),
            Some(Token::Number(number)) => Expression::Number(number),
            Some(Token::Name(name)) => Expression::Call(name, self.arguments(depth)?),
            Some(Token::Mark(_)) | None => return Err(self.surprise()),
        };
        for _ in 0..=NESTING_MAX {
            let key = if self.take('.') {
                let Some(Token::Name(name)) = self.next() else { return Err(self.surprise()) };
                Expression::Text(name)
            } else if self.take('[') {
                let key = self.expression(depth + 1)?;
                self.expect(']')?;
                key
            } else {
                return Ok(expression);
            };
            expression = Expression::Member(Box::new(expression), Box::new(key));
        }
        Err(bad(format!("an expression goes at most {NESTING_MAX} properties deep")))
    }

    fn arguments(&mut self, depth: usize) -> Result<Vec<Expression>, TemplateError> {
        self.expect('(')?;
        let mut arguments = Vec::new();
        if self.take(')') {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression(depth + 1)?);
            if arguments.len() > ARGUMENTS_MAX {
                return Err(bad(format!("a function has at most {ARGUMENTS_MAX} arguments")));
            }
            if self.take(')') {
                return Ok(arguments);
            }
            self.expect(',')?;
        }
    }

    fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }

    fn take(&mut self, mark: char) -> bool {
        let found = self.tokens.first() == Some(&Token::Mark(mark));
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn expect(&mut self, mark: char) -> Result<(), TemplateError> {
        if self.take(mark) { Ok(()) } else { Err(self.surprise()) }
    }

    fn surprise(&self) -> TemplateError {
        bad(format!("the language expression {} is not valid", quoted(&self.text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Expression {
        Expression::Text(text.to_owned())
    }

    #[test]
    fn brackets_make_an_expression_and_two_do_not() {
        assert_eq!(read("[f()]"), TextKind::Expression("f()"));
        assert_eq!(read("[[f()]"), TextKind::Literal("[f()]"));
        for literal in ["", "f()", "[f()", "f()]", "[", "]"] {
            assert_eq!(read(literal), TextKind::Literal(literal));
        }
        assert_eq!(read("[]"), TextKind::Expression(""));
    }

    #[test]
    fn calls_and_properties_are_read() {
        let read = parse("f(g().a['b'], 1)[0]").unwrap();
        let g = Expression::Call("g".to_owned(), vec![]);
        let member = |of, key| Expression::Member(Box::new(of), Box::new(key));
        let argument = member(member(g, text("a")), text("b"));
        let call = Expression::Call("f".to_owned(), vec![argument, Expression::Number(1)]);
        assert_eq!(read, member(call, Expression::Number(0)));
    }

    #[test]
    fn invalid_expressions_are_rejected() {
        for wrong in
            ["", "f", "f(", "f(,)", "f(1,)", "f(1 2)", "f())", "f().", "f()[", "f()[]", ")", "f().'a'"]
        {
            assert!(matches!(parse(wrong), Err(TemplateError::Refused(_))), "{wrong}");
        }
    }

    #[test]
    fn expressions_have_limits() {
        let nested = |depth: usize| format!("{}1{}", "f(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(NESTING_MAX)).is_ok());
        assert!(parse(&nested(NESTING_MAX + 1)).is_err());
        assert!(parse(&format!("f(){}", ".a".repeat(NESTING_MAX))).is_ok());
        assert!(parse(&format!("f(){}", ".a".repeat(NESTING_MAX + 1))).is_err());
        assert!(parse(&format!("f({}1)", "1,".repeat(ARGUMENTS_MAX - 1))).is_ok());
        assert!(parse(&format!("f({}1)", "1,".repeat(ARGUMENTS_MAX))).is_err());
        assert!(parse(&format!("'{}'", "x".repeat(EXPRESSION_BYTES_MAX - 2))).is_ok());
        assert!(parse(&format!("'{}'", "x".repeat(EXPRESSION_BYTES_MAX - 1))).is_err());
    }
}
