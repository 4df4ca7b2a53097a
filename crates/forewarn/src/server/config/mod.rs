//! The settings of `forewarn serve`: one TOML file, in which every key means something.
//!
//! Here is what can be seen from the file alone; what has to be there besides, on the machine that it is for, is
//! [`place`].

mod arm;
mod clients;
mod first_answer;
mod limits;
mod place;
mod secure;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use forewarn_azure::http::ArmPlan;
use forewarn_hypervisor::Program;
use forewarn_imds::Edition;
use forewarn_metadata::{Door, FirstAnswer, Identity, IdentityToken, Settings};
use forewarn_server::{ApiDoor, ClientLimits, WebhookSettings};
use forewarn_store::TRAIL_KEEP;
use forewarn_types::{Span, show_duration};
use serde::Deserialize;
use toml::Spanned;

use super::log::{Detail, Format};
use arm::Arm;
pub(super) use arm::DIRECTORY;
use clients::ClientTable;
pub(super) use first_answer::parse_first_answer;
use limits::{ConnectionTable, LimitsTable};
pub(super) use place::{check_doors, is_kept};
pub(crate) use place::{check_hands, check_interface};
pub(super) use secure::TLS_DIRECTORY;
use secure::TlsTable;

/// Where operators come in, unless said.
const API_SOCKET: &str = "/run/forewarn/api.sock";

/// Bytes of a file of settings.
pub(super) const CONFIG_BYTES_MAX: usize = 1024 * 1024;

/// How long a program may take for one order, unless said.
const TIME_LIMIT: Duration = Duration::from_mins(5);

/// The shortest time for which the trail is kept: what happened yesterday can be explained.
const TRAIL_KEEP_MIN: Duration = Duration::from_hours(24);

/// Characters of the name by which webhooks know the server.
const ORIGIN_BYTES_MAX: usize = 253;

/// Who may write to the socket of a machine, unless said: its owner and its group.
const SOCKET_MODE: u32 = 0o660;

/// Reading, writing and executing, for everybody.
const MODE_MAX: u32 = 0o777;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    /// Where everything is kept.
    data_dir: Option<PathBuf>,
    /// Nothing is kept, and that is meant.
    #[serde(default)]
    in_memory: bool,
    /// What there is at first.
    pub(super) fleet: Option<PathBuf>,
    pub(super) metadata: Metadata,
    #[serde(default)]
    pub(super) api: Api,
    arm: Option<Arm>,
    pub(super) hands: Hands,
    #[serde(default)]
    pub(super) audit: Audit,
    #[serde(default)]
    pub(super) webhooks: Webhooks,
    #[serde(default)]
    pub(super) log: Log,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metadata {
    listen: Vec<Listen>,
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
    /// The directory that unsigned identity tokens name; without it there are none.
    identity_directory: Option<String>,
}

/// One door for machines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listen {
    address: Option<SocketAddr>,
    interface: Option<String>,
    socket: Option<PathBuf>,
    mode: Option<Spanned<u32>>,
    machine: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Api {
    socket: Option<PathBuf>,
    listen: Option<SocketAddr>,
    #[serde(default)]
    pub(super) host_names: Vec<String>,
    tls: Option<TlsTable>,
    #[serde(default)]
    connection: ClientTable,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Hands {
    Pretend {},
    Program { program: PathBuf, time_limit: Option<Span> },
}

/// `[audit]`: the trail of what was asked for and what has happened.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Audit {
    keep: Option<Span>,
}

/// `[webhooks]`: how those are told who do not ask.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Webhooks {
    origin: Option<String>,
    ca: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Log {
    pub(super) format: Format,
    pub(super) level: Detail,
}

impl Config {
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text.len() > CONFIG_BYTES_MAX {
            bail!("a file of settings has at most {CONFIG_BYTES_MAX} bytes");
        }
        let config: Self = toml::from_str(text)?;
        for mode in config.metadata.listen.iter().filter_map(|listen| listen.mode.as_ref()) {
            check_mode(*mode.get_ref(), text.get(mode.span()).unwrap_or_default())?;
        }
        Ok(config)
    }

    /// How clients of Azure come in, if they do.
    pub(super) fn arm(&self) -> Result<Option<ArmPlan>> {
        let data_dir = self.data_dir()?;
        let directory = self.metadata.identity_directory.as_deref();
        self.arm.as_ref().map(|arm| arm.plan(data_dir.as_deref(), directory)).transpose()
    }

    /// Limits of the listener of clients of Azure.
    pub(super) fn arm_limits(&self) -> Result<ClientLimits> {
        self.arm.as_ref().map_or_else(|| Ok(ClientLimits::default()), Arm::limits)
    }

    pub(super) fn data_dir(&self) -> Result<Option<PathBuf>> {
        match (&self.data_dir, self.in_memory) {
            (Some(place), false) => Ok(Some(place.clone())),
            (None, true) => Ok(None),
            (None, false) => bail!(
                "nowhere to keep anything\n  hint: data_dir = \"/var/lib/forewarn\"; or in_memory = true, if nothing needs to be kept"
            ),
            (Some(_), true) => bail!("data_dir and in_memory exclude each other"),
        }
    }
}

/// The mode of a file is written in octal: in decimal, `660` would be another one, and nobody would notice.
fn check_mode(mode: u32, written: &str) -> Result<()> {
    let octal = u32::from_str_radix(written, 8).ok().filter(|mode| *mode <= MODE_MAX);
    let meant = octal.unwrap_or(SOCKET_MODE);
    if !written.starts_with("0o") {
        bail!("the mode of a socket is written in octal: mode = {written}\n  hint: mode = {meant:#o}");
    }
    if mode > MODE_MAX {
        bail!("no such mode of a socket: {written}\n  hint: at most 0o777, such as mode = {SOCKET_MODE:#o}");
    }
    Ok(())
}

impl Metadata {
    pub(super) fn settings(&self) -> Result<Settings> {
        let first_answer = match &self.first_answer {
            Some(text) => {
                parse_first_answer(text).map_err(|wrong| anyhow::anyhow!("first_answer: {wrong}"))?
            }
            None => FirstAnswer::Now,
        };
        let oldest_edition = match &self.oldest_edition {
            Some(text) => match Edition::parse(text) {
                Some(edition) => edition,
                None => bail!("oldest_edition: no such edition: {text}"),
            },
            None => Settings::default().oldest_edition,
        };
        let identity_token = match self.identity_directory.clone() {
            Some(directory) => IdentityToken::Unsigned { directory },
            None => IdentityToken::Off,
        };
        let host_names = self.host_names.clone();
        Ok(Settings {
            first_answer,
            oldest_edition,
            limits: self.limits.limits()?,
            connections: self.connection.limits()?,
            identity_token,
            host_names,
        })
    }

    pub(super) fn doors(&self) -> Result<Vec<(Door, Identity)>> {
        if self.listen.is_empty() {
            bail!(
                "no machine can come in\n  hint: [[metadata.listen]] with address = \"169.254.169.254:80\""
            );
        }
        self.listen.iter().map(Listen::door).collect()
    }
}

impl Listen {
    fn door(&self) -> Result<(Door, Identity)> {
        let Self { address, interface, socket, mode, machine } = self;
        let identity = machine.clone().map_or(Identity::Address, Identity::Machine);
        Ok(match (address, interface, socket) {
            (Some(address), None, None) if mode.is_none() => (Door::Tcp(*address), identity),
            (Some(address), Some(name), None) if mode.is_none() && machine.is_some() => {
                (Door::Interface { name: name.clone(), address: *address }, identity)
            }
            (None, None, Some(path)) if machine.is_some() => {
                let mode = mode.as_ref().map_or(SOCKET_MODE, |mode| *mode.get_ref());
                (Door::Unix { path: path.clone(), mode }, identity)
            }
            (Some(_) | None, Some(_) | None, Some(_) | None) => bail!(
                "a place to listen has an address, with or without a machine; or an address, an interface and a machine; \
                 or a socket and a machine\n  \
                 hint: address = \"169.254.169.254:80\" takes callers for whom their address says they are"
            ),
        })
    }
}

impl Api {
    /// Limits of the listeners of operators.
    pub(super) fn limits(&self) -> Result<ClientLimits> {
        self.connection.limits("api.connection")
    }

    /// Where operators come in: the address first, where there is one. An authority of the server's own is kept below
    /// `data_dir`.
    pub(super) fn doors(&self, data_dir: Option<&Path>) -> Result<Vec<ApiDoor>> {
        let address = match (self.listen, &self.tls) {
            (Some(address), Some(tls)) => {
                Some(ApiDoor::Tls(address, tls.source("api.tls", data_dir, address.ip(), &self.host_names)?))
            }
            (Some(address), None) if address.ip().is_loopback() => Some(ApiDoor::Locked(address)),
            (Some(address), None) => bail!(
                "tokens would travel in clear: {address} is not loopback\n  \
                 hint: [api.tls] with certificate and key, or with self_signed = true"
            ),
            (None, Some(_)) => bail!("a socket needs no TLS: api.tls\n  hint: TLS is for api.listen"),
            (None, None) => None,
        };
        let socket = match (&self.socket, &address) {
            (Some(path), _) => Some(path.clone()),
            (None, None) => Some(API_SOCKET.into()),
            (None, Some(_)) => None,
        };
        Ok(address.into_iter().chain(socket.map(ApiDoor::Unix)).collect())
    }
}

impl Audit {
    /// How long entries are kept.
    pub(super) fn keep(&self) -> Result<Duration> {
        let keep = self.keep.map_or(TRAIL_KEEP, |Span(span)| span);
        if keep < TRAIL_KEEP_MIN {
            bail!(
                "the trail is kept for a day at least: audit.keep = \"{}\"\n  hint: keep = \"400d\"",
                show_duration(keep)
            );
        }
        Ok(keep)
    }
}

impl Webhooks {
    /// How webhooks are told. Authorities are read now, so that what is wrong with them is known.
    pub(super) fn settings(&self) -> Result<WebhookSettings> {
        if let Some(file) = &self.ca {
            forewarn_server::tls::certificates(file).context("webhooks.ca")?;
        }
        let usual = WebhookSettings::default();
        let origin = self.origin.clone().unwrap_or(usual.origin);
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        if !(1..=ORIGIN_BYTES_MAX).contains(&origin.len()) || !origin.bytes().all(is_name) {
            bail!(
                "not a name by which webhooks can know a server: webhooks.origin = {origin:?}\n  hint: origin = \"forewarn.example\""
            );
        }
        Ok(WebhookSettings { origin, authorities: self.ca.clone() })
    }
}

impl Hands {
    pub(super) fn hands(&self) -> Result<forewarn_server::Hypervisor> {
        Ok(match self {
            Self::Pretend {} => forewarn_server::Hypervisor::Simulated,
            Self::Program { program, time_limit } => {
                let time_limit = time_limit.map_or(TIME_LIMIT, |Span(span)| span);
                if time_limit.is_zero() {
                    bail!(
                        "nothing can be done in no time: hands.time_limit = \"0s\"\n  hint: time_limit = \"5m\""
                    );
                }
                forewarn_server::Hypervisor::Program(Program { path: program.clone(), time_limit })
            }
        })
    }
}
