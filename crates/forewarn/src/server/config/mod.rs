//! The configuration of `forewarn serve`: one TOML file, in which unknown keys are errors.
//!
//! This module checks the file itself; [`preflight`] checks what the file needs on this computer.

mod arm;
mod clients;
mod first_answer;
mod limits;
mod preflight;
mod realm;
#[cfg(test)]
mod tests;
mod tls;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use forewarn_azure::http::ArmPlan;
use forewarn_control::Fencing;
use forewarn_hypervisor::{HostCommand, Program};
use forewarn_imds::Edition;
use forewarn_metadata::{FirstAnswer, Identity, IdentityToken, ListenAddress, Settings};
use forewarn_server::{ApiListener, ClientLimits, HostWorker, MachineDriver, REMINDER, WebhookSettings};
use forewarn_store::AUDIT_RETENTION;
use forewarn_types::{ClusterId, Name, Span, TcpAddress, plain_file_error, show_duration};
use forewarn_url::{ContainerNames, OwnHosts};
use serde::Deserialize;
use toml::Spanned;

use super::log::{Detail, Format};
use crate::{service, state_directory};
use arm::ArmTable;
pub(super) use arm::DIRECTORY;
use clients::ClientTable;
pub(super) use first_answer::parse_first_answer;
use limits::{ConnectionTable, LimitsTable};
pub(super) use preflight::{check_data_directory, check_listeners, has_data};
pub(crate) use preflight::{check_driver, check_interface};
use realm::{EngineTable, ServerTable};
pub(super) use tls::TLS_DIRECTORY;
use tls::TlsTable;

/// The file with the first token, in the data directory.
const FIRST_TOKEN_FILE: &str = "first.token";

/// Bytes of a configuration file.
pub(super) const CONFIG_BYTES_MAX: usize = 1024 * 1024;

/// The default timeout of the driver program.
const TIME_LIMIT: Duration = Duration::from_mins(5);

/// The shortest time until the first reminder of a host that is ready for work.
const REMINDER_MIN: Duration = Duration::from_secs(1);

/// The shortest retention of the audit log: the events of yesterday can be explained.
const TRAIL_KEEP_MIN: Duration = Duration::from_hours(24);

/// Characters of the origin that webhooks get.
const ORIGIN_BYTES_MAX: usize = 253;

/// The default mode of a machine's socket: owner and group.
const SOCKET_MODE: u32 = 0o660;

/// The largest mode: all permissions for all users.
const MODE_MAX: u32 = 0o777;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// None with `in_memory`.
    data_dir: Option<PathBuf>,
    /// True to run without a data directory.
    #[serde(default)]
    in_memory: bool,
    /// The fleet of an empty data directory.
    pub(super) fleet: Option<PathBuf>,
    pub(super) metadata: MetadataTable,
    #[serde(default)]
    pub(super) api: ApiTable,
    arm: Option<ArmTable>,
    engine: Option<EngineTable>,
    server: Option<ServerTable>,
    pub(super) driver: DriverTable,
    #[serde(default)]
    pub(super) audit: AuditTable,
    #[serde(default)]
    pub(super) webhooks: WebhooksTable,
    #[serde(default)]
    pub(super) log: LogTable,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetadataTable {
    listen: Vec<ListenTable>,
    pub(super) threads: Option<NonZeroUsize>,
    #[serde(default)]
    first_answer: Option<String>,
    #[serde(default)]
    oldest_edition: Option<String>,
    #[serde(default)]
    host_names: Vec<String>,
    #[serde(default)]
    limits: LimitsTable,
    #[serde(default)]
    connection: ConnectionTable,
    /// The Azure directory in unsigned identity tokens. None for no identity tokens.
    identity_directory: Option<String>,
}

/// A listener for machines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListenTable {
    address: Option<TcpAddress>,
    interface: Option<String>,
    socket: Option<PathBuf>,
    mode: Option<Spanned<u32>>,
    machine: Option<String>,
    /// The cluster of the machines that are identified by their addresses.
    cluster: Option<Name>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiTable {
    socket: Option<PathBuf>,
    listen: Option<TcpAddress>,
    #[serde(default)]
    host_names: Vec<String>,
    first_token_file: Option<PathBuf>,
    tls: Option<TlsTable>,
    #[serde(default)]
    connection: ClientTable,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum DriverTable {
    Simulated {
        host_work: Option<HostWorkSetting>,
        host_reminder: Option<Span>,
        time_limit: Option<Span>,
    },
    Program {
        program: PathBuf,
        time_limit: Option<Span>,
        host_work: Option<HostWorkSetting>,
        host_reminder: Option<Span>,
        #[serde(default)]
        fencing: FencingSetting,
        /// True if two servers may run the program at the same time.
        #[serde(default)]
        shared: bool,
    },
}

/// `fencing` of `[driver]`: the need to fence a failed host before its machines start elsewhere.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FencingSetting {
    #[default]
    Required,
    Off,
}

/// `host_work` of `[driver]`: `"manual"`, or a command as a list of words.
#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "host_work is \"manual\" or a list of words, such as [\"ssh\", \"{host}\", \"update\"]"
)]
pub(super) enum HostWorkSetting {
    Word(ManualWord),
    Command(Vec<String>),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ManualWord {
    Manual,
}

/// `[audit]`: the retention of the audit log.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AuditTable {
    keep: Option<Span>,
}

/// `[webhooks]`: the delivery to webhooks.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct WebhooksTable {
    origin: Option<String>,
    ca: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LogTable {
    pub(super) format: Format,
    pub(super) level: Detail,
}

impl Config {
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text.len() > CONFIG_BYTES_MAX {
            bail!("configuration file too long: more than {CONFIG_BYTES_MAX} bytes");
        }
        let config: Self =
            toml::from_str(text).map_err(|error| anyhow!(plain_file_error(&error.to_string())))?;
        for mode in config.metadata.listen.iter().filter_map(|listen| listen.mode.as_ref()) {
            check_mode(*mode.get_ref(), text.get(mode.span()).unwrap_or_default())?;
        }
        Ok(config)
    }

    /// The listener for Azure clients. None without `[arm]`.
    pub(super) fn arm(&self) -> Result<Option<ArmPlan>> {
        let data_dir = self.data_dir()?;
        let directory = self.metadata.identity_directory.as_deref();
        self.arm.as_ref().map(|arm| arm.plan(data_dir.as_deref(), directory)).transpose()
    }

    /// The file for the first token: in the data directory, or for a server in memory in the state directory of the user.
    pub(super) fn first_token_file(&self) -> Option<PathBuf> {
        let default = || {
            let directory = self.data_dir.clone().or_else(state_directory::directory);
            Some(directory?.join(FIRST_TOKEN_FILE))
        };
        self.api.first_token_file.clone().or_else(default)
    }

    /// Limits of the listener for Azure clients.
    pub(super) fn arm_limits(&self) -> Result<ClientLimits> {
        self.arm.as_ref().map_or_else(|| Ok(ClientLimits::default()), ArmTable::limits)
    }

    pub(super) fn data_dir(&self) -> Result<Option<PathBuf>> {
        match (&self.data_dir, self.in_memory) {
            (Some(path), false) => Ok(Some(path.clone())),
            (None, true) => Ok(None),
            (None, false) => bail!(
                "no data directory\n  hint: data_dir = \"/var/lib/forewarn\"; or in_memory = true for a server that stores nothing"
            ),
            (Some(_), true) => bail!("data_dir and in_memory exclude each other"),
        }
    }
}

/// Requires octal notation: a decimal `660` would be another mode, without an error.
fn check_mode(mode: u32, written: &str) -> Result<()> {
    let octal = u32::from_str_radix(written, 8).ok().filter(|mode| *mode <= MODE_MAX);
    let suggested = octal.unwrap_or(SOCKET_MODE);
    if !written.starts_with("0o") {
        bail!("socket mode is not octal: mode = {written}\n  hint: mode = {suggested:#o}");
    }
    if mode > MODE_MAX {
        bail!("invalid socket mode: {written}\n  hint: at most 0o777, such as mode = {SOCKET_MODE:#o}");
    }
    Ok(())
}

impl MetadataTable {
    pub(super) fn settings(&self) -> Result<Settings> {
        let first_answer = match &self.first_answer {
            Some(text) => {
                parse_first_answer(text).map_err(|wrong| anyhow!("invalid metadata.first_answer: {wrong}"))?
            }
            None => FirstAnswer::Now,
        };
        let oldest_edition = match &self.oldest_edition {
            Some(text) => match Edition::parse(text) {
                Some(edition) => edition,
                None => bail!("invalid metadata.oldest_edition: {text}"),
            },
            None => Settings::default().oldest_edition,
        };
        let identity_token = match self.identity_directory.clone() {
            Some(directory) => IdentityToken::Unsigned { directory },
            None => IdentityToken::Off,
        };
        let hosts = hosts(&self.host_names, "add the name to metadata.host_names");
        Ok(Settings {
            first_answer,
            oldest_edition,
            limits: self.limits.limits()?,
            connections: self.connection.limits()?,
            identity_token,
            hosts,
        })
    }

    pub(super) fn listeners(&self) -> Result<Vec<(ListenAddress, Identity)>> {
        if self.listen.is_empty() {
            bail!(
                "no listener for machines\n  hint: [[metadata.listen]] with address = \"169.254.169.254:80\""
            );
        }
        self.listen.iter().map(ListenTable::listener).collect()
    }
}

impl ListenTable {
    fn listener(&self) -> Result<(ListenAddress, Identity)> {
        let Self { address, interface, socket, mode, machine, cluster } = self;
        let identity = match (machine, cluster) {
            (Some(machine), None) => Identity::Machine(machine.clone()),
            (None, Some(cluster)) => Identity::Address { cluster: cluster.clone() },
            (None, None) => Identity::Address { cluster: Name::new(ClusterId::DEFAULT_NAME)? },
            (Some(_), Some(_)) => bail!(
                "invalid metadata.listen: cluster and machine exclude each other\n  \
                 hint: machine = \"CLUSTER/TENANT/NAME\" for a machine outside of the default cluster"
            ),
        };
        Ok(match (address, interface, socket) {
            (Some(address), None, None) if mode.is_none() => (ListenAddress::Tcp(address.0), identity),
            (Some(address), Some(name), None)
                if mode.is_none() && (machine.is_some() || cluster.is_some()) =>
            {
                (ListenAddress::Interface { name: name.clone(), address: address.0 }, identity)
            }
            (Some(_), Some(_), None) if mode.is_none() => bail!(
                "invalid metadata.listen: an interface needs a machine or a cluster\n  \
                 hint: cluster = \"default\" identifies machines of the default cluster by their addresses"
            ),
            (None, None, Some(path)) if machine.is_some() => {
                let mode = mode.as_ref().map_or(SOCKET_MODE, |mode| *mode.get_ref());
                (ListenAddress::Unix { path: path.clone(), mode }, identity)
            }
            (Some(_) | None, Some(_) | None, Some(_) | None) => bail!(
                "invalid metadata.listen: needs an address, with a machine, a cluster or neither; or an address, \
                 an interface, and a machine or a cluster; or a socket and a machine\n  \
                 hint: address = \"169.254.169.254:80\" identifies machines of the default cluster by their addresses"
            ),
        })
    }
}

/// The host names of a listener. Error messages tell the way to add one.
fn hosts(names: &[String], advice: &'static str) -> OwnHosts {
    OwnHosts { names: names.to_vec(), container_names: ContainerNames::Rejected, advice: Some(advice) }
}

impl ApiTable {
    /// Host names that requests may have.
    pub(super) fn hosts(&self) -> OwnHosts {
        hosts(&self.host_names, "add the name to api.host_names")
    }

    /// Limits of the operator API.
    pub(super) fn limits(&self) -> Result<ClientLimits> {
        self.connection.limits("api.connection")
    }

    /// The listeners of the operator API: the address first, if there is one. A self-signed CA is stored below
    /// `data_dir`.
    pub(super) fn listeners(&self, data_dir: Option<&Path>) -> Result<Vec<ApiListener>> {
        let listen = self.listen.map(|TcpAddress(address)| address);
        let address = match (listen, &self.tls) {
            (Some(address), Some(tls)) => Some(ApiListener::Tls(
                address,
                tls.source("api.tls", data_dir, address.ip(), &self.host_names)?,
            )),
            (Some(address), None) if address.ip().is_loopback() => Some(ApiListener::Tokens(address)),
            (Some(address), None) => bail!(
                "listener without TLS: api.listen = {address} is not loopback\n  \
                 hint: [api.tls] with certificate and key, or with self_signed = true"
            ),
            (None, Some(_)) => {
                bail!("api.tls without api.listen\n  hint: only api.listen uses TLS, not api.socket")
            }
            (None, None) => None,
        };
        let socket = match (&self.socket, &address) {
            (Some(path), _) => Some(path.clone()),
            (None, None) => Some(service::SOCKET.into()),
            (None, Some(_)) => None,
        };
        Ok(address.into_iter().chain(socket.map(ApiListener::Unix)).collect())
    }
}

impl AuditTable {
    /// The retention of entries.
    pub(super) fn keep(&self) -> Result<Duration> {
        let keep = self.keep.map_or(AUDIT_RETENTION, |Span(span)| span);
        if keep < TRAIL_KEEP_MIN {
            bail!(
                "audit.keep is shorter than a day: audit.keep = \"{}\"\n  hint: keep = \"400d\"",
                show_duration(keep)
            );
        }
        Ok(keep)
    }
}

impl WebhooksTable {
    /// The settings of webhooks. The CA file is read now, so that an error appears at the start.
    pub(super) fn settings(&self) -> Result<WebhookSettings> {
        if let Some(file) = &self.ca {
            forewarn_server::tls::certificates(file).context("webhooks.ca")?;
        }
        let default = WebhookSettings::default();
        let origin = self.origin.clone().unwrap_or(default.origin);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        if !(1..=ORIGIN_BYTES_MAX).contains(&origin.len()) || !origin.bytes().all(is_name) {
            bail!("invalid origin: webhooks.origin = {origin:?}\n  hint: origin = \"forewarn.example\"");
        }
        Ok(WebhookSettings { origin, authorities: self.ca.clone() })
    }
}

impl DriverTable {
    pub(super) fn driver(&self) -> Result<forewarn_server::Hypervisor> {
        let (Self::Simulated { host_work, host_reminder, time_limit }
        | Self::Program { host_work, host_reminder, time_limit, .. }) = self;
        let reminder = host_reminder.map_or(REMINDER, |Span(span)| span);
        if reminder < REMINDER_MIN {
            bail!(
                "reminder too soon: driver.host_reminder = \"{}\"\n  hint: host_reminder = \"1h\"",
                show_duration(reminder)
            );
        }
        let time_limit = time_limit.map_or(TIME_LIMIT, |Span(span)| span);
        if time_limit.is_zero() {
            bail!("timeout of zero: driver.time_limit = \"0s\"\n  hint: time_limit = \"5m\"");
        }
        let machines = match self {
            Self::Simulated { .. } => MachineDriver::Simulated,
            Self::Program { program, .. } => {
                MachineDriver::Program(Program { path: program.clone(), time_limit })
            }
        };
        let hosts = match host_work {
            None => HostWorker::Driver,
            Some(HostWorkSetting::Word(ManualWord::Manual)) => HostWorker::Person { reminder },
            Some(HostWorkSetting::Command(words)) if words.is_empty() => {
                bail!(
                    "empty command: driver.host_work = []\n  hint: host_work = [\"ssh\", \"{{host}}\", \"update\"]"
                );
            }
            Some(HostWorkSetting::Command(words)) => {
                HostWorker::Command(HostCommand { words: words.clone(), time_limit })
            }
        };
        let fencing = match self {
            Self::Program { fencing: FencingSetting::Off, .. } => Fencing::Off,
            Self::Program { fencing: FencingSetting::Required, .. } | Self::Simulated { .. } => {
                Fencing::Required
            }
        };
        Ok(forewarn_server::Hypervisor { machines, hosts, fencing })
    }
}
