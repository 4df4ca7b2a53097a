//! The functions of the template language: a table, and access to arguments.
//!
//! A function maps values to a value. Where a result could be far larger than the arguments, its size is limited before
//! it is built.

mod collection;
mod digest;
mod logic;
mod number;
mod resource;
mod text;

use serde_json::Value;

use super::error::{TemplateError, bad, quoted};
use super::scope::{LoopIteration, Scope};

/// Arguments of a function.
pub(super) struct Arguments<'a> {
    /// Name of the function, for messages.
    name: &'static str,
    values: &'a [Value],
}

type Function = fn(&Arguments<'_>) -> Result<Value, TemplateError>;

/// A function that needs the scope and the loop of its call.
type ScopedFunction =
    fn(&Scope<'_>, &Arguments<'_>, Option<&LoopIteration<'_>>) -> Result<Value, TemplateError>;

/// No maximum number of arguments.
const ANY: usize = usize::MAX;

/// Name, minimum and maximum number of arguments, function.
const FUNCTIONS: &[(&str, usize, usize, Function)] = &[
    ("add", 2, 2, number::add),
    ("and", 1, ANY, logic::and),
    ("array", 1, 1, collection::array),
    ("base64", 1, 1, text::base64),
    ("bool", 1, 1, logic::bool),
    ("coalesce", 1, ANY, logic::coalesce),
    ("concat", 1, ANY, collection::concat),
    ("contains", 2, 2, collection::contains),
    ("createArray", 0, ANY, collection::create_array),
    ("createObject", 0, ANY, collection::create_object),
    ("div", 2, 2, number::div),
    ("empty", 1, 1, collection::empty),
    ("endsWith", 2, 2, text::ends_with),
    ("equals", 2, 2, logic::equals),
    ("false", 0, 0, logic::no),
    ("first", 1, 1, collection::first),
    ("format", 1, ANY, text::format),
    ("greater", 2, 2, logic::greater),
    ("greaterOrEquals", 2, 2, logic::greater_or_equals),
    ("guid", 1, ANY, digest::guid),
    ("indexOf", 2, 2, text::index_of),
    ("int", 1, 1, number::int),
    ("join", 2, 2, collection::join),
    ("json", 1, 1, text::json),
    ("last", 1, 1, collection::last),
    ("length", 1, 1, collection::length),
    ("less", 2, 2, logic::less),
    ("lessOrEquals", 2, 2, logic::less_or_equals),
    ("max", 1, ANY, number::max),
    ("min", 1, ANY, number::min),
    ("mod", 2, 2, number::modulo),
    ("mul", 2, 2, number::mul),
    ("not", 1, 1, logic::not),
    ("null", 0, 0, logic::null),
    ("or", 1, ANY, logic::or),
    ("padLeft", 2, 3, text::pad_left),
    ("range", 2, 2, collection::range),
    ("replace", 3, 3, text::replace),
    ("skip", 2, 2, collection::skip),
    ("split", 2, 2, text::split),
    ("startsWith", 2, 2, text::starts_with),
    ("string", 1, 1, text::string),
    ("sub", 2, 2, number::sub),
    ("substring", 2, 3, text::substring),
    ("take", 2, 2, collection::take),
    ("toLower", 1, 1, text::to_lower),
    ("toUpper", 1, 1, text::to_upper),
    ("trim", 1, 1, text::trim),
    ("true", 0, 0, logic::yes),
    ("union", 2, ANY, collection::union),
    ("uniqueString", 1, ANY, digest::unique_string),
];

/// The same for functions that need the scope.
const SCOPED_FUNCTIONS: &[(&str, usize, usize, ScopedFunction)] = &[
    ("copyIndex", 0, 2, resource::copy_index),
    ("deployment", 0, 0, resource::deployment),
    ("parameters", 1, 1, resource::parameters),
    ("providers", 1, 2, resource::providers),
    ("reference", 1, 3, resource::reference),
    ("resourceGroup", 0, 0, resource::resource_group),
    ("resourceId", 2, ANY, resource::resource_id),
    ("subscription", 0, 0, resource::subscription),
    ("subscriptionResourceId", 2, ANY, resource::subscription_resource_id),
    ("variables", 1, 1, resource::variables),
];

pub(super) fn call(
    scope: &Scope<'_>,
    called: &str,
    values: &[Value],
    iteration: Option<&LoopIteration<'_>>,
) -> Result<Value, TemplateError> {
    if let Some((name, least, most, function)) = find(FUNCTIONS, called, |row| row.0) {
        return function(&arguments(name, *least..=*most, values)?);
    }
    match find(SCOPED_FUNCTIONS, called, |row| row.0) {
        Some((name, least, most, function)) => {
            function(scope, &arguments(name, *least..=*most, values)?, iteration)
        }
        None => Err(bad(format!("the template function {} is not valid, or not supported", quoted(&called)))),
    }
}

fn find<T>(table: &'static [T], called: &str, name: fn(&T) -> &str) -> Option<&'static T> {
    table.iter().find(|row| name(row).eq_ignore_ascii_case(called))
}

fn arguments<'a>(
    name: &'static str,
    expected: std::ops::RangeInclusive<usize>,
    values: &'a [Value],
) -> Result<Arguments<'a>, TemplateError> {
    if expected.contains(&values.len()) {
        return Ok(Arguments { name, values });
    }
    let expected = match (*expected.start(), *expected.end()) {
        (least, ANY) => format!("at least {least}"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    };
    let count = values.len();
    Err(bad(format!("the template function '{name}' expects {expected} arguments and has {count}")))
}

impl<'a> Arguments<'a> {
    fn value(&self, position: usize) -> &'a Value {
        self.values.get(position).unwrap_or(&Value::Null)
    }

    /// An argument that must be a text.
    fn text(&self, position: usize) -> Result<&'a str, TemplateError> {
        self.value(position).as_str().ok_or_else(|| self.unlike(position, "a text"))
    }

    /// An argument that must be an integer.
    fn number(&self, position: usize) -> Result<i64, TemplateError> {
        self.value(position).as_i64().ok_or_else(|| self.unlike(position, "a whole number"))
    }

    /// An argument that must be a non-negative integer.
    fn amount(&self, position: usize) -> Result<usize, TemplateError> {
        let amount = self.value(position).as_u64().and_then(|amount| usize::try_from(amount).ok());
        amount.ok_or_else(|| self.unlike(position, "a whole number that is not negative"))
    }

    /// An argument that must be a flag.
    fn truth(&self, position: usize) -> Result<bool, TemplateError> {
        self.value(position).as_bool().ok_or_else(|| self.unlike(position, "true or false"))
    }

    /// An argument that must be a list.
    fn list(&self, position: usize) -> Result<&'a Vec<Value>, TemplateError> {
        self.value(position).as_array().ok_or_else(|| self.unlike(position, "a list"))
    }

    /// All arguments as texts.
    fn texts(&self) -> Result<Vec<&'a str>, TemplateError> {
        (0..self.values.len()).map(|position| self.text(position)).collect()
    }

    /// Error for an argument of the wrong type. It never contains the value, which could be a secret.
    fn unlike(&self, position: usize, expected: &str) -> TemplateError {
        self.wrong(&format!("expects {expected} as its argument {}", position + 1))
    }

    /// Error with the name of the function.
    fn wrong(&self, what: &str) -> TemplateError {
        bad(format!("the template function '{}' {what}", self.name))
    }
}
