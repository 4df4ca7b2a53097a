//! The command line: `--at ADDRESS --connections N --mode MODE --milliseconds T [--target PATH]`.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use forewarn_bench::program::GivenOption;

const CONNECTIONS: RangeInclusive<u32> = 1..=10_000;
const MILLISECONDS: RangeInclusive<u32> = 10..=60_000;
const TARGET: &str = "/metadata/scheduledevents?api-version=2020-07-01";
const HINT: &str =
    "poll --at ADDRESS --connections N --mode keep-alive|per-request --milliseconds T [--target PATH]";

/// What is asked, where, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) at: SocketAddr,
    pub(crate) connections: u32,
    pub(crate) mode: Mode,
    pub(crate) milliseconds: u32,
    pub(crate) target: String,
}

/// How long a connection lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As long as the server likes: most close after some number of requests.
    KeepAlive,
    /// For one request, which says so; the server closes.
    PerRequest,
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let at = SocketAddr::from(([127, 0, 0, 1], 0));
        let (mode, target) = (Mode::KeepAlive, TARGET.to_owned());
        let mut arguments = Self { at, connections: 64, mode, milliseconds: 2_000, target };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let value = words.next().unwrap_or_default();
            let given = GivenOption { word: &word, value: &value, hint: HINT };
            match word.as_str() {
                "--at" => arguments.at = given.parsed(value.parse().ok())?,
                "--connections" => arguments.connections = given.number(CONNECTIONS)?,
                "--mode" => arguments.mode = given.parsed(Mode::named(&value))?,
                "--milliseconds" => arguments.milliseconds = given.number(MILLISECONDS)?,
                "--target" => arguments.target.clone_from(&value),
                _ => return Err(given.unknown()),
            }
        }
        if arguments.at.port() == 0 {
            return Err(format!("no address\n  hint: {HINT}"));
        }
        Ok(arguments)
    }

    /// The request, as a client of that mode would write it.
    pub(crate) fn request(&self, mode: Mode) -> Vec<u8> {
        let Self { at, target, .. } = self;
        let close = match mode {
            Mode::KeepAlive => "",
            Mode::PerRequest => "Connection: close\r\n",
        };
        format!(
            "GET {target} HTTP/1.1\r\nHost: {at}\r\nMetadata: true\r\nUser-Agent: forewarn-bench\r\n\
             Accept: */*\r\n{close}\r\n"
        )
        .into_bytes()
    }
}

impl Mode {
    fn named(name: &str) -> Option<Self> {
        [Self::KeepAlive, Self::PerRequest].into_iter().find(|mode| mode.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::KeepAlive => "keep-alive",
            Self::PerRequest => "per-request",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_line_says_where_and_how() {
        let given = parse("--at 127.0.0.1:80 --connections 7 --mode per-request --milliseconds 10").unwrap();
        assert_eq!((given.connections, given.mode, given.milliseconds), (7, Mode::PerRequest, 10));
        let request = String::from_utf8(given.request(given.mode)).unwrap();
        assert!(request.starts_with("GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"));
        assert!(request.ends_with("\r\nConnection: close\r\n\r\n"));
    }

    #[test]
    fn values_have_limits() {
        for wrong in
            ["", "--connections 0", "--connections 10001", "--milliseconds 9", "--mode fast", "--x 1"]
        {
            let problem =
                parse(&format!("{wrong} {}", if wrong.is_empty() { "" } else { "--at 127.0.0.1:80" }));
            assert!(problem.unwrap_err().contains("hint: "), "{wrong}");
        }
    }
}
