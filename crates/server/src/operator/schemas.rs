//! Named schemas of the OpenAPI document.
//!
//! Request and response schemas of a type may differ: members with a default are optional in requests and present in
//! responses. A type whose schemas are equal is listed once; otherwise the request schema gets a name of its own.

use std::collections::{BTreeMap, BTreeSet};

use schemars::SchemaGenerator;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value};

/// Paths of schemas in the document. Request schemas are moved once it is known which of them differ.
const SCHEMAS_PATH: &str = "#/components/schemas/";
const REQUESTS_PATH: &str = "#/components/requests/";

/// Suffix of the name of a request schema that differs.
const REQUEST_SUFFIX: &str = "Request";

/// Schemas of requests and responses.
pub(super) struct Schemas {
    pub(super) requests: SchemaGenerator,
    pub(super) responses: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let generator = |path: &'static str, contract: Contract| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = path.into();
            settings.contract = contract;
            settings.meta_schema = None;
            settings.into_generator()
        };
        Self {
            requests: generator(REQUESTS_PATH, Contract::Deserialize),
            responses: generator(SCHEMAS_PATH, Contract::Serialize),
        }
    }

    /// All named schemas. References in the document are updated.
    pub(super) fn finish(mut self, document: &mut Value) -> Map<String, Value> {
        let mut responses = self.responses.take_definitions(true);
        let requests = self.requests.take_definitions(true);
        let names = names(&requests, &responses);
        rename(document, &names);
        for (name, mut schema) in requests {
            rename(&mut schema, &names);
            responses.insert(names.get(&name).cloned().unwrap_or(name), schema);
        }
        responses.sort_keys();
        responses.values_mut().for_each(limit_numbers);
        limit_numbers(document);
        responses
    }
}

/// Final names of the request schemas.
fn names(requests: &Map<String, Value>, responses: &Map<String, Value>) -> BTreeMap<String, String> {
    let same: BTreeMap<_, _> = requests.keys().map(|name| (name.clone(), name.clone())).collect();
    let mut different = BTreeSet::<String>::new();
    loop {
        let before = different.len();
        for (name, schema) in requests.iter().filter(|(name, _)| responses.contains_key(*name)) {
            let mut plain = schema.clone();
            rename(&mut plain, &same);
            if responses[name] != plain || different.iter().any(|other| refers_to(schema, other)) {
                different.insert(name.clone());
            }
        }
        if different.len() == before {
            break;
        }
    }
    let called = |name: String| {
        let new = if different.contains(&name) { format!("{name}{REQUEST_SUFFIX}") } else { name.clone() };
        (name, new)
    };
    same.into_keys().map(called).collect()
}

fn refers_to(schema: &Value, name: &str) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| {
            key == "$ref" && value.as_str().and_then(|to| to.strip_prefix(REQUESTS_PATH)) == Some(name)
                || refers_to(value, name)
        }),
        Value::Array(items) => items.iter().any(|item| refers_to(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Replaces references to request schemas by their final names.
fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                let name = value.as_str().and_then(|to| to.strip_prefix(REQUESTS_PATH));
                match name.and_then(|name| names.get(name)) {
                    Some(new) if key == "$ref" => *value = format!("{SCHEMAS_PATH}{new}").into(),
                    Some(_) | None => rename(value, names),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Maximum of integer formats without a smaller one: the derive omits it.
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
