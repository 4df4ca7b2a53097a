//! Expected entries of an audit log, as `audit verify` prints them: `cluster-0:44:HASH`.

use std::fmt;
use std::str::FromStr;

use anyhow::{Result, bail};
use forewarn_control::{Chain, Stream};

/// The word for the common log of older versions.
const COMMON: &str = "common";

/// An expectation of `--expect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expectation {
    Entry(ChainEntry),
    /// The hash of the last entry of any chain.
    LastHash(String),
}

/// An entry of a chain, by its number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainEntry {
    /// None: the common log of older versions.
    pub(super) stream: Option<Stream>,
    pub(super) entry: Chain,
}

impl fmt::Display for ChainEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stream, entry } = self;
        match stream {
            Some(stream) => write!(out, "{stream}")?,
            None => out.write_str(COMMON)?,
        }
        write!(out, ":{}:{}", entry.number, entry.hash_in_hex())
    }
}

/// A text that is no expectation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not STREAM:NUMBER:HASH as `audit verify` prints it, nor a hash of 64 hexadecimal digits")]
pub(crate) struct NotAnExpectation;

impl FromStr for Expectation {
    type Err = NotAnExpectation;

    fn from_str(text: &str) -> Result<Self, NotAnExpectation> {
        let parts: Vec<_> = text.splitn(4, ':').collect();
        match parts[..] {
            [hash] => {
                let hash = hash.to_ascii_lowercase();
                Chain::from_hex(0, &hash).map(|_| Self::LastHash(hash)).ok_or(NotAnExpectation)
            }
            [stream, number, hash] => {
                let stream = match stream {
                    COMMON => None,
                    stream => Some(stream.parse().map_err(|_| NotAnExpectation)?),
                };
                let number = number.parse().ok().filter(|number| *number > 0).ok_or(NotAnExpectation)?;
                let entry = Chain::from_hex(number, &hash.to_ascii_lowercase()).ok_or(NotAnExpectation)?;
                Ok(Self::Entry(ChainEntry { stream, entry }))
            }
            _ => Err(NotAnExpectation),
        }
    }
}

/// The expected entries and the expected last hashes. Each chain has one entry at most.
pub(super) fn divided(expected: &[Expectation]) -> Result<(Vec<ChainEntry>, Vec<&str>)> {
    let (mut entries, mut hashes) = (Vec::<ChainEntry>::new(), Vec::new());
    for one in expected {
        match one {
            Expectation::Entry(entry) if entries.iter().any(|known| known.stream == entry.stream) => {
                bail!("two expected entries of one chain: {entry}\n  hint: name the later one only")
            }
            Expectation::Entry(entry) => entries.push(*entry),
            Expectation::LastHash(hash) => hashes.push(hash.as_str()),
        }
    }
    Ok((entries, hashes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::ClusterId;

    #[test]
    fn an_expected_entry_is_read_as_it_is_printed() {
        let hash = "0aB1".repeat(16);
        let streams = [("common", None), ("shared", Some(Stream::Shared))];
        for (word, stream) in streams.into_iter().chain([("cluster-7", Some(Stream::Cluster(ClusterId(7))))])
        {
            let text = format!("{word}:44:{hash}");
            let Ok(Expectation::Entry(entry)) = text.parse() else { panic!("{text}") };
            assert_eq!((entry.stream, entry.entry.number), (stream, 44));
            assert_eq!(entry.to_string(), text.to_ascii_lowercase());
        }
        assert_eq!(hash.parse(), Ok(Expectation::LastHash(hash.to_ascii_lowercase())));
        let short = &hash[1..];
        for wrong in [
            "",
            short,
            "shared:1",
            &format!("shared:1:{short}"),
            &format!("shared:0:{hash}"),
            &format!("west:1:{hash}"),
            &format!("shared:1:{hash}:"),
        ] {
            assert_eq!(wrong.parse::<Expectation>(), Err(NotAnExpectation), "{wrong}");
        }
    }

    #[test]
    fn a_chain_has_one_expected_entry() {
        let entry = |number| format!("shared:{number}:{}", "0".repeat(64)).parse::<Expectation>().unwrap();
        assert!(divided(&[entry(1), Expectation::LastHash(String::new())]).is_ok());
        assert!(divided(&[entry(1), entry(2)]).unwrap_err().to_string().contains("hint: "));
    }
}
