//! Requests of a check, as the server would send them.

use clap::ValueEnum;
use serde_json::{Value, json};

/// An order on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HostVerb {
    #[value(name = "update_host")]
    Update,
    #[value(name = "reboot_host")]
    Reboot,
    #[value(name = "fence_host")]
    Fence,
}

impl HostVerb {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Update => "update_host",
            Self::Reboot => "reboot_host",
            Self::Fence => "fence_host",
        }
    }

    const fn cause(self) -> &'static str {
        match self {
            Self::Update => "update",
            Self::Reboot => "restart",
            Self::Fence => "failed",
        }
    }
}

/// The machine of a check.
#[derive(Clone, Debug)]
pub(super) struct CheckedMachine {
    pub(super) tenant: String,
    pub(super) machine: String,
    /// The host on which it is at the moment.
    pub(super) host: String,
}

/// An order with its name, which may be sent many times.
#[derive(Clone, Debug)]
pub(super) struct NamedOrder {
    /// The verb, with details that the report shows.
    pub(super) label: String,
    pub(super) body: Value,
}

/// Names of actions that no server has given.
pub(super) struct ActionNames {
    prefix: String,
    count: u32,
}

impl ActionNames {
    pub(super) fn new() -> anyhow::Result<Self> {
        let mut random = [0; 12];
        getrandom::fill(&mut random).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
        Ok(Self { prefix: data_encoding::HEXLOWER.encode(&random), count: 0 })
    }

    fn next(&mut self) -> String {
        self.count += 1;
        format!("{}{:08x}", self.prefix, self.count)
    }

    /// An order on a machine.
    pub(super) fn guest(&mut self, at: &CheckedMachine, verb: &str) -> NamedOrder {
        let body = json!({
            "action": self.next(), "verb": verb, "tenant": at.tenant, "machine": at.machine, "host": at.host, "boots": 1,
        });
        NamedOrder { label: verb.to_owned(), body }
    }

    /// An order that moves a machine.
    pub(super) fn transfer(&mut self, at: &CheckedMachine, verb: &str, to: &str) -> NamedOrder {
        let mut order = self.guest(at, verb);
        order.body["to"] = json!(to);
        order.label = format!("{verb} to {to}");
        order
    }

    /// A pause that ends by itself.
    pub(super) fn pause_for(&mut self, at: &CheckedMachine, seconds: u32) -> NamedOrder {
        let mut order = self.guest(at, "pause");
        order.body["seconds"] = json!(seconds);
        order.label = format!("pause for {seconds} s");
        order
    }

    /// An order on a host.
    pub(super) fn host(&mut self, host: &str, verb: HostVerb) -> NamedOrder {
        let body = json!({
            "action": self.next(), "verb": verb.as_str(), "host": host, "cause": verb.cause(), "work": "forewarn driver check",
        });
        NamedOrder { label: verb.as_str().to_owned(), body }
    }
}

/// The query for the state of a machine.
pub(super) fn state_query(machine: &str, host: &str) -> Value {
    json!({ "verb": "state", "machine": machine, "host": host })
}
