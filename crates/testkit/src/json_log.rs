//! A strict JSON reader for log lines: one object for each line, no key twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A JSON value that was read without any key occurring twice in an object.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(all.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((key, Strict(value))) = members.next_entry::<String, _>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format!("the key occurs twice: {key}")));
            }
            all.insert(key, value);
        }
        Ok(all.into())
    }
}

/// The objects of a log, one for each line. Fails the test at the first line that is anything else.
pub fn log_objects(log: &str) -> Vec<Value> {
    let read = |line: &str| {
        let start: String = line.chars().take(200).collect();
        let Strict(value) = serde_json::from_str(line).unwrap_or_else(|problem| panic!("{problem}: {start}"));
        let members = value.as_object().unwrap_or_else(|| panic!("not an object: {start}"));
        for key in ["timestamp", "level", "message"] {
            assert!(members.get(key).is_some_and(Value::is_string), "no {key}: {start}");
        }
        value
    };
    log.lines().map(read).collect()
}
