//! A JSON schema of the few keywords that the schemas of the project use. It panics at a keyword that it does not know.

use std::path::Path;

use serde_json::Value;

/// Keywords that only describe.
const NOTES: [&str; 4] = ["$schema", "$defs", "title", "description"];

pub struct JsonSchema(Value);

impl JsonSchema {
    pub fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    pub fn read(file: &Path) -> Self {
        Self::parse(&std::fs::read_to_string(file).unwrap())
    }

    pub fn accepts(&self, value: &Value) -> bool {
        self.check(value).is_ok()
    }

    /// The first violation, as a path and a rule.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.rules(&self.0, value, "")
    }

    fn rules(&self, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
        let rules = schema.as_object().unwrap().iter();
        let mut rules = rules.filter(|(rule, _)| !NOTES.contains(&rule.as_str()));
        rules.try_for_each(|(rule, wanted)| self.rule((rule, wanted), schema, value, path))
    }

    fn rule(
        &self,
        (rule, wanted): (&str, &Value),
        schema: &Value,
        value: &Value,
        path: &str,
    ) -> Result<(), String> {
        let texts = || wanted.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let size = || wanted.as_u64().unwrap();
        let chars = || value.as_str().map(|text| text.chars().count() as u64);
        let items = || value.as_array().map(|items| items.len() as u64);
        let holds = match rule {
            "$ref" => {
                return self.rules(self.0.pointer(&wanted.as_str().unwrap()[1..]).unwrap(), value, path);
            }
            "properties" => {
                let mut members = wanted.as_object().unwrap().iter();
                return members.try_for_each(|(name, rules)| match value.get(name) {
                    Some(member) => self.rules(rules, member, &format!("{path}/{name}")),
                    None => Ok(()),
                });
            }
            "items" => {
                let mut items = value.as_array().into_iter().flatten().enumerate();
                return items.try_for_each(|(at, item)| self.rules(wanted, item, &format!("{path}/{at}")));
            }
            "oneOf" => {
                let several = wanted.as_array().unwrap();
                let outcomes = several.iter().map(|one| self.rules(one, value, path));
                let failures: Vec<_> = outcomes.filter_map(Result::err).collect();
                if failures.len() + 1 == several.len() {
                    return Ok(());
                }
                return Err(format!("{path}: not one of {}: {}", several.len(), failures.join("; ")));
            }
            "additionalProperties" => {
                assert_eq!(wanted, &Value::Bool(false));
                let known = schema["properties"].as_object().unwrap();
                value.as_object().is_none_or(|members| members.keys().all(|name| known.contains_key(name)))
            }
            "type" => is_of_type(value, wanted.as_str().unwrap()),
            "required" => texts().all(|name| value.get(name).is_some()),
            "enum" => wanted.as_array().unwrap().contains(value),
            "const" => wanted == value,
            "minLength" => chars().is_none_or(|length| length >= size()),
            "maxLength" => chars().is_none_or(|length| length <= size()),
            "minItems" => items().is_none_or(|count| count >= size()),
            "maxItems" => items().is_none_or(|count| count <= size()),
            "minimum" => value.as_u64().is_some_and(|number| number >= size()),
            "maximum" => value.as_u64().is_some_and(|number| number <= size()),
            "pattern" => has_pattern(value.as_str().unwrap(), wanted.as_str().unwrap()),
            "format" => has_format(value.as_str().unwrap_or_default(), wanted.as_str().unwrap()),
            other => panic!("a keyword that this schema does not know: {other}"),
        };
        if holds { Ok(()) } else { Err(format!("{path}: {rule} {wanted}")) }
    }
}

fn is_of_type(value: &Value, word: &str) -> bool {
    match word {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        other => panic!("a type that this schema does not know: {other}"),
    }
}

fn has_pattern(text: &str, pattern: &str) -> bool {
    assert_eq!(pattern, "^[0-9a-f]{32}$", "the only known pattern");
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}

fn has_format(text: &str, format: &str) -> bool {
    match format {
        "date-time" => text.parse::<forewarn_types::Moment>().is_ok(),
        // `&` only as the beginning of an escape, `<` and `>` never: they begin and end mentions and links.
        "slack-escaped" => {
            let is_escape = |rest: &str| ["amp;", "lt;", "gt;"].iter().any(|escape| rest.starts_with(escape));
            !text.contains(['<', '>']) && text.split('&').skip(1).all(is_escape)
        }
        other => panic!("a format that this schema does not know: {other}"),
    }
}
