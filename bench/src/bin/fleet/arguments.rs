//! The command line: a role and its options.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use forewarn_bench::blocks::MACHINES_PER_BLOCK;
use forewarn_bench::program::GivenOption;

const COUNT: RangeInclusive<u32> = 1..=100_000;
const MILLISECONDS: RangeInclusive<u32> = 10..=600_000;
/// The addresses of loopback are enough for them.
const MACHINES: RangeInclusive<u32> = 0..=10_000_000;
const MEGABYTES: RangeInclusive<u32> = 1..=16_384;
const TENANTS: RangeInclusive<u32> = 0..=10_000_000;
const HINT: &str = "fleet prepare|apply|commands|beside|hold|arm|audit --at ADDRESS [--socket PATH] [--token TOKEN] \
                    [--metadata ADDRESS] [--machines M] [--first F] [--new-tenants FIRST --tenants N] [--milliseconds T] \
                    [--names plain|qualified] [--work idle|apply|backup|audit|site] [--kind watch|idle|poll] \
                    [--count N] [--process PID] [--megabytes N]";

/// The part that the program plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Prepare,
    Apply,
    Commands,
    Beside,
    Hold,
    Arm,
    Audit,
}

/// The form of machine names in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameForm {
    Plain,
    /// With the name of the tenant.
    Qualified,
}

/// Work of the server while others send requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerWork {
    Nothing,
    /// Applies a fleet with more machines.
    Apply,
    Backup,
    /// Reads the audit log as `forewarn audit verify` does.
    Audit,
    Site,
}

/// Connections that are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldKind {
    /// A stream of audit entries.
    Watch,
    /// An idle connection of the operator API.
    Idle,
    /// A long poll.
    Poll,
}

/// A role with its options; a role ignores those of the others.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) role: Role,
    pub(crate) at: SocketAddr,
    pub(crate) metadata: SocketAddr,
    pub(crate) socket: PathBuf,
    pub(crate) token: String,
    pub(crate) machines: u32,
    /// The number of the first machine that is applied.
    pub(crate) first: u32,
    /// The first single machine whose tenant has not polled yet, and the number of those to use.
    pub(crate) new_tenants: u32,
    pub(crate) tenants: u32,
    pub(crate) milliseconds: u32,
    pub(crate) names: NameForm,
    pub(crate) work: ServerWork,
    pub(crate) kind: HeldKind,
    pub(crate) count: u32,
    pub(crate) process: u32,
    pub(crate) megabytes: u32,
}

impl Arguments {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut words = words.into_iter();
        let role = match words.next().unwrap_or_default().as_str() {
            "prepare" => Role::Prepare,
            "apply" => Role::Apply,
            "commands" => Role::Commands,
            "beside" => Role::Beside,
            "hold" => Role::Hold,
            "arm" => Role::Arm,
            "audit" => Role::Audit,
            other => return Err(format!("unknown role: {other:?}\n  hint: {HINT}")),
        };
        let mut arguments = Self {
            role,
            at: SocketAddr::from(([127, 0, 0, 1], 0)),
            metadata: SocketAddr::from(([127, 0, 0, 1], 0)),
            socket: PathBuf::new(),
            token: String::new(),
            machines: MACHINES_PER_BLOCK,
            first: 0,
            new_tenants: 0,
            tenants: 0,
            milliseconds: 1_000,
            names: NameForm::Qualified,
            work: ServerWork::Nothing,
            kind: HeldKind::Idle,
            count: 1,
            process: 0,
            megabytes: 1,
        };
        while let Some(word) = words.next() {
            arguments.set(&word, &words.next().unwrap_or_default())?;
        }
        let is_local = |at: &SocketAddr| at.ip().is_loopback();
        if arguments.at.port() == 0 || !is_local(&arguments.at) || !is_local(&arguments.metadata) {
            return Err(format!("no address on loopback\n  hint: {HINT}"));
        }
        Ok(arguments)
    }

    fn set(&mut self, word: &str, value: &str) -> Result<(), String> {
        let given = GivenOption { word, value, hint: HINT };
        match word {
            "--at" => self.at = given.parsed(value.parse().ok())?,
            "--metadata" => self.metadata = given.parsed(value.parse().ok())?,
            "--socket" => self.socket = PathBuf::from(value),
            "--token" => value.clone_into(&mut self.token),
            "--machines" => self.machines = given.multiple(MACHINES_PER_BLOCK, MACHINES)?,
            "--first" => self.first = given.multiple(MACHINES_PER_BLOCK, MACHINES)?,
            "--new-tenants" => self.new_tenants = given.number(TENANTS)?,
            "--tenants" => self.tenants = given.number(TENANTS)?,
            "--milliseconds" => self.milliseconds = given.number(MILLISECONDS)?,
            "--names" => self.names = given.parsed(name_form(value))?,
            "--work" => self.work = given.parsed(server_work(value))?,
            "--kind" => self.kind = given.parsed(held_kind(value))?,
            "--count" => self.count = given.number(COUNT)?,
            "--process" => self.process = given.parsed(value.parse().ok())?,
            "--megabytes" => self.megabytes = given.number(MEGABYTES)?,
            _ => return Err(given.unknown()),
        }
        Ok(())
    }
}

fn name_form(value: &str) -> Option<NameForm> {
    match value {
        "plain" => Some(NameForm::Plain),
        "qualified" => Some(NameForm::Qualified),
        _ => None,
    }
}

fn server_work(value: &str) -> Option<ServerWork> {
    match value {
        "idle" => Some(ServerWork::Nothing),
        "apply" => Some(ServerWork::Apply),
        "backup" => Some(ServerWork::Backup),
        "audit" => Some(ServerWork::Audit),
        "site" => Some(ServerWork::Site),
        _ => None,
    }
}

fn held_kind(value: &str) -> Option<HeldKind> {
    match value {
        "watch" => Some(HeldKind::Watch),
        "idle" => Some(HeldKind::Idle),
        "poll" => Some(HeldKind::Poll),
        _ => None,
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
        let given = parse("beside --at 127.0.0.1:80 --work site --new-tenants 7 --machines 2000").unwrap();
        assert_eq!((given.role, given.work), (Role::Beside, ServerWork::Site));
        assert_eq!((given.new_tenants, given.machines, given.names), (7, 2_000, NameForm::Qualified));
        let given = parse("hold --at 127.0.0.1:80 --kind poll --count 18000").unwrap();
        assert_eq!((given.role, given.kind, given.count), (Role::Hold, HeldKind::Poll, 18_000));
    }

    #[test]
    fn values_have_limits() {
        for wrong in [
            "--count 0",
            "--machines 1500",
            "--at 192.0.2.1:80",
            "--metadata 192.0.2.1:80",
            "--work x",
            "--kind x",
            "--names x",
            "--x 1",
        ] {
            let problem = parse(&format!("beside --at 127.0.0.1:80 {wrong}"));
            assert!(problem.unwrap_err().contains("hint: "), "{wrong}");
        }
        assert!(parse("").is_err() && parse("apply").is_err() && parse("ship --at 127.0.0.1:80").is_err());
    }
}
