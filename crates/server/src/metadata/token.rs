//! Identity tokens that nobody signed: for clients that insist on having one before they ask for anything else.

use forewarn_wire::Instance;
use serde_json::json;

/// How long a token says that it is good for: a day.
const LIFE_SECONDS: i64 = 24 * 60 * 60;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The body that has a token of that directory, for that resource, from that second on.
pub(super) fn body(directory: &str, instance: &Instance, resource: &str, now_seconds: i64) -> String {
    let ends = now_seconds.saturating_add(LIFE_SECONDS);
    let header = json!({ "typ": "JWT", "alg": "none" });
    let claims = json!({
        "aud": resource,
        "iss": format!("https://sts.windows.net/{directory}/"),
        "iat": now_seconds,
        "nbf": now_seconds,
        "exp": ends,
        "oid": instance.vm_id,
        "sub": instance.vm_id,
        "tid": directory,
        "xms_mirid": instance.resource_id,
    });
    let token = format!("{}.{}.", base64(&header.to_string()), base64(&claims.to_string()));
    let body = json!({
        "access_token": token,
        "client_id": instance.vm_id,
        "expires_in": LIFE_SECONDS.to_string(),
        "expires_on": ends.to_string(),
        "ext_expires_in": LIFE_SECONDS.to_string(),
        "not_before": now_seconds.to_string(),
        "resource": resource,
        "token_type": "Bearer",
    });
    body.to_string()
}

/// Base 64 with the alphabet for URLs, without padding.
fn base64(text: &str) -> String {
    let digits = text.as_bytes().chunks(3).flat_map(|bytes| {
        let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        [18, 12, 6, 0].into_iter().take(bytes.len() + 1).map(move |shift| bits >> shift & 63)
    });
    digits.map(|digit| char::from(ALPHABET[digit as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_64_is_the_one_of_tokens() {
        let cases =
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("?>~", "Pz5-")];
        for (text, encoded) in cases {
            assert_eq!(base64(text), encoded);
        }
    }
}
