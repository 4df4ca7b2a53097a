//! Who may not even ask: web pages, and names that somebody else may have pointed here.
//!
//! The API of `forewarn dev` is open to whoever can reach loopback, and a browser can: what a page sends carries `Origin`
//! or `Sec-Fetch-Site`, and a name in `Host`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::fault::Fault;
use super::{Access, rejection};

/// Who may ask, and for what without a key.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) access: Access,
    /// Paths that need none: a supervisor has none.
    pub(super) free: Vec<&'static str>,
}

pub(super) async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    match refuse(&request).or_else(|| refuse_without_key(&request, &gate)) {
        Some(fault) => fault.into_response(),
        None => rejection::documented(next.run(request).await).await,
    }
}

fn refuse(request: &Request) -> Option<Fault> {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site") {
        return Some(Fault::forbidden("not for web pages"));
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !is_own(host) {
        return Some(Fault::forbidden("not by that name\n  hint: use the address, or localhost"));
    }
    None
}

fn refuse_without_key(request: &Request, gate: &Gate) -> Option<Fault> {
    let Access::Key(hash) = &gate.access else { return None };
    if gate.free.contains(&request.uri().path()) {
        return None;
    }
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, key) = shown.and_then(|value| value.split_once(' ')).unwrap_or_default();
    (!scheme.eq_ignore_ascii_case("bearer") || !hash.fits(key.trim())).then(Fault::unauthorized)
}

/// An address, `localhost`, or a single label: no name that the world can give away.
fn is_own(host: &str) -> bool {
    if host.parse::<std::net::SocketAddr>().is_ok() || host.parse::<std::net::IpAddr>().is_ok() {
        return true;
    }
    let name = host.split(':').next().unwrap_or_default();
    let port = host.strip_prefix(name).unwrap_or_default();
    let is_label = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_port = |port: &str| port.is_empty() || port[1..].parse::<u16>().is_ok();
    (name.parse::<std::net::Ipv4Addr>().is_ok() || is_label(name)) && is_port(port)
        || host.starts_with('[')
            && host.ends_with(']')
            && host[1..host.len() - 1].parse::<std::net::Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_nobody_else_can_give_away_are_own() {
        for own in
            ["127.0.0.1", "127.0.0.1:1339", "localhost:1339", "forewarn", "[::1]", "[::1]:80", "my-box:1"]
        {
            assert!(is_own(own), "{own}");
        }
        for foreign in
            ["", "evil.example", "evil.example:1339", "localhost.evil.example", "a b", "[::1", "x:y", ":80"]
        {
            assert!(!is_own(foreign), "{foreign}");
        }
    }
}
