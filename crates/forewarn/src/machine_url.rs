//! URLs under which the machines of a local server poll: with `/vm/NAME`, or from an address of the machine.

use std::net::IpAddr;

use forewarn_url::Url;

/// The callers that reach a listener, by the address on which it listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerReach {
    /// Only callers on loopback.
    Loopback,
    /// Callers on loopback and beyond: it listens on all addresses.
    Everywhere,
    /// No caller has an address of loopback.
    BeyondLoopback,
}

impl ListenerReach {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Loopback,
            address if address.is_unspecified() => Self::Everywhere,
            _ => Self::BeyondLoopback,
        }
    }

    /// The reach of the listener with that URL. A host name is one of this computer.
    pub(crate) fn of_url(listener: &str) -> Self {
        let address = Url::parse(listener).ok().and_then(|url| url.host().parse().ok());
        address.map_or(Self::Loopback, Self::of)
    }
}

/// The base URL of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MachineUrl {
    pub(crate) url: String,
    /// The address from which a request must come. None: `/vm/NAME` in the URL names the machine.
    pub(crate) from: Option<IpAddr>,
}

impl MachineUrl {
    /// The URL at a listener. `name` is that of the machine after `/vm/`. A caller with an address of a machine is that
    /// machine, and has no `/vm/NAME`; only a caller on loopback chooses.
    pub(crate) fn at(listener: &str, name: &str, addresses: &[IpAddr]) -> Self {
        match (ListenerReach::of_url(listener), addresses.first()) {
            (ListenerReach::BeyondLoopback, Some(address)) => {
                Self { url: listener.to_owned(), from: Some(*address) }
            }
            (ListenerReach::Loopback | ListenerReach::Everywhere | ListenerReach::BeyondLoopback, _) => {
                Self { url: format!("{listener}/vm/{name}"), from: None }
            }
        }
    }

    /// The command that polls once.
    pub(crate) fn curl(&self) -> String {
        curl(&self.url)
    }
}

/// The command that polls once at a base URL, with the latest api-version.
pub(crate) fn curl(url: &str) -> String {
    let edition = forewarn_imds::Edition::newest().as_str();
    format!("curl -H Metadata:true \"{url}/metadata/scheduledevents?api-version={edition}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_an_address_polls_from_it_where_loopback_cannot() {
        let addresses = ["169.254.169.253".parse().unwrap()];
        let url = |listener: &str, addresses: &[IpAddr]| {
            let MachineUrl { url, from } = MachineUrl::at(listener, "app", addresses);
            (url, from.is_some())
        };
        let beyond = "http://169.254.169.254:80";
        assert_eq!(url(beyond, &addresses), (beyond.to_owned(), true));
        assert_eq!(url(beyond, &[]), (format!("{beyond}/vm/app"), false));
        for listener in ["http://127.0.0.1:1338", "http://[::1]:1338", "http://0.0.0.0:80", "http://[::]:80"]
        {
            assert_eq!(url(listener, &addresses), (format!("{listener}/vm/app"), false));
        }
    }

    #[test]
    fn the_request_is_quoted_for_a_shell() {
        assert_eq!(
            curl("http://127.0.0.1:1338/vm/web_0"),
            "curl -H Metadata:true \"http://127.0.0.1:1338/vm/web_0/metadata/scheduledevents?api-version=2020-07-01\""
        );
    }
}
