//! The settings of an agent: what the file says, what the directories of hooks hold, and what is wrong with either.
//!
//! Everything that is wrong is told at once, with its line. What is only odd, such as a script that nobody may run, is a note: the
//! agent runs all the same. Without a file there are the usual settings, and the hooks in their usual place.

mod file;
mod hooks;
mod peers;
mod problem;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forewarn_agent_core::{Approval, Failure, Hook, Rule, Settings};
use forewarn_cli_support::log::{Detail, Format};
use forewarn_client::Endpoint;
use forewarn_types::{Span, show_duration, without_mark};
use toml::Spanned;

use crate::hands::Work;
use file::File;
pub(crate) use peers::PeersConfig;
pub(crate) use problem::Problem;
use problem::Report;

/// Where the settings are, unless said.
pub(crate) const FILE: &str = "/etc/forewarn-agent/agent.toml";

/// Where hooks are, unless said.
const HOOKS: &str = "/etc/forewarn-agent";

/// Where the memory is, unless said.
const STATE: &str = "/var/lib/forewarn-agent/state.json";

/// Where the agent tells how it is, unless said.
const LISTEN: &str = "127.0.0.1:9911";

/// Bytes of a file of settings.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Rules in a file of settings.
const RULES_MAX: usize = 64;

/// Characters of the name of a machine.
const NAME_CHARS_MAX: usize = 256;

/// How often the endpoint is asked, where it does not keep a question until there is news.
const POLL: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_mins(1);

/// How long a hook may take, unless said, and at most.
const HOOK_LIMIT: Duration = Duration::from_mins(5);
const HOOK_LIMIT_MAX: Duration = Duration::from_hours(24);

/// How long before `NotBefore` hooks have to have ended, unless said, and at most.
const SPARE: Duration = Duration::from_secs(2);
const SPARE_MAX: Duration = Duration::from_mins(10);

/// Everything that an agent was told.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where it was read from, if it was.
    pub(crate) file: Option<PathBuf>,
    pub(crate) endpoint: Option<Endpoint>,
    /// Whether the command line says where it is: then the file does not.
    pub(crate) is_endpoint_given: bool,
    pub(crate) name: Option<String>,
    pub(crate) poll: Duration,
    pub(crate) long_poll: bool,
    pub(crate) state: PathBuf,
    pub(crate) event_log: Option<PathBuf>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) format: Format,
    pub(crate) level: Detail,
    pub(crate) approval: Approval,
    pub(crate) on_failure: Failure,
    pub(crate) spare: Duration,
    pub(crate) rules: Vec<Rule>,
    pub(crate) peers: PeersConfig,
    pub(crate) hooks: Vec<Hook>,
    /// What each hook does, by its name.
    pub(crate) works: BTreeMap<String, Work>,
    /// What is odd, but not wrong.
    pub(crate) notes: Vec<String>,
}

impl Config {
    /// Reads the settings: from that file, or from where they usually are, if there are any.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Vec<Problem>> {
        let path = file.unwrap_or(Path::new(FILE));
        let text = match read(path) {
            Ok(text) => Some(text),
            Err(problem) if file.is_none() && problem.kind() == io::ErrorKind::NotFound => None,
            Err(problem) => {
                let what = format!("cannot be read: {problem}");
                return Err(vec![Problem { file: path.to_owned(), line: None, what }]);
            }
        };
        let is_there = text.is_some();
        let mut config = Self::parse(path, &text.unwrap_or_default())?;
        config.file = is_there.then(|| path.to_owned());
        Ok(config)
    }

    /// Finds the format of the log that a file of settings asks for, also where something is wrong with it.
    pub(crate) fn log_format(file: Option<&Path>) -> Format {
        let text = read(file.unwrap_or(Path::new(FILE)));
        text.map(|text| forewarn_cli_support::log::log_format(&text)).unwrap_or_default()
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Vec<Problem>> {
        let text = without_mark(text);
        let mut report = Report::new(path, text);
        let file: File = report.read();
        let mut config = Self {
            file: None,
            endpoint: endpoint(file.endpoint.as_ref(), &mut report),
            is_endpoint_given: false,
            name: name(file.name.as_ref(), &mut report),
            poll: within(file.poll.as_ref(), "poll", POLL, POLL..=POLL_MAX, &mut report),
            long_poll: file.long_poll.unwrap_or(true),
            state: file.state.unwrap_or_else(|| STATE.into()),
            event_log: file.event_log,
            listen: listen(file.listen.as_ref(), &mut report),
            format: file.log.format,
            level: file.log.level,
            approval: file.approval.policy.as_ref().map(|policy| *policy.get_ref()).unwrap_or_default(),
            on_failure: file.approval.on_failure,
            spare: within(file.spare.as_ref(), "spare", SPARE, Duration::ZERO..=SPARE_MAX, &mut report),
            rules: Vec::new(),
            peers: peers::read(file.peers.as_ref(), &mut report),
            hooks: Vec::new(),
            works: BTreeMap::new(),
            notes: Vec::new(),
        };
        if let Some(peers) = file.peers.as_ref().filter(|_| config.listen.is_none() && file.listen.is_some())
        {
            report.at(&peers.span(), "peers ask this agent as well, and listen = \"off\"");
        }
        if file.rule.len() > RULES_MAX {
            report.anywhere(format!("there are {} rules\n  hint: at most {RULES_MAX}", file.rule.len()));
        }
        check_leader(&config, file.approval.policy.as_ref(), &file.rule, &mut report);
        config.rules = file.rule.into_iter().map(|rule| rule.into_inner().into()).collect();
        let least = Duration::from_secs(1);
        let limit =
            within(file.hook_limit.as_ref(), "hook_limit", HOOK_LIMIT, least..=HOOK_LIMIT_MAX, &mut report);
        let mut found = hooks::Found::new(limit);
        found.of_file(file.hook, &mut report);
        let directory = file.hooks.clone().unwrap_or_else(|| HOOKS.into());
        // A file that cannot be read may have named another directory.
        if !report.is_malformed() {
            found.of_directories(&directory, file.hooks.is_some(), &mut report);
        }
        (config.hooks, config.works, config.notes) = found.into_parts();
        if config.peers.places.is_some() && config.listen.is_some_and(|listen| listen.ip().is_loopback()) {
            config
                .notes
                .push("listen: peers on other machines cannot reach an address of loopback".to_owned());
        }
        let problems = report.into_problems();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }

    /// What the watcher is told, once the name of this machine is known.
    pub(crate) fn settings(&self, me: &str) -> Settings {
        Settings {
            me: me.to_owned(),
            hooks: self.hooks.clone(),
            rules: self.rules.clone(),
            approval: self.approval,
            on_failure: self.on_failure,
            spare: self.spare,
            peers: self.peers.watched.clone(),
        }
    }
}

/// Reads a file of at most so many bytes.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|read| read > FILE_BYTES_MAX) {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

impl From<file::RuleTable> for Rule {
    fn from(table: file::RuleTable) -> Self {
        let file::RuleTable { when, treatment, approval, on_failure } = table;
        Self { when, treatment, approval, on_failure }
    }
}

/// A leader asks its peers: without any, it would wait for ever.
fn check_leader(
    config: &Config,
    policy: Option<&Spanned<Approval>>,
    rules: &[Spanned<file::RuleTable>],
    report: &mut Report<'_>,
) {
    if config.peers.places.is_some() {
        return;
    }
    let what = "a leader waits for its peers, and there are none\n  hint: [peers] with list, dns or members";
    if let Some(policy) = policy.filter(|policy| *policy.get_ref() == Approval::Leader) {
        report.at(&policy.span(), what);
    }
    for rule in rules.iter().filter(|rule| rule.get_ref().approval == Some(Approval::Leader)) {
        report.at(&rule.span(), what);
    }
}

fn endpoint(text: Option<&Spanned<String>>, report: &mut Report<'_>) -> Option<Endpoint> {
    let text = text?;
    let read = Endpoint::parse(text.get_ref());
    read.map_err(|problem| report.at(&text.span(), format!("endpoint: {problem}"))).ok()
}

fn name(text: Option<&Spanned<String>>, report: &mut Report<'_>) -> Option<String> {
    let text = text?;
    let name = text.get_ref();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        report.at(
            &text.span(),
            "not a name of a machine\n  hint: leave it out, and the endpoint is asked for it",
        );
        return None;
    }
    Some(name.clone())
}

fn listen(text: Option<&Spanned<String>>, report: &mut Report<'_>) -> Option<SocketAddr> {
    let Some(text) = text else { return LISTEN.parse().ok() };
    if text.get_ref() == "off" {
        return None;
    }
    let read = text.get_ref().parse();
    read.map_err(|_| {
        let what = format!(
            "not an address to listen at: {:?}\n  hint: listen = \"{LISTEN}\", or \"off\"",
            text.get_ref()
        );
        report.at(&text.span(), what);
    })
    .ok()
}

/// A length of time between two others.
fn within(
    span: Option<&Spanned<Span>>,
    what: &str,
    usual: Duration,
    allowed: std::ops::RangeInclusive<Duration>,
    report: &mut Report<'_>,
) -> Duration {
    let Some(span) = span else { return usual };
    let Span(length) = *span.get_ref();
    if !allowed.contains(&length) {
        let (least, most) = (show_duration(*allowed.start()), show_duration(*allowed.end()));
        report.at(
            &span.span(),
            format!("{what} is from {least} to {most}\n  hint: {what} = \"{}\"", show_duration(usual)),
        );
    }
    length
}
