//! Schemes of URLs.

/// Scheme of a listener's URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}
