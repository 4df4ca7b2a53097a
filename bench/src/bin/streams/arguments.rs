//! The command line: a role and its options.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use forewarn_bench::blocks::MACHINES_PER_BLOCK;
use forewarn_bench::program::GivenOption;

const CLUSTERS: RangeInclusive<u32> = 1..=1_000;
const CLIENTS: RangeInclusive<u32> = 1..=1_000;
const MILLISECONDS: RangeInclusive<u32> = 10..=600_000;
/// The addresses of one private network are enough for them.
const MACHINES: RangeInclusive<u32> = 0..=10_000_000;
const HINT: &str = "streams prepare|commands|fleet|beside --at ADDRESS [--socket PATH] [--token TOKEN] \
                    [--clusters N] [--clients C] [--milliseconds T] [--first F] [--machines M]";

/// The part that the program plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Prepare,
    Commands,
    Fleet,
    Beside,
}

/// A role with its options; a role ignores those of the others.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) role: Role,
    pub(crate) at: SocketAddr,
    pub(crate) socket: PathBuf,
    pub(crate) token: String,
    pub(crate) clusters: u32,
    pub(crate) clients: u32,
    pub(crate) milliseconds: u32,
    pub(crate) first: u32,
    pub(crate) machines: u32,
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let role = match words.next().unwrap_or_default().as_str() {
            "prepare" => Role::Prepare,
            "commands" => Role::Commands,
            "fleet" => Role::Fleet,
            "beside" => Role::Beside,
            other => return Err(format!("unknown role: {other:?}\n  hint: {HINT}")),
        };
        let mut arguments = Self {
            role,
            at: SocketAddr::from(([127, 0, 0, 1], 0)),
            socket: PathBuf::new(),
            token: String::new(),
            clusters: 1,
            clients: 1,
            milliseconds: 1_000,
            first: 0,
            machines: MACHINES_PER_BLOCK,
        };
        while let Some(word) = words.next() {
            arguments.set(&word, &words.next().unwrap_or_default())?;
        }
        if arguments.at.port() == 0 || !arguments.at.ip().is_loopback() {
            return Err(format!("no address on loopback\n  hint: {HINT}"));
        }
        Ok(arguments)
    }

    fn set(&mut self, word: &str, value: &str) -> Result<(), String> {
        let given = GivenOption { word, value, hint: HINT };
        match word {
            "--at" => self.at = given.parsed(value.parse().ok())?,
            "--socket" => self.socket = PathBuf::from(value),
            "--token" => value.clone_into(&mut self.token),
            "--clusters" => self.clusters = given.number(CLUSTERS)?,
            "--clients" => self.clients = given.number(CLIENTS)?,
            "--milliseconds" => self.milliseconds = given.number(MILLISECONDS)?,
            "--first" => self.first = given.multiple(MACHINES_PER_BLOCK, MACHINES)?,
            "--machines" => self.machines = given.multiple(MACHINES_PER_BLOCK, MACHINES)?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_role_has_options() {
        let given = parse("beside --at 127.0.0.1:80 --clients 4 --first 100000 --machines 10000").unwrap();
        assert_eq!(
            (given.role, given.clients, given.first, given.machines),
            (Role::Beside, 4, 100_000, 10_000)
        );
    }

    #[test]
    fn values_have_limits() {
        for wrong in
            ["--clients 0", "--machines 1500", "--milliseconds 9", "--at 192.0.2.1:80", "--x 1", "--at"]
        {
            let problem = parse(&format!("fleet --at 127.0.0.1:80 {wrong}"));
            assert!(problem.unwrap_err().contains("hint: "), "{wrong}");
        }
        assert!(parse("").is_err() && parse("fleet").is_err() && parse("ship --at 127.0.0.1:80").is_err());
    }
}
