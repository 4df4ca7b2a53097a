//! The functions of the template language: one table, and what their arguments are asked for.
//!
//! A function gets values and gives a value; what it makes is limited before it is made where it could be far larger
//! than what it was given.

mod collection;
mod digest;
mod logic;
mod number;
mod resource;
mod text;

use serde_json::Value;

use super::scope::{Scope, Turn};
use super::trouble::{Trouble, bad, quoted};

/// What a function is given.
pub(super) struct Arguments<'a> {
    /// The function, for messages.
    name: &'static str,
    values: &'a [Value],
}

type Function = fn(&Arguments<'_>) -> Result<Value, Trouble>;

/// A function that knows where it is called.
type Aware = fn(&Scope<'_>, &Arguments<'_>, Option<&Turn<'_>>) -> Result<Value, Trouble>;

/// As many arguments as an expression may have.
const ANY: usize = usize::MAX;

/// Name, the least and the most arguments, the function.
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

/// The same for functions that know where they are called.
const AWARE: &[(&str, usize, usize, Aware)] = &[
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

/// What a function gives.
pub(super) fn call(
    scope: &Scope<'_>,
    called: &str,
    values: &[Value],
    turn: Option<&Turn<'_>>,
) -> Result<Value, Trouble> {
    if let Some((name, least, most, function)) = find(FUNCTIONS, called, |row| row.0) {
        return function(&arguments(name, *least..=*most, values)?);
    }
    match find(AWARE, called, |row| row.0) {
        Some((name, least, most, function)) => {
            function(scope, &arguments(name, *least..=*most, values)?, turn)
        }
        None => {
            Err(bad(format!("the template function {} is not valid, or not known here", quoted(&called))))
        }
    }
}

fn find<T>(table: &'static [T], called: &str, name: fn(&T) -> &str) -> Option<&'static T> {
    table.iter().find(|row| name(row).eq_ignore_ascii_case(called))
}

fn arguments<'a>(
    name: &'static str,
    expected: std::ops::RangeInclusive<usize>,
    values: &'a [Value],
) -> Result<Arguments<'a>, Trouble> {
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
    /// An argument as it is.
    fn value(&self, place: usize) -> &'a Value {
        self.values.get(place).unwrap_or(&Value::Null)
    }

    /// An argument that is to be a text.
    fn text(&self, place: usize) -> Result<&'a str, Trouble> {
        self.value(place).as_str().ok_or_else(|| self.unlike(place, "a text"))
    }

    /// An argument that is to be a whole number.
    fn number(&self, place: usize) -> Result<i64, Trouble> {
        self.value(place).as_i64().ok_or_else(|| self.unlike(place, "a whole number"))
    }

    /// An argument that is to be a number of things.
    fn amount(&self, place: usize) -> Result<usize, Trouble> {
        let amount = self.value(place).as_u64().and_then(|amount| usize::try_from(amount).ok());
        amount.ok_or_else(|| self.unlike(place, "a whole number that is not negative"))
    }

    /// An argument that is to be true or false.
    fn truth(&self, place: usize) -> Result<bool, Trouble> {
        self.value(place).as_bool().ok_or_else(|| self.unlike(place, "true or false"))
    }

    /// An argument that is to be a list.
    fn list(&self, place: usize) -> Result<&'a Vec<Value>, Trouble> {
        self.value(place).as_array().ok_or_else(|| self.unlike(place, "a list"))
    }

    /// All of them as texts.
    fn texts(&self) -> Result<Vec<&'a str>, Trouble> {
        (0..self.values.len()).map(|place| self.text(place)).collect()
    }

    /// An argument that is something else. Its value is not told: it could be a secret.
    fn unlike(&self, place: usize, expected: &str) -> Trouble {
        self.wrong(&format!("expects {expected} as its argument {}", place + 1))
    }

    /// What is wrong with them.
    fn wrong(&self, what: &str) -> Trouble {
        bad(format!("the template function '{}' {what}", self.name))
    }
}
