//! Unsigned identity tokens, for clients that need one before they send any other request.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use forewarn_types::base64url::encode;

/// Lifetime of a token: a day.
const LIFE_SECONDS: u64 = 24 * 60 * 60;

/// Identity that a token names.
#[derive(Clone, Copy, Debug)]
pub struct TokenHolder<'a> {
    /// Object id.
    pub id: &'a str,
    /// Resource id of the machine.
    pub resource_id: &'a str,
}

/// Response body with an unsigned token of that directory, for that resource. Its times are real, not those of a
/// virtual clock.
#[must_use]
pub fn unsigned_token(directory: &str, holder: &TokenHolder<'_>, resource: &str, now: SystemTime) -> String {
    let begins = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let ends = begins.saturating_add(LIFE_SECONDS);
    let header = json!({ "typ": "JWT", "alg": "none" });
    let claims = json!({
        "aud": resource,
        "iss": format!("https://sts.windows.net/{directory}/"),
        "iat": begins,
        "nbf": begins,
        "exp": ends,
        "oid": holder.id,
        "sub": holder.id,
        "tid": directory,
        "xms_mirid": holder.resource_id,
    });
    let part = |part: serde_json::Value| encode(part.to_string().as_bytes());
    let response = json!({
        "access_token": format!("{}.{}.", part(header), part(claims)),
        "client_id": holder.id,
        "expires_in": LIFE_SECONDS.to_string(),
        "expires_on": ends.to_string(),
        "ext_expires_in": LIFE_SECONDS.to_string(),
        "not_before": begins.to_string(),
        "resource": resource,
        "token_type": "Bearer",
    });
    response.to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_token_is_valid_for_a_day() {
        let holder = TokenHolder { id: "object", resource_id: "/machine" };
        let now = UNIX_EPOCH + Duration::from_secs(1_767_225_600);
        let response = unsigned_token("directory", &holder, "https://management.azure.com/", now);
        let response: serde_json::Value = serde_json::from_str(&response).unwrap();
        assert_eq!(response["not_before"], "1767225600");
        assert_eq!(response["expires_on"], "1767312000");
        assert_eq!(
            (&response["expires_in"], &response["ext_expires_in"]),
            (&json!("86400"), &json!("86400"))
        );
    }
}
