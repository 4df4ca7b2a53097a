//! Queries DHCP servers for the address of the endpoint, on all active network interfaces in parallel.
//!
//! Sends a DHCPDISCOVER and accepts no offer, so that no address changes. It is sent from port 68, which needs root or
//! `CAP_NET_BIND_SERVICE`. The port is shared with the DHCP client of the machine: both receive broadcast responses.
//!
//! Interfaces are read from `/sys/class/net`, so this works on Linux only.

mod message;

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backoff::random_seed;
use message::DiscoverRequest;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;

/// Number of attempts, and the timeout of each. Servers check for up to three seconds whether an address is in use
/// before they offer it.
const ATTEMPTS: u32 = 2;
const RESPONSE_MAX: Duration = Duration::from_secs(4);

/// Limit of network interfaces that are queried.
const INTERFACES_MAX: usize = 16;

const INTERFACES: &str = "/sys/class/net";

/// Flags and type of a usable interface, as defined by Linux.
const UP: u32 = 0x1;
const BROADCASTS: u32 = 0x2;
const LOOPBACK: u32 = 0x8;
const ETHERNET: &str = "1";

/// Interfaces that a message names.
const NAMED_MAX: usize = 3;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NetworkInterface {
    name: String,
    hardware: [u8; 6],
}

/// Returns the interface and the address of the first usable offer, or the reasons why there is none.
pub(crate) async fn query() -> Result<(String, Ipv4Addr), Vec<(String, String)>> {
    let interfaces = interfaces(Path::new(INTERFACES)).map_err(|reason| vec![("DHCP".to_owned(), reason)])?;
    let mut queries = JoinSet::new();
    for interface in interfaces {
        queries.spawn(async move {
            let received = query_on(&interface).await;
            (interface.name, received)
        });
    }
    let mut failed = Vec::new();
    while let Some(received) = queries.join_next().await {
        match received {
            Ok((name, Ok(address))) => return Ok((name, address)),
            Ok((name, Err(reason))) => failed.push((name, reason)),
            Err(error) => failed.push(("an interface".to_owned(), error.to_string())),
        }
    }
    Err(by_reason(failed))
}

/// Groups interfaces that failed for the same reason, so that a reason and its hint appear once.
fn by_reason(failed: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut names = BTreeMap::<String, Vec<String>>::new();
    for (name, reason) in failed {
        names.entry(reason).or_default().push(name);
    }
    let shown = |mut names: Vec<String>| {
        names.sort();
        let more = names.len().saturating_sub(NAMED_MAX);
        names.truncate(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("DHCP on {}{more}", names.join(", "))
    };
    let mut reasons: Vec<_> = names.into_iter().map(|(reason, names)| (shown(names), reason)).collect();
    reasons.sort();
    reasons
}

async fn query_on(interface: &NetworkInterface) -> Result<Ipv4Addr, String> {
    let socket = open(&interface.name).map_err(|error| describe(&error))?;
    let xid = u32::try_from(random_seed() >> 32).unwrap_or_default();
    let request = DiscoverRequest { hardware: interface.hardware, xid };
    let broadcast = SocketAddrV4::new(Ipv4Addr::BROADCAST, SERVER_PORT);
    for _ in 0..ATTEMPTS {
        let sent = socket.send_to(&request.discover(), broadcast).await;
        sent.map_err(|error| format!("cannot send: {error}"))?;
        if let Ok(received) = timeout(RESPONSE_MAX, receive_offer(&socket, request)).await {
            return received;
        }
    }
    Err("no DHCP server responded".to_owned())
}

async fn receive_offer(socket: &UdpSocket, request: DiscoverRequest) -> Result<Ipv4Addr, String> {
    let mut buffer = [0; 2048];
    loop {
        let received = socket.recv_from(&mut buffer).await;
        let (length, from) = received.map_err(|error| format!("cannot listen: {error}"))?;
        let Some(offer) = buffer.get(..length).and_then(|bytes| request.read_offer(bytes)) else { continue };
        let without = || format!("the DHCP server {} does not offer option 245", from.ip());
        return offer.endpoint.ok_or_else(without);
    }
}

fn open(interface: &str) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    #[cfg(target_os = "linux")]
    socket.bind_device(Some(interface.as_bytes()))?;
    #[cfg(not(target_os = "linux"))]
    let _ = interface;
    socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT))))?;
    UdpSocket::from_std(socket.into())
}

/// Describes why port 68 cannot be used.
fn describe(error: &Error) -> String {
    let hint = if error.kind() == ErrorKind::PermissionDenied {
        "\n  hint: only root, or a program with CAP_NET_BIND_SERVICE, may use port 68"
    } else if error.kind() == ErrorKind::AddrInUse {
        "\n  hint: the DHCP client that has port 68 does not share it; it may write a lease file"
    } else {
        ""
    };
    format!("cannot use port 68: {error}{hint}")
}

/// The interfaces that are up and are not loopback, in the order of their names.
fn interfaces(location: &Path) -> Result<Vec<NetworkInterface>, String> {
    let entries = std::fs::read_dir(location);
    let entries = entries.map_err(|error| format!("cannot list network interfaces: {error}"))?;
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let interfaces: Vec<_> =
        names.iter().filter_map(|name| interface(location, name)).take(INTERFACES_MAX).collect();
    if interfaces.is_empty() { Err("no network interface is up".to_owned()) } else { Ok(interfaces) }
}

fn interface(location: &Path, name: &str) -> Option<NetworkInterface> {
    let read = |what: &str| std::fs::read_to_string(location.join(name).join(what)).ok();
    let flags = u32::from_str_radix(read("flags")?.trim().strip_prefix("0x")?, 16).ok()?;
    if flags & UP == 0 || flags & BROADCASTS == 0 || flags & LOOPBACK != 0 || read("type")?.trim() != ETHERNET
    {
        return None;
    }
    let address = read("address")?;
    let bytes: Option<Vec<u8>> =
        address.trim().split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    Some(NetworkInterface { name: name.to_owned(), hardware: bytes?.try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cards_that_are_up_and_lead_somewhere_are_asked_on() {
        let location = tempfile::tempdir().unwrap();
        let add = |name: &str, flags: &str, kind: &str, address: &str| {
            let interface = location.path().join(name);
            std::fs::create_dir(&interface).unwrap();
            for (what, text) in [("flags", flags), ("type", kind), ("address", address)] {
                std::fs::write(interface.join(what), format!("{text}\n")).unwrap();
            }
        };
        assert_eq!(interfaces(location.path()), Err("no network interface is up".to_owned()));
        add("lo", "0x9", "772", "00:00:00:00:00:00");
        add("eth1", "0x1003", "1", "02:00:00:00:00:01");
        add("eth0", "0x1003", "1", "02:00:00:00:00:00");
        add("down", "0x1002", "1", "02:00:00:00:00:02");
        add("tun0", "0x1091", "65534", "");
        add("odd", "0x1003", "1", "02:00");
        std::fs::write(location.path().join("bonding_masters"), "").unwrap();
        let found = interfaces(location.path()).unwrap();
        let names: Vec<_> =
            found.iter().map(|interface| (interface.name.as_str(), interface.hardware[5])).collect();
        assert_eq!(names, [("eth0", 0), ("eth1", 1)]);
        assert!(interfaces(&location.path().join("nowhere")).unwrap_err().contains("cannot list"));
    }

    #[test]
    fn interfaces_with_the_same_reason_share_a_message() {
        let failed = |names: &[&str]| {
            let denied = describe(&Error::from(ErrorKind::PermissionDenied));
            by_reason(names.iter().map(|name| ((*name).to_owned(), denied.clone())).collect())
        };
        let all = failed(&["veth2", "eth0", "veth1", "docker0", "veth3"]);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0, "DHCP on docker0, eth0, veth1 and 2 more");
        assert_eq!(all[0].1.matches("hint:").count(), 1);
        let two = [("eth1", "no DHCP server responded"), ("eth0", "cannot send")];
        let two = by_reason(two.map(|(name, reason)| (name.to_owned(), reason.to_owned())).to_vec());
        assert_eq!(two[0], ("DHCP on eth0".to_owned(), "cannot send".to_owned()));
        assert_eq!(two[1].0, "DHCP on eth1");
    }

    #[test]
    fn a_missing_permission_has_a_hint() {
        assert!(describe(&Error::from(ErrorKind::PermissionDenied)).contains("CAP_NET_BIND_SERVICE"));
        assert!(describe(&Error::from(ErrorKind::AddrInUse)).contains("does not share it"));
        assert!(!describe(&Error::from(ErrorKind::NetworkUnreachable)).contains("hint"));
    }
}
