//! The settings of `forewarn serve`: one TOML file, in which every key means something.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use forewarn_hypervisor::Program;
use forewarn_server::ApiDoor;
use forewarn_server::metadata::{Door, FirstAnswer, Identity, IdentityToken, Settings};
use forewarn_wire::{Edition, Span};
use serde::Deserialize;

use super::dev::parse_first_answer;
use super::limits::{ConnectionTable, LimitsTable};
use super::log::{Detail, Format};

/// Bytes of a file of settings.
pub(super) const CONFIG_BYTES_MAX: usize = 1024 * 1024;

/// How long a program may take for one order, unless said.
const TIME_LIMIT: Duration = Duration::from_mins(5);

/// Who may write to the socket of a machine, unless said: its owner and its group.
const SOCKET_MODE: u32 = 0o660;

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
    pub(super) api: Api,
    pub(super) hands: Hands,
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
    mode: Option<u32>,
    machine: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Api {
    socket: Option<PathBuf>,
    listen: Option<SocketAddr>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Hands {
    Pretend {},
    Program { program: PathBuf, time_limit: Option<Span> },
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
        Ok(toml::from_str(text)?)
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
                (Door::Unix { path: path.clone(), mode: mode.unwrap_or(SOCKET_MODE) }, identity)
            }
            (Some(_) | None, Some(_) | None, Some(_) | None) => bail!(
                "a place to listen has an address; or an address, an interface and a machine; or a socket and a machine\n  \
                 hint: address = \"169.254.169.254:80\" takes callers for whom their address says they are"
            ),
        })
    }
}

impl Api {
    pub(super) fn door(&self) -> Result<ApiDoor> {
        Ok(match (&self.socket, self.listen) {
            (Some(path), None) => ApiDoor::Unix(path.clone()),
            (None, Some(address)) if address.ip().is_loopback() => ApiDoor::Locked(address),
            (None, Some(address)) => bail!(
                "the key would travel in clear: {address} is not loopback\n  \
                 hint: use api.socket or a loopback address, and a tunnel from elsewhere"
            ),
            (Some(_), Some(_)) | (None, None) => {
                bail!("operators come in through one door: api.socket, or api.listen")
            }
        })
    }
}

impl Hands {
    pub(super) fn hands(self) -> forewarn_server::Hands {
        match self {
            Self::Pretend {} => forewarn_server::Hands::Pretend,
            Self::Program { program, time_limit } => {
                let time_limit = time_limit.map_or(TIME_LIMIT, |Span(span)| span);
                forewarn_server::Hands::Program(Program { path: program, time_limit })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_server::metadata::{ConnectionLimits, Limits};

    const LEAST: &str = "
in_memory = true
[[metadata.listen]]
address = '169.254.169.254:80'
[api]
socket = '/run/forewarn/api.sock'
[hands]
kind = 'pretend'
";

    #[test]
    fn the_least_that_is_needed() {
        let config = Config::parse(LEAST).unwrap();
        let settings = config.metadata.settings().unwrap();
        assert_eq!(settings.limits, Some(Limits::default()));
        assert_eq!(settings.connections, ConnectionLimits::default());
        assert_eq!(settings.identity_token, IdentityToken::Off);
        assert_eq!(config.metadata.doors().unwrap()[0].1, Identity::Address);
        assert_eq!(config.api.door().unwrap(), ApiDoor::Unix("/run/forewarn/api.sock".into()));
        assert!(config.data_dir().unwrap().is_none());
        assert_eq!(config.hands.hands(), forewarn_server::Hands::Pretend);
    }

    #[test]
    fn every_key_means_something() {
        for wrong in [
            LEAST.replace("[api]", "[api]\ncolour = 'red'"),
            LEAST.replace("[hands]", "[hands]\nfingers = 5"),
            LEAST.replace("[[metadata.listen]]", "[[metadata.listen]]\nport = 80"),
            format!("{LEAST}\n[metrics]\n"),
            LEAST.replace("pretend", "magic"),
        ] {
            assert!(Config::parse(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_door_is_whole_or_refused() {
        let doors = |listen: &str| {
            let text = LEAST.replace("address = '169.254.169.254:80'", listen);
            Config::parse(&text).unwrap().metadata.doors()
        };
        assert!(matches!(
            doors("address='1.2.3.4:80'\ninterface='tap0'\nmachine='m'").unwrap()[0].0,
            Door::Interface { .. }
        ));
        assert!(matches!(doors("socket='/s'\nmachine='m'").unwrap()[0].0, Door::Unix { mode: 0o660, .. }));
        for wrong in
            ["socket='/s'", "interface='tap0'", "address='1.2.3.4:80'\ninterface='tap0'", "machine='m'"]
        {
            assert!(doors(wrong).unwrap_err().to_string().contains("hint"), "{wrong}");
        }
    }

    #[test]
    fn the_api_is_a_socket_or_locked_and_never_seen_on_a_network() {
        let api = |text: &str| {
            Config::parse(&LEAST.replace("socket = '/run/forewarn/api.sock'", text)).unwrap().api.door()
        };
        assert!(matches!(api("listen = '127.0.0.1:1339'"), Ok(ApiDoor::Locked(_))));
        assert!(api("listen = '10.0.0.1:1339'").unwrap_err().to_string().contains("hint"));
        assert!(api("").is_err());
    }

    #[test]
    fn settings_are_read() {
        let text = LEAST.replace(
            "[api]",
            "[metadata]\nfirst_answer = '90s'\noldest_edition = '2017-08-01'\nhost_names = ['a.b']\n\
             identity_directory = 'd'\nlimits = { enabled = false }\n[api]",
        );
        let text = text.replace("[[metadata.listen]]\naddress = '169.254.169.254:80'\n", "");
        let text = text.replace("[metadata]", "[metadata]\nlisten = [{ address = '169.254.169.254:80' }]");
        let settings = Config::parse(&text).unwrap().metadata.settings().unwrap();
        assert_eq!(settings.first_answer, FirstAnswer::Delay(Duration::from_secs(90)));
        assert_eq!(settings.oldest_edition, Edition::V2017_08_01);
        assert_eq!(settings.limits, None);
    }
}
