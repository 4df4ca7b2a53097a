//! Request targets: a path, and the parameters of a query.
//!
//! A path is decoded before it is split from its query: some clients send the question mark as `%3F`. Everything is
//! decoded once.

use forewarn_url::percent;
use std::borrow::Cow;

use forewarn_imds::RequestError;

/// Maximum number of parameters.
const PARAMETERS_MAX: usize = 32;

/// A name and its value.
type Parameter<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Parameters in their order. Most targets have one, which needs no list.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parameters<'a> {
    first: Option<Parameter<'a>>,
    others: Vec<Parameter<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// The path, with its leading slash.
    pub path: Cow<'a, str>,
    parameters: Parameters<'a>,
}

impl<'a> Target<'a> {
    /// Reads a target in origin form.
    pub(crate) fn read(target: &'a str) -> Result<Self, RequestError> {
        let has = |byte| target.as_bytes().contains(&byte);
        if !target.starts_with('/') || has(b'#') {
            return Err(RequestError::Malformed);
        }
        if !has(b'%') {
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let pairs = pairs(query).map(|(key, value)| Some((key.into(), value.into())));
            return Ok(Self { path: path.into(), parameters: Parameters::collect(pairs)? });
        }
        let (path, query) = split(target);
        let parameters = match query {
            Query::None => Parameters::default(),
            Query::Plain(query) => {
                Parameters::collect(pairs(query).map(|(key, value)| Some((decode(key)?, decode(value)?))))?
            }
            // An encoded query is decoded as a whole.
            Query::Encoded(query) => {
                let query = decode(query).ok_or(RequestError::Malformed)?;
                let owned = |text: &str| Cow::Owned(text.to_owned());
                Parameters::collect(pairs(&query).map(|(key, value)| Some((owned(key), owned(value)))))?
            }
        };
        Ok(Self { path: decode_path(path)?, parameters })
    }

    /// Value of a parameter that occurs exactly once.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let mut values = self.parameters.iter().filter(|(key, _)| key == name);
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Returns true if a parameter occurs more than once.
    pub(crate) fn repeats_a_parameter(&self) -> bool {
        let keys = |from| self.parameters.iter().skip(from).map(|(key, _)| key);
        !self.parameters.others.is_empty()
            && keys(0).enumerate().any(|(at, key)| keys(at + 1).any(|other| other == key))
    }
}

impl<'a> Parameters<'a> {
    /// Collects the parameters; `None` is one that could not be decoded.
    fn collect(mut pairs: impl Iterator<Item = Option<Parameter<'a>>>) -> Result<Self, RequestError> {
        let first = pairs.next().map(|pair| pair.ok_or(RequestError::Malformed)).transpose()?;
        let others = pairs.collect::<Option<Vec<_>>>().ok_or(RequestError::Malformed)?;
        if others.len() >= PARAMETERS_MAX {
            return Err(RequestError::Malformed);
        }
        Ok(Self { first, others })
    }

    fn iter(&self) -> impl Iterator<Item = &Parameter<'a>> {
        self.first.iter().chain(&self.others)
    }
}

enum Query<'a> {
    None,
    Plain(&'a str),
    Encoded(&'a str),
}

/// Splits at the first question mark, plain or encoded.
fn split(target: &str) -> (&str, Query<'_>) {
    let plain = target.find('?');
    let before = &target[..plain.unwrap_or(target.len())];
    if let Some(encoded) = before.find("%3F").into_iter().chain(before.find("%3f")).min() {
        return (&target[..encoded], Query::Encoded(&target[encoded + 3..]));
    }
    (before, plain.map_or(Query::None, |at| Query::Plain(&target[at + 1..])))
}

fn decode_path(path: &str) -> Result<Cow<'_, str>, RequestError> {
    let decoded = decode(path).ok_or(RequestError::Malformed)?;
    let slashes = |text: &str| text.bytes().filter(|byte| *byte == b'/').count();
    if decoded.contains('\0') || slashes(&decoded) != slashes(path) {
        return Err(RequestError::Malformed);
    }
    Ok(decoded)
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pieces = query.split('&').filter(|piece| !piece.is_empty()).take(PARAMETERS_MAX + 1);
    pieces.map(|piece| piece.split_once('=').unwrap_or((piece, "")))
}

/// Decodes `%XX`. Invalid UTF-8 becomes replacement characters, which match nothing.
fn decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    Some(Cow::Owned(String::from_utf8_lossy(&percent::decode(text)?).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str) -> Result<Target<'_>, RequestError> {
        Target::read(target)
    }

    #[test]
    fn a_question_mark_may_be_encoded() {
        for target in ["/a/b?v=1&w=2", "/a/b%3Fv=1&w=2", "/a/b%3fv%3D1%26w=2", "/%61/b?%76=%31&&w=2&"] {
            let target = read(target).expect("a target");
            assert_eq!(target.path, "/a/b");
            assert_eq!((target.parameter("v"), target.parameter("w")), (Some("1"), Some("2")));
            assert!(!target.repeats_a_parameter());
        }
    }

    #[test]
    fn ambiguous_targets_are_rejected() {
        let wrong = [
            "",
            "*",
            "a",
            "http://x/",
            "/a%2Fb",
            "/a%2fb?v=1",
            "/a%00",
            "/a%",
            "/a%4",
            "/a%zz",
            "/a%+1",
            "/a?v=%",
            "/a#b",
            "/a?b#c",
        ];
        for target in wrong {
            assert_eq!(read(target), Err(RequestError::Malformed), "{target}");
        }
    }

    #[test]
    fn in_a_query_anything_may_be_encoded() {
        let target = read("/a?v=%00&w=%2F&x=%ff").expect("a target");
        assert_eq!(target.parameter("v"), Some("\0"));
        assert_eq!(target.parameter("w"), Some("/"));
        assert_eq!(target.parameter("x"), Some("\u{fffd}"));
    }

    #[test]
    fn a_parameter_that_is_given_twice_has_no_value() {
        for target in ["/a?v=1&v=1", "/a?v=1&%76=2", "/a%3Fv=1&v=2"] {
            let target = read(target).expect("a target");
            assert!(target.repeats_a_parameter());
            assert_eq!(target.parameter("v"), None);
        }
    }

    #[test]
    fn the_number_of_parameters_is_limited() {
        let query = |count: usize| {
            let keys: Vec<_> = (0..count).map(|key| key.to_string()).collect();
            format!("/a?{}", keys.join("&"))
        };
        assert!(read(&query(PARAMETERS_MAX)).is_ok());
        assert_eq!(read(&query(PARAMETERS_MAX + 1)), Err(RequestError::Malformed));
    }
}
