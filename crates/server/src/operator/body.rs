//! Decodes JSON request bodies.

use forewarn_types::BYTE_ORDER_MARK_BYTES;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::decode_errors::plain;
use super::problem::ApiProblem;

/// Decodes a body, which has to be an object.
///
/// serde alone would accept a list as a struct.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiProblem> {
    let body = body.strip_prefix(BYTE_ORDER_MARK_BYTES).unwrap_or(body);
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        Some(_) => return Err(ApiProblem::bad("invalid body: a JSON object is expected")),
        None => return Err(ApiProblem::bad("empty body: a JSON object is expected")),
    }
    let problem = |problem: serde_json::Error| {
        ApiProblem::bad(format!("invalid body: {}", plain(&problem.to_string())))
    };
    serde_json::from_slice(body).or_else(|first| with_whole_numbers(body).ok_or(first)).map_err(problem)
}

/// Decodes `2.0` as 2: JSON has one type of numbers.
fn with_whole_numbers<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let mut value: Value = serde_json::from_slice(body).ok()?;
    make_whole(&mut value).then(|| serde_json::from_value(value).ok())?
}

/// Converts floats without a fraction to integers. Returns true if there were any.
fn make_whole(value: &mut Value) -> bool {
    match value {
        Value::Number(number) => {
            // Above 2^53, not every integer is a float.
            let whole =
                number.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 2f64.powi(53));
            let whole = whole.filter(|_| number.is_f64()).and_then(|number| format!("{number}").parse().ok());
            let is_other = whole.is_some();
            *value = whole.map_or_else(|| value.take(), Value::Number);
            is_other
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| make_whole(item) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, member| make_whole(member) | any),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use axum::http::StatusCode;
    use axum::response::IntoResponse;
    use forewarn_control::NamedCommand;

    use super::*;

    #[test]
    fn a_number_without_a_fraction_is_whole_however_it_is_written() {
        let read = |json: String| read::<NamedCommand>(&Bytes::from(json));
        let degrade = |number: &str| {
            read(format!(r#"{{"command":"change_settings","user_operations_max":{number},"failure":null}}"#))
        };
        for two in ["2", "2.0", "2e0", "0.2e1"] {
            assert_eq!(degrade(two), degrade("2"), "{two}");
            assert!(degrade(two).is_ok(), "{two}");
        }
        for wrong in ["2.5", "-2.0", "65536.0", "1e300", "\"2\""] {
            assert!(degrade(wrong).is_err(), "{wrong}");
        }
        let named = read(r#"{"command":"cancel_rollout","rollout":18446744073709551615}"#.to_owned());
        assert_eq!(named, Ok(NamedCommand::CancelRollout { rollout: u64::MAX }));
    }

    #[test]
    fn a_body_is_an_object_and_nothing_else() {
        let read = |json: &'static str| read::<NamedCommand>(&Bytes::from_static(json.as_bytes()));
        assert_eq!(read(" {\"command\":\"brake_on\"}"), Ok(NamedCommand::BrakeOn {}));
        assert_eq!(read("\u{feff}{\"command\":\"brake_on\"}"), Ok(NamedCommand::BrakeOn {}));
        for wrong in ["[\"brake_on\"]", "\"brake_on\"", "", " ", "{", "{}"] {
            let status = read(wrong).expect_err(wrong).into_response().status();
            assert_eq!(status, StatusCode::BAD_REQUEST, "{wrong}");
        }
    }
}
