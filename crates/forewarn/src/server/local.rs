//! The plan of a local server in memory, on loopback: of `forewarn dev`, and of `forewarn test`.

use std::net::SocketAddr;

use forewarn_control::Fleet;
use forewarn_lifecycle::{Seed, Timestamp};
use forewarn_metadata::{Identity, IdentityToken, ListenAddress, Settings};
use forewarn_server::{ApiListener, ClientLimits, ClockPlan, Descriptors, Hypervisor, Plan, WebhookSettings};
use forewarn_url::OwnHosts;

use super::config::DIRECTORY;
use super::resources::cores;
use crate::machine_url::ListenerReach;

/// The part of a local server that differs.
pub(crate) struct LocalServer {
    /// `dev` or `test`.
    pub(crate) mode: &'static str,
    pub(crate) fleet: Fleet,
    pub(crate) seed: Seed,
    pub(crate) clock: ClockPlan,
    pub(crate) metadata_listen: SocketAddr,
    pub(crate) api_listen: SocketAddr,
    /// Machine that requests without /vm/NAME come from.
    pub(crate) default_vm: Option<String>,
    /// Host names of its listeners.
    pub(crate) hosts: OwnHosts,
}

impl LocalServer {
    /// The plan: simulated machines, no limits, no TLS listener.
    pub(crate) fn plan(self) -> Plan {
        let identity_token = IdentityToken::Unsigned { directory: DIRECTORY.to_owned() };
        let metadata = ListenAddress::Tcp(self.metadata_listen);
        let default = self.default_vm;
        let identity = match ListenerReach::of(self.metadata_listen.ip()) {
            ListenerReach::Loopback => Identity::Prefix { default },
            ListenerReach::Everywhere | ListenerReach::BeyondLoopback => {
                Identity::AddressOrPrefix { default }
            }
        };
        Plan {
            mode: self.mode,
            seed: self.seed,
            clock: self.clock,
            data_dir: None,
            hypervisor: Hypervisor::simulated(),
            fleet: self.fleet,
            settings: Settings {
                limits: None,
                identity_token,
                hosts: self.hosts.clone(),
                ..Settings::default()
            },
            metadata_listeners: vec![(metadata, identity)],
            threads: cores(),
            api: vec![ApiListener::Open(self.api_listen)],
            api_hosts: self.hosts,
            first_token_file: None,
            api_limits: ClientLimits::default(),
            extension_limits: ClientLimits::default(),
            descriptors: Descriptors::default(),
            extensions: Vec::new(),
            audit_keep: forewarn_store::AUDIT_RETENTION,
            webhooks: WebhookSettings::default(),
            realm: None,
        }
    }
}

/// The seed of ids with a number.
pub(crate) fn seed(number: u64) -> Seed {
    let mut seed = *b"forewarn dev 000";
    seed[8..].copy_from_slice(&number.to_le_bytes());
    Seed(seed)
}

/// The current time, rounded down to a second.
pub(crate) fn wall() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_secs()).unwrap_or(i64::MAX).saturating_mul(1_000))
}
