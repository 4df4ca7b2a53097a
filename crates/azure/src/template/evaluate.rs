//! What is written in a template, evaluated: values with expressions in them become values without.

use serde_json::{Map, Value};

use super::functions;
use super::limits::{COPIES_MAX, EXPRESSION_WEIGHT, VALUE_WEIGHT};
use super::parser::{Expression, Reading, parse, read};
use super::scope::{Scope, Turn};
use super::trouble::{Trouble, bad, quoted};

impl Scope<'_> {
    /// A value as it is written, evaluated.
    ///
    /// What has to wait for a resource does not hide what is wrong in the rest of it.
    pub(super) fn value(&self, written: &Value, turn: Option<&Turn<'_>>) -> Result<Value, Trouble> {
        self.spend(VALUE_WEIGHT)?;
        self.deeper(|| match written {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(written.clone()),
            Value::String(text) => self.text(text, turn),
            Value::Array(list) => Ok(Value::Array(self.all(list.iter(), |item| self.value(item, turn))?)),
            Value::Object(members) => self.object(members, turn),
        })
    }

    /// A text as it is written, evaluated if it is an expression.
    fn text(&self, text: &str, turn: Option<&Turn<'_>>) -> Result<Value, Trouble> {
        self.spend(text.len() as u64)?;
        match read(text) {
            Reading::Literal(text) => Ok(Value::String(text.to_owned())),
            Reading::Expression(inner) => {
                self.spend(inner.len() as u64 * EXPRESSION_WEIGHT)?;
                self.expression(&parse(inner)?, turn)
            }
        }
    }

    fn object(&self, members: &Map<String, Value>, turn: Option<&Turn<'_>>) -> Result<Value, Trouble> {
        let mut later = false;
        let mut evaluated = Map::new();
        for (key, written) in members {
            if let (true, Some(loops)) = (key == "copy", loops(written)) {
                let made = self.all(loops.iter(), |entry| self.repeated(entry, turn));
                match made {
                    Ok(made) => {
                        evaluated.extend(made.into_iter().map(|(name, list)| (name, Value::Array(list))));
                    }
                    Err(Trouble::Later) => later = true,
                    Err(refused) => return Err(refused),
                }
                continue;
            }
            let key = match self.text(key, turn)? {
                Value::String(key) => key,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(bad(format!("the name of a property is to be a text: {}", quoted(key))));
                }
            };
            match self.value(written, turn) {
                Ok(value) => drop(evaluated.insert(key, value)),
                Err(Trouble::Later) => later = true,
                Err(refused) => return Err(refused),
            }
        }
        if later { Err(Trouble::Later) } else { Ok(Value::Object(evaluated)) }
    }

    /// A list that a loop makes, and what it is called: `{"name", "count", "input"}`.
    pub(super) fn repeated(
        &self,
        entry: &Value,
        turn: Option<&Turn<'_>>,
    ) -> Result<(String, Vec<Value>), Trouble> {
        let name = self.value(&entry["name"], turn)?;
        let Some(name) = name.as_str() else { return Err(bad("a loop has no name")) };
        let count = self.count(&entry["count"], turn)?;
        let turns = (0..count).map(|index| Turn { name, index, outer: turn });
        let list = self.all(turns, |turn| self.value(&entry["input"], Some(&turn)))?;
        Ok((name.to_owned(), list))
    }

    /// How often a loop goes round.
    pub(super) fn count(&self, written: &Value, turn: Option<&Turn<'_>>) -> Result<usize, Trouble> {
        let count = self.value(written, turn)?;
        count
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| *count <= COPIES_MAX)
            .ok_or_else(|| bad(format!("the count of a loop is a whole number from 0 to {COPIES_MAX}")))
    }

    /// All of them, or why not: what is wrong first, then what has to wait.
    fn all<I, T>(
        &self,
        items: impl Iterator<Item = I>,
        evaluate: impl Fn(I) -> Result<T, Trouble>,
    ) -> Result<Vec<T>, Trouble> {
        let mut later = false;
        let mut all = Vec::new();
        for item in items {
            match evaluate(item) {
                Ok(value) => all.push(value),
                Err(Trouble::Later) => later = true,
                Err(refused) => return Err(refused),
            }
        }
        if later { Err(Trouble::Later) } else { Ok(all) }
    }

    /// What an expression comes to.
    pub(super) fn expression(
        &self,
        expression: &Expression,
        turn: Option<&Turn<'_>>,
    ) -> Result<Value, Trouble> {
        self.spend(VALUE_WEIGHT)?;
        self.deeper(|| match expression {
            Expression::Text(text) => self.made(Value::String(text.clone())),
            Expression::Number(number) => Ok((*number).into()),
            Expression::Call(name, arguments) if name.eq_ignore_ascii_case("if") => {
                self.choice(arguments, turn)
            }
            Expression::Call(name, arguments) => {
                let values = self.all(arguments.iter(), |argument| self.expression(argument, turn))?;
                self.made(functions::call(self, name, &values, turn)?)
            }
            Expression::Member(of, key) => {
                let (of, key) = (self.expression(of, turn), self.expression(key, turn)?);
                self.member(of?, &key)
            }
        })
    }

    /// `if`: what is not chosen is not evaluated.
    fn choice(&self, arguments: &[Expression], turn: Option<&Turn<'_>>) -> Result<Value, Trouble> {
        let [condition, yes, no] = arguments else {
            return Err(bad("the template function 'if' expects three arguments"));
        };
        match self.expression(condition, turn)? {
            Value::Bool(true) => self.expression(yes, turn),
            Value::Bool(false) => self.expression(no, turn),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(bad("the first argument of the template function 'if' is to be true or false"))
            }
        }
    }

    /// A property of an object, or an element of a list.
    fn member(&self, of: Value, key: &Value) -> Result<Value, Trouble> {
        let found = match (of, key) {
            (Value::Object(mut members), Value::String(key)) => {
                let exact = members.get_mut(key.as_str()).map(Value::take);
                match exact {
                    Some(value) => Some(value),
                    None => {
                        self.spend(members.len() as u64)?;
                        let is_key = |name: &str| name.eq_ignore_ascii_case(key);
                        members.into_iter().find(|(name, _)| is_key(name)).map(|(_, value)| value)
                    }
                }
            }
            (Value::Array(mut list), Value::Number(index)) => {
                let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
                index.filter(|index| *index < list.len()).map(|index| list.swap_remove(index))
            }
            _ => None,
        };
        let key = match key {
            Value::String(key) => quoted(key),
            Value::Number(index) => quoted(index),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => "of that kind".to_owned(),
        };
        found.ok_or_else(|| bad(format!("the language expression property {key} does not exist")))
    }
}

/// Loops that make lists, if that is what is written at `copy`.
fn loops(written: &Value) -> Option<&Vec<Value>> {
    let loops = written.as_array()?;
    loops.iter().all(|entry| entry.get("count").is_some() && entry.get("input").is_some()).then_some(loops)
}
