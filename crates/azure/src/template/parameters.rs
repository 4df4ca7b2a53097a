//! Parameters: declarations of the template, and values of the deployment.

use serde_json::{Map, Value, json};

use super::error::{quoted, refusal};
use super::limits::NAMES_MAX;
use super::scope::{NameKind, ValueSource};
use crate::ArmError;

/// Type of a parameter or an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterType {
    Text,
    /// A text that is never shown.
    SecretText,
    Number,
    Truth,
    Object,
    /// An object that is never shown.
    SecretObject,
    List,
}

impl ParameterType {
    /// The types with the words of Azure.
    const WORDS: [(Self, &'static str); 7] = [
        (Self::Text, "String"),
        (Self::SecretText, "SecureString"),
        (Self::Number, "Int"),
        (Self::Truth, "Bool"),
        (Self::Object, "Object"),
        (Self::SecretObject, "SecureObject"),
        (Self::List, "Array"),
    ];

    /// The type of a declaration.
    pub(super) fn of(declared: &Value, name: &str) -> Result<Self, ArmError> {
        let word = declared["type"].as_str().unwrap_or_default();
        let found = Self::WORDS.iter().find(|(_, spelling)| spelling.eq_ignore_ascii_case(word));
        found.map(|(kind, _)| *kind).ok_or_else(|| {
            refusal(format!("the type of {} is not one of String, Int, Bool, Object, Array", quoted(&name)))
        })
    }

    /// The word of Azure.
    pub(super) fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }

    /// True if the value must never be shown.
    pub(super) fn is_secret(self) -> bool {
        matches!(self, Self::SecretText | Self::SecretObject)
    }

    /// Returns true if a value has this type.
    pub(super) fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text | Self::SecretText => value.is_string(),
            Self::Number => value.is_i64(),
            Self::Truth => value.is_boolean(),
            Self::Object | Self::SecretObject => value.is_object(),
            Self::List => value.is_array(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) kind: ParameterType,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
struct Bounds {
    allowed: Option<Vec<Value>>,
    value: (Option<i64>, Option<i64>),
    length: (Option<i64>, Option<i64>),
}

/// Source of the value of a parameter.
pub(super) type NamedSource = ((NameKind, String), ValueSource);

/// The parameters of a template, and the sources of their values.
pub(super) fn parameters(
    declared: &Value,
    given: &Value,
) -> Result<(Vec<Parameter>, Vec<NamedSource>), ArmError> {
    let declared = members(declared, "parameters")?;
    let given = members(given, "the parameters of the deployment")?;
    let is_declared = |name: &str| declared.keys().any(|key| key.eq_ignore_ascii_case(name));
    if let Some(unknown) = given.keys().find(|name| !is_declared(name)) {
        let known: Vec<_> = declared.keys().map(String::as_str).collect();
        return Err(refusal(format!(
            "the template parameters {} in the parameters file are not valid; they are not present in the original \
             template. The only supported parameters for this template are {}",
            quoted(unknown),
            quoted(&known.join(", ")),
        )));
    }
    let mut parameters = Vec::new();
    let mut sources = Vec::new();
    for (name, declared) in declared {
        let kind = ParameterType::of(declared, name)?;
        parameters.push(Parameter { name: name.clone(), kind, bounds: bounds(declared) });
        let key = (NameKind::Parameter, name.to_lowercase());
        sources.push((key, source(name, kind, declared, given)?));
    }
    Ok((parameters, sources))
}

fn source(
    name: &str,
    kind: ParameterType,
    declared: &Value,
    given: &Map<String, Value>,
) -> Result<ValueSource, ArmError> {
    let given = given.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, given)| given);
    if given.is_some_and(|given| given.get("reference").is_some()) {
        return Err(refusal(format!(
            "the parameter {} refers to a key vault, which is not supported: send its value",
            quoted(&name)
        )));
    }
    match given.map(|given| &given["value"]).filter(|value| !value.is_null()) {
        // Clients send numbers and flags of the command line as texts.
        Some(Value::String(text)) if kind == ParameterType::Number => {
            let number = text.trim().parse::<i64>();
            Ok(ValueSource::Given(number.map_or_else(|_| text.as_str().into(), Value::from)))
        }
        Some(Value::String(text)) if kind == ParameterType::Truth => {
            let truth = text.trim().to_lowercase().parse::<bool>();
            Ok(ValueSource::Given(truth.map_or_else(|_| text.as_str().into(), Value::from)))
        }
        Some(value) => Ok(ValueSource::Given(value.clone())),
        None => match declared.get("defaultValue") {
            Some(default) => Ok(ValueSource::Written(default.clone())),
            None => Err(refusal(format!(
                "the value for the template parameter {} is not provided",
                quoted(&name)
            ))),
        },
    }
}

fn bounds(declared: &Value) -> Bounds {
    let pair = |least: &str, most: &str| (declared[least].as_i64(), declared[most].as_i64());
    Bounds {
        allowed: declared["allowedValues"].as_array().cloned(),
        value: pair("minValue", "maxValue"),
        length: pair("minLength", "maxLength"),
    }
}

impl Parameter {
    /// Checks a value. Errors never contain it: it could be a secret.
    pub(super) fn check(&self, value: &Value) -> Result<(), ArmError> {
        let name = quoted(&self.name);
        if !self.kind.fits(value) {
            let kind = self.kind.word();
            return Err(refusal(format!("the value of the template parameter {name} is not of type {kind}")));
        }
        let length = match value {
            Value::String(text) => Some(text.chars().count()),
            Value::Array(list) => Some(list.len()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        };
        let length = length.and_then(|length| i64::try_from(length).ok());
        let within = |value: Option<i64>, (least, most): (Option<i64>, Option<i64>)| {
            value.is_none_or(|value| {
                least.is_none_or(|least| least <= value) && most.is_none_or(|most| value <= most)
            })
        };
        let allowed = self.bounds.allowed.as_ref().is_none_or(|allowed| match value {
            // Every element of a list must be allowed.
            Value::Array(list) => list.iter().all(|item| allowed.contains(item)) || allowed.contains(value),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                allowed.contains(value)
            }
        });
        if !allowed {
            return Err(refusal(format!(
                "the provided value for the template parameter {name} is not valid: it is not part of the allowed \
                 value(s)"
            )));
        }
        if !within(value.as_i64(), self.bounds.value) || !within(length, self.bounds.length) {
            return Err(refusal(format!(
                "the provided value for the template parameter {name} is not valid: it is too small or too large"
            )));
        }
        Ok(())
    }

    /// The parameter as a deployment shows it: a secret without its value.
    pub(super) fn shown(&self, value: &Value) -> Value {
        shown(self.kind, value)
    }
}

/// A parameter or an output as a deployment shows it: a secret without its value.
pub(super) fn shown(kind: ParameterType, value: &Value) -> Value {
    if kind.is_secret() {
        return json!({ "type": kind.word() });
    }
    json!({ "type": kind.word(), "value": value })
}

/// The members of an object; none if it is absent.
pub(super) fn members<'a>(object: &'a Value, what: &str) -> Result<&'a Map<String, Value>, ArmError> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    match object {
        Value::Null => Ok(&NONE),
        Value::Object(members) if members.len() <= NAMES_MAX => Ok(members),
        Value::Object(_) => Err(refusal(format!("{what} are at most {NAMES_MAX}"))),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(refusal(format!("{what} are to be an object")))
        }
    }
}
