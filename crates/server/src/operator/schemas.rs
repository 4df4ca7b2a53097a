//! The schemas that the document of the API refers to by name.
//!
//! What may be written and what is read differ: who asks may leave out what has a default, who is answered finds it there.
//! Where a type is the same both ways it is listed once; else the form in which it is asked for has a name of its own.

use std::collections::{BTreeMap, BTreeSet};

use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value};

/// Where schemas are in the document. Those of requests are there only until it is known which of them differ.
const PLACE: &str = "#/components/schemas/";
const PLACE_OF_REQUESTS: &str = "#/components/requests/";

/// What the name of a type ends with that looks different in a request.
const ENDING: &str = "Request";

/// Schemas of what is asked and of what is answered.
pub(super) struct Schemas {
    pub(super) requests: SchemaGenerator,
    pub(super) answers: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let generator = |place: &'static str, contract: Contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = place.into();
            settings.contract = contract;
            settings.meta_schema = None;
            settings.into_generator()
        };
        Self {
            requests: generator(PLACE_OF_REQUESTS, Contract::Deserialize),
            answers: generator(PLACE, Contract::Serialize),
        }
    }

    /// All schemas that were named, by name; in the document they are referred to by these names from now on.
    pub(super) fn finish(mut self, document: &mut Value) -> Map<String, Value> {
        let mut answers = self.answers.take_definitions(true);
        let requests = self.requests.take_definitions(true);
        let names = names(&requests, &answers);
        rename(document, &names);
        for (name, mut schema) in requests {
            rename(&mut schema, &names);
            answers.insert(names.get(&name).cloned().unwrap_or(name), schema);
        }
        answers.sort_keys();
        answers.values_mut().for_each(limit_numbers);
        limit_numbers(document);
        answers
    }
}

/// What each schema of a request is called in the end.
fn names(requests: &Map<String, Value>, answers: &Map<String, Value>) -> BTreeMap<String, String> {
    let same: BTreeMap<_, _> = requests.keys().map(|name| (name.clone(), name.clone())).collect();
    let mut different = BTreeSet::<String>::new();
    loop {
        let before = different.len();
        for (name, schema) in requests.iter().filter(|(name, _)| answers.contains_key(*name)) {
            let mut plain = schema.clone();
            rename(&mut plain, &same);
            if answers[name] != plain || different.iter().any(|other| refers_to(schema, other)) {
                different.insert(name.clone());
            }
        }
        if different.len() == before {
            break;
        }
    }
    let called = |name: String| {
        let new = if different.contains(&name) { format!("{name}{ENDING}") } else { name.clone() };
        (name, new)
    };
    same.into_keys().map(called).collect()
}

fn refers_to(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| {
            key == "$ref" && value.as_str().and_then(|to| to.strip_prefix(PLACE_OF_REQUESTS)) == Some(name)
                || refers_to(value, name)
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Writes the names of requests as they are in the end.
fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                let name = value.as_str().and_then(|to| to.strip_prefix(PLACE_OF_REQUESTS));
                match name.and_then(|name| names.get(name)) {
                    Some(new) if key == "$ref" => *value = format!("{PLACE}{new}").into(),
                    Some(_) | None => rename(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The largest number of each size, where nothing smaller is said: the derive does not say it of large ones.
const LARGEST: [(&str, u64); 2] = [("uint32", u32::MAX as u64), ("uint64", u64::MAX)];

fn limit_numbers(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let format = members.get("format").and_then(Value::as_str);
            let largest = LARGEST.iter().find(|(name, _)| format == Some(*name)).map(|(_, largest)| *largest);
            if let Some(largest) = largest {
                members.entry("maximum").or_insert(largest.into());
            }
            members.values_mut().for_each(limit_numbers);
        }
        Value::Array(items) => items.iter_mut().for_each(limit_numbers),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
