//! The settings of an agent, from the settings file and the hook directories.
//!
//! All errors are reported at once, with their lines. A mere oddity, such as a script that is not executable, is a
//! note: the agent runs all the same. Without a file, the defaults apply, including the default hook directory.

mod errors;
mod file;
mod hooks;
mod peers;
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
use forewarn_types::{Span, TcpAddress, show_duration, without_mark};
use toml::Spanned;

use crate::hooks::Work;
pub(crate) use errors::ConfigError;
use errors::ConfigReport;
use file::File;
pub(crate) use peers::PeersConfig;

/// Default path of the settings file.
pub(crate) const FILE: &str = "/etc/forewarn-agent/agent.toml";

/// Default parent of the hook directories.
const HOOKS: &str = "/etc/forewarn-agent";

/// Default path of the state file.
const STATE: &str = "/var/lib/forewarn-agent/state.json";

/// Default address of the listener.
const LISTEN: &str = "127.0.0.1:9911";

/// Size limit of the settings file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

const RULES_MAX: usize = 64;

/// Limit of the length of a machine name.
const NAME_CHARS_MAX: usize = 256;

/// Default and maximum interval of polls without long polling.
const POLL: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_mins(1);

/// Default and maximum time limit of a hook.
const HOOK_LIMIT: Duration = Duration::from_mins(5);
const HOOK_LIMIT_MIN: Duration = Duration::from_secs(1);
const HOOK_LIMIT_MAX: Duration = Duration::from_hours(24);

/// Default and maximum time between the end of hooks and `NotBefore`.
const SPARE: Duration = Duration::from_secs(2);
const SPARE_MAX: Duration = Duration::from_mins(10);

/// The settings of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The settings file, if there is one.
    pub(crate) file: Option<PathBuf>,
    pub(crate) endpoint: Option<Endpoint>,
    /// The settings of the command line, which a reload keeps.
    pub(crate) given: GivenSettings,
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
    /// The work of each hook, by name.
    pub(crate) works: BTreeMap<String, Work>,
    /// Oddities that are not errors.
    pub(crate) notes: Vec<String>,
}

/// Settings of the command line. They replace those of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenSettings {
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) state: Option<PathBuf>,
}

impl Config {
    /// Replaces settings of the file by those of the command line.
    pub(crate) fn with(self, given: GivenSettings) -> Self {
        let endpoint = given.endpoint.clone().or(self.endpoint);
        let state = given.state.clone().unwrap_or(self.state);
        Self { endpoint, state, given, ..self }
    }

    /// Reads the settings from that file, or from the default path if it exists.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, Vec<ConfigError>> {
        let path = file.unwrap_or(Path::new(FILE));
        let text = match read(path) {
            Ok(text) => Some(text),
            Err(error) if file.is_none() && error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let message = format!("cannot read: {error}");
                return Err(vec![ConfigError { file: path.to_owned(), line: None, message }]);
            }
        };
        let is_there = text.is_some();
        let mut config = Self::parse(path, &text.unwrap_or_default())?;
        config.file = is_there.then(|| path.to_owned());
        Ok(config)
    }

    /// The log format in a settings file, which may be invalid otherwise.
    pub(crate) fn log_format(file: Option<&Path>) -> Format {
        let text = read(file.unwrap_or(Path::new(FILE)));
        text.map(|text| forewarn_cli_support::log::log_format(&text)).unwrap_or_default()
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Vec<ConfigError>> {
        let text = without_mark(text);
        let mut report = ConfigReport::new(path, text);
        let file: File = report.read();
        let mut config = Self {
            file: None,
            endpoint: endpoint(file.endpoint.as_ref(), &mut report),
            given: GivenSettings::default(),
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
        if let Some(peers) = file.peers.as_ref().filter(|_| file.listen.as_ref().is_some_and(is_off)) {
            report.at(&peers.span(), "peers need the listener of this agent, but listen = \"off\"");
        }
        if file.rule.len() > RULES_MAX {
            report.anywhere(format!("too many rules: {}\n  hint: at most {RULES_MAX}", file.rule.len()));
        }
        // Errors in [peers] are reported already.
        if file.peers.is_none() && !report.may_have_lost(None, "peers") {
            reject_leader(file.approval.policy.as_ref(), &file.rule, &mut report);
        }
        config.rules = file.rule.into_iter().map(|rule| rule.into_inner().into()).collect();
        let limits = HOOK_LIMIT_MIN..=HOOK_LIMIT_MAX;
        let limit = within(file.hook_limit.as_ref(), "hook_limit", HOOK_LIMIT, limits, &mut report);
        let mut found = hooks::HookCollector::new(limit);
        found.add_from_file(file.hook, &mut report);
        let directory = file.hooks.clone().unwrap_or_else(|| HOOKS.into());
        // A file with errors may name another hook directory.
        if file.hooks.is_some() || !report.may_have_lost(None, "hooks") {
            found.add_from_directories(&directory, file.hooks.is_some(), &mut report);
        }
        (config.hooks, config.works, config.notes) = found.into_parts();
        if config.peers.discovery.is_some() && config.listen.is_some_and(|listen| listen.ip().is_loopback()) {
            config.notes.push("listen: peers on other machines cannot reach a loopback address".to_owned());
        }
        config.notes.extend(config.event_log.as_deref().and_then(missing_parent));
        let errors = report.into_errors();
        if errors.is_empty() { Ok(config) } else { Err(errors) }
    }

    /// The settings of the watcher for a machine of that name.
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

/// Reads a file with a size limit.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let read = fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    if u64::try_from(read).is_ok_and(|read| read > FILE_BYTES_MAX) {
        return Err(io::Error::other(format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}

impl From<file::RuleTable> for Rule {
    fn from(table: file::RuleTable) -> Self {
        let file::RuleTable { when, treatment, approval, on_failure } = table;
        Self { when, treatment, approval, on_failure }
    }
}

/// A note if the directory of the event log does not exist.
fn missing_parent(event_log: &Path) -> Option<String> {
    let path = std::path::absolute(event_log).ok()?;
    let parent = path.parent().filter(|parent| !parent.exists())?;
    Some(format!("event_log: directory not found: {}", parent.display()))
}

/// Rejects the policy `leader` without peers: the leader would wait for ever.
fn reject_leader(
    policy: Option<&Spanned<Approval>>,
    rules: &[Spanned<file::RuleTable>],
    report: &mut ConfigReport<'_>,
) {
    let message = "the policy \"leader\" needs peers\n  hint: [peers] with list, dns or members";
    if let Some(policy) = policy.filter(|policy| *policy.get_ref() == Approval::Leader) {
        report.at(&policy.span(), message);
    }
    for rule in rules.iter().filter(|rule| rule.get_ref().approval == Some(Approval::Leader)) {
        report.at(&rule.span(), message);
    }
}

fn endpoint(text: Option<&Spanned<String>>, report: &mut ConfigReport<'_>) -> Option<Endpoint> {
    let text = text?;
    let read = Endpoint::parse(text.get_ref());
    read.map_err(|error| report.at(&text.span(), format!("endpoint: {error}"))).ok()
}

fn name(text: Option<&Spanned<String>>, report: &mut ConfigReport<'_>) -> Option<String> {
    let text = text?;
    let name = text.get_ref();
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
        report.at(&text.span(), "invalid machine name\n  hint: omit it to use the name from the endpoint");
        return None;
    }
    Some(name.clone())
}

/// True for `listen = "off"`.
fn is_off(listen: &Spanned<toml::Value>) -> bool {
    listen.get_ref().as_str() == Some("off")
}

fn listen(setting: Option<&Spanned<toml::Value>>, report: &mut ConfigReport<'_>) -> Option<SocketAddr> {
    let Some(setting) = setting else { return LISTEN.parse().ok() };
    if is_off(setting) {
        return None;
    }
    let text = setting.get_ref().as_str().map_or_else(|| setting.get_ref().to_string(), str::to_owned);
    let read = text.parse::<TcpAddress>();
    let address = read.map(|TcpAddress(address)| address);
    address
        .map_err(|_| {
            let message =
                format!("invalid listen address: {text:?}\n  hint: listen = \"{LISTEN}\", or \"off\"");
            report.at(&setting.span(), message);
        })
        .ok()
}

/// Checks that a duration is within a range.
fn within(
    span: Option<&Spanned<Span>>,
    message: &str,
    usual: Duration,
    allowed: std::ops::RangeInclusive<Duration>,
    report: &mut ConfigReport<'_>,
) -> Duration {
    let Some(span) = span else { return usual };
    let Span(length) = *span.get_ref();
    if !allowed.contains(&length) {
        let (least, most) = (show_duration(*allowed.start()), show_duration(*allowed.end()));
        report.at(
            &span.span(),
            format!(
                "{message} must be between {least} and {most}\n  hint: {message} = \"{}\"",
                show_duration(usual)
            ),
        );
    }
    length
}
