//! Evaluation of values: replaces the expressions in a value by their results.

use serde_json::{Map, Value};

use super::error::{TemplateError, bad, quoted};
use super::functions;
use super::limits::{COPIES_MAX, EXPRESSION_WEIGHT, VALUE_WEIGHT};
use super::parser::{Expression, TextKind, parse, read};
use super::scope::{LoopIteration, Scope};

impl Scope<'_> {
    /// Evaluates a value.
    ///
    /// A pending reference does not hide errors in the rest of the value.
    pub(super) fn value(
        &self,
        written: &Value,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<Value, TemplateError> {
        self.spend(VALUE_WEIGHT)?;
        self.deeper(|| match written {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(written.clone()),
            Value::String(text) => self.text(text, iteration),
            Value::Array(list) => {
                Ok(Value::Array(self.all(list.iter(), |item| self.value(item, iteration))?))
            }
            Value::Object(members) => self.object(members, iteration),
        })
    }

    /// Evaluates a text, if it is an expression.
    fn text(&self, text: &str, iteration: Option<&LoopIteration<'_>>) -> Result<Value, TemplateError> {
        self.spend(text.len() as u64)?;
        match read(text) {
            TextKind::Literal(text) => Ok(Value::String(text.to_owned())),
            TextKind::Expression(inner) => {
                self.spend(inner.len() as u64 * EXPRESSION_WEIGHT)?;
                self.expression(&parse(inner)?, iteration)
            }
        }
    }

    fn object(
        &self,
        members: &Map<String, Value>,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<Value, TemplateError> {
        let mut later = false;
        let mut evaluated = Map::new();
        for (key, written) in members {
            if let (true, Some(loops)) = (key == "copy", loops(written)) {
                let made = self.all(loops.iter(), |entry| self.repeated(entry, iteration));
                match made {
                    Ok(made) => {
                        evaluated.extend(made.into_iter().map(|(name, list)| (name, Value::Array(list))));
                    }
                    Err(TemplateError::Later) => later = true,
                    Err(refused) => return Err(refused),
                }
                continue;
            }
            let key = match self.text(key, iteration)? {
                Value::String(key) => key,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    return Err(bad(format!("the name of a property is to be a text: {}", quoted(key))));
                }
            };
            match self.value(written, iteration) {
                Ok(value) => drop(evaluated.insert(key, value)),
                Err(TemplateError::Later) => later = true,
                Err(refused) => return Err(refused),
            }
        }
        if later { Err(TemplateError::Later) } else { Ok(Value::Object(evaluated)) }
    }

    /// Evaluates a loop that makes a list: `{"name", "count", "input"}`. Returns its name and items.
    pub(super) fn repeated(
        &self,
        entry: &Value,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<(String, Vec<Value>), TemplateError> {
        let name = self.value(&entry["name"], iteration)?;
        let Some(name) = name.as_str() else { return Err(bad("a loop has no name")) };
        let count = self.count(&entry["count"], iteration)?;
        let iterations = (0..count).map(|index| LoopIteration { name, index, outer: iteration });
        let list = self.all(iterations, |iteration| self.value(&entry["input"], Some(&iteration)))?;
        Ok((name.to_owned(), list))
    }

    /// Number of iterations of a loop.
    pub(super) fn count(
        &self,
        written: &Value,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<usize, TemplateError> {
        let count = self.value(written, iteration)?;
        count
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| *count <= COPIES_MAX)
            .ok_or_else(|| bad(format!("the count of a loop is a whole number from 0 to {COPIES_MAX}")))
    }

    /// Evaluates all items. Errors take precedence over pending references.
    fn all<I, T>(
        &self,
        items: impl Iterator<Item = I>,
        evaluate: impl Fn(I) -> Result<T, TemplateError>,
    ) -> Result<Vec<T>, TemplateError> {
        let mut later = false;
        let mut all = Vec::new();
        for item in items {
            match evaluate(item) {
                Ok(value) => all.push(value),
                Err(TemplateError::Later) => later = true,
                Err(refused) => return Err(refused),
            }
        }
        if later { Err(TemplateError::Later) } else { Ok(all) }
    }

    pub(super) fn expression(
        &self,
        expression: &Expression,
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<Value, TemplateError> {
        self.spend(VALUE_WEIGHT)?;
        self.deeper(|| match expression {
            Expression::Text(text) => self.made(Value::String(text.clone())),
            Expression::Number(number) => Ok((*number).into()),
            Expression::Call(name, arguments) if name.eq_ignore_ascii_case("if") => {
                self.choice(arguments, iteration)
            }
            Expression::Call(name, arguments) => {
                let values = self.all(arguments.iter(), |argument| self.expression(argument, iteration))?;
                self.made(functions::call(self, name, &values, iteration)?)
            }
            Expression::Member(of, key) => {
                let (of, key) = (self.expression(of, iteration), self.expression(key, iteration)?);
                self.member(of?, &key)
            }
        })
    }

    /// `if`: evaluates only the chosen branch.
    fn choice(
        &self,
        arguments: &[Expression],
        iteration: Option<&LoopIteration<'_>>,
    ) -> Result<Value, TemplateError> {
        let [condition, yes, no] = arguments else {
            return Err(bad("the template function 'if' expects three arguments"));
        };
        match self.expression(condition, iteration)? {
            Value::Bool(true) => self.expression(yes, iteration),
            Value::Bool(false) => self.expression(no, iteration),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Err(bad("the first argument of the template function 'if' is to be true or false"))
            }
        }
    }

    /// A property of an object, or an element of a list.
    fn member(&self, of: Value, key: &Value) -> Result<Value, TemplateError> {
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

/// The loops of a `copy` member, if it has that form.
fn loops(written: &Value) -> Option<&Vec<Value>> {
    let loops = written.as_array()?;
    loops.iter().all(|entry| entry.get("count").is_some() && entry.get("input").is_some()).then_some(loops)
}
