//! Cookies of the dashboard: scripts cannot read them, and requests of other sites do not carry them.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};

use crate::scheme::Scheme;

/// The value of a cookie of a request. Names are compared exactly; the first cookie of a name counts.
#[must_use]
pub fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// The header `Set-Cookie` of a session. A time of zero removes the cookie.
#[must_use]
pub fn session_cookie(name: &str, value: &str, time: Duration, scheme: Scheme) -> HeaderValue {
    let secure = match scheme {
        Scheme::Http => "",
        Scheme::Https => "; Secure",
    };
    let text =
        format!("{name}={value}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{secure}", time.as_secs());
    // Names and values are ASCII letters, digits and underscores.
    let mut cookie = HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""));
    cookie.set_sensitive(true);
    cookie
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("xa=1; a=2;b=3"));
        headers.append(header::COOKIE, HeaderValue::from_static("c=4=5; a=6"));
        let value = |name: &str| cookie_value(&headers, name);
        assert_eq!((value("a"), value("b"), value("c")), (Some("2"), Some("3"), Some("4=5")));
        assert_eq!((value("x"), value("A"), value("")), (None, None, None));
    }

    #[test]
    fn a_cookie_is_for_its_own_site_and_not_for_scripts() {
        let text =
            |scheme| session_cookie("n", "v", Duration::from_secs(60), scheme).to_str().unwrap().to_owned();
        assert_eq!(text(Scheme::Http), "n=v; Path=/; Max-Age=60; HttpOnly; SameSite=Strict");
        assert_eq!(text(Scheme::Https), "n=v; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
        assert_eq!(format!("{:?}", session_cookie("n", "v", Duration::ZERO, Scheme::Http)), "Sensitive");
    }
}
