//! Requests of the dashboard, told apart from requests of other web pages.

use axum::http::{HeaderMap, header};

/// Header that the dashboard adds to every request to the API. A form cannot send it, and a script of another origin
/// needs a permission that this server never gives.
pub const OWN_PAGE_HEADER: &str = "forewarn-dashboard";

const FETCH_SITE: &str = "sec-fetch-site";

/// Returns true if the dashboard of this server has sent a request. Its host name has been checked.
#[must_use]
pub fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_same_site = text(FETCH_SITE).is_none_or(|site| site == "same-origin");
    let host = text(header::HOST.as_str());
    let is_same_origin = text(header::ORIGIN.as_str()).is_none_or(|origin| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        authority.is_some_and(|authority| host.is_some_and(|host| host.eq_ignore_ascii_case(authority)))
    });
    let are_single = [FETCH_SITE, header::ORIGIN.as_str(), header::HOST.as_str()]
        .iter()
        .all(|name| headers.get_all(*name).iter().count() <= 1);
    headers.contains_key(OWN_PAGE_HEADER) && is_same_site && is_same_origin && are_single
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(headers: &[(&'static str, &'static str)]) -> bool {
        let pairs = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value): (axum::http::HeaderName, axum::http::HeaderValue)| {
            headers.append(name, value);
        });
        is_own_page(&headers)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:1339");
    const MARK: (&str, &str) = (OWN_PAGE_HEADER, "1");

    #[test]
    fn the_page_of_this_server_is_recognized() {
        assert!(is_own(&[HOST, MARK, ("sec-fetch-site", "same-origin")]));
        assert!(is_own(&[
            HOST,
            MARK,
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://127.0.0.1:1339")
        ]));
        // A browser without Sec-Fetch-Site; a proxy that ends TLS.
        assert!(is_own(&[HOST, MARK, ("origin", "https://127.0.0.1:1339")]));
    }

    #[test]
    fn another_page_is_not() {
        for other in [
            &[HOST, ("sec-fetch-site", "same-origin")][..],
            &[HOST, MARK, ("sec-fetch-site", "cross-site")],
            &[HOST, MARK, ("sec-fetch-site", "same-site")],
            &[HOST, MARK, ("sec-fetch-site", "none")],
            &[HOST, MARK, ("origin", "http://evil.example")],
            &[HOST, MARK, ("origin", "http://127.0.0.1:1340")],
            &[HOST, MARK, ("origin", "null")],
            &[HOST, MARK, ("sec-fetch-site", "same-origin"), ("origin", "http://evil.example")],
            &[HOST, MARK, ("origin", "http://127.0.0.1:1339"), ("origin", "http://evil.example")],
            &[HOST, MARK, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")],
            &[MARK, ("origin", "http://127.0.0.1:1339")],
        ] {
            assert!(!is_own(other), "{other:?}");
        }
    }
}
