//! Asks DHCP servers where the endpoint is, on every network card that is up, side by side.
//!
//! The question is a DHCPDISCOVER; what is offered is not taken, so no address changes. It is sent from port 68, which only root
//! or whoever has `CAP_NET_BIND_SERVICE` may use, and which is shared with the DHCP client of the machine: answers that go to
//! everybody reach both.
//!
//! Cards are known from `/sys/class/net`: this is for Linux.

mod message;

use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backoff::chance;
use message::Asker;

const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;

/// How often it is asked, and how long an answer may take each time. Servers look whether an address is in use before they
/// offer it, which takes them up to three seconds.
const TIMES: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(4);

/// Network cards that are looked at.
const CARDS_MAX: usize = 16;

const CARDS: &str = "/sys/class/net";

/// The flags and the type of a card that can be asked on, as Linux numbers them.
const UP: u32 = 0x1;
const BROADCASTS: u32 = 0x2;
const LOOPBACK: u32 = 0x8;
const ETHERNET: &str = "1";

/// A network card.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Card {
    name: String,
    hardware: [u8; 6],
}

/// The card on which somebody knew, and what; or for each place why nobody did.
pub(crate) async fn ask() -> Result<(String, Ipv4Addr), Vec<(String, String)>> {
    let cards = cards(Path::new(CARDS)).map_err(|why| vec![("DHCP".to_owned(), why)])?;
    let mut asking = JoinSet::new();
    for card in cards {
        asking.spawn(async move {
            let heard = ask_on(&card).await;
            (card.name, heard)
        });
    }
    let mut reasons = Vec::new();
    while let Some(heard) = asking.join_next().await {
        match heard {
            Ok((name, Ok(address))) => return Ok((name, address)),
            Ok((name, Err(why))) => reasons.push((format!("DHCP on {name}"), why)),
            Err(problem) => reasons.push(("DHCP".to_owned(), problem.to_string())),
        }
    }
    reasons.sort();
    Err(reasons)
}

async fn ask_on(card: &Card) -> Result<Ipv4Addr, String> {
    let socket = open(&card.name).map_err(|problem| told(&problem))?;
    let xid = u32::try_from(chance() >> 32).unwrap_or_default();
    let asker = Asker { hardware: card.hardware, xid };
    let everybody = SocketAddrV4::new(Ipv4Addr::BROADCAST, SERVER_PORT);
    for _ in 0..TIMES {
        let sent = socket.send_to(&asker.discover(), everybody).await;
        sent.map_err(|problem| format!("cannot send: {problem}"))?;
        if let Ok(heard) = timeout(PATIENCE, hear(&socket, asker)).await {
            return heard;
        }
    }
    Err("no DHCP server answers".to_owned())
}

async fn hear(socket: &UdpSocket, asker: Asker) -> Result<Ipv4Addr, String> {
    let mut buffer = [0; 2048];
    loop {
        let heard = socket.recv_from(&mut buffer).await;
        let (length, from) = heard.map_err(|problem| format!("cannot listen: {problem}"))?;
        let Some(offer) = buffer.get(..length).and_then(|bytes| asker.read_offer(bytes)) else { continue };
        let without = || format!("the DHCP server {} does not offer option 245", from.ip());
        return offer.endpoint.ok_or_else(without);
    }
}

fn open(card: &str) -> std::io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_broadcast(true)?;
    #[cfg(target_os = "linux")]
    socket.bind_device(Some(card.as_bytes()))?;
    #[cfg(not(target_os = "linux"))]
    let _ = card;
    socket.bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT))))?;
    UdpSocket::from_std(socket.into())
}

/// Why port 68 cannot be used.
fn told(problem: &Error) -> String {
    let hint = if problem.kind() == ErrorKind::PermissionDenied {
        "\n  hint: only root, or a program with CAP_NET_BIND_SERVICE, may use port 68"
    } else if problem.kind() == ErrorKind::AddrInUse {
        "\n  hint: the DHCP client that has port 68 does not share it; it may write a lease file"
    } else {
        ""
    };
    format!("cannot be asked: {problem}{hint}")
}

/// The cards that are up and are no loopback, in the order of their names.
fn cards(place: &Path) -> Result<Vec<Card>, String> {
    let entries = std::fs::read_dir(place);
    let entries = entries.map_err(|problem| format!("cannot list network cards: {problem}"))?;
    let mut names: Vec<_> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    let cards: Vec<_> = names.iter().filter_map(|name| card(place, name)).take(CARDS_MAX).collect();
    if cards.is_empty() { Err("no network card is up".to_owned()) } else { Ok(cards) }
}

fn card(place: &Path, name: &str) -> Option<Card> {
    let read = |what: &str| std::fs::read_to_string(place.join(name).join(what)).ok();
    let flags = u32::from_str_radix(read("flags")?.trim().strip_prefix("0x")?, 16).ok()?;
    if flags & UP == 0 || flags & BROADCASTS == 0 || flags & LOOPBACK != 0 || read("type")?.trim() != ETHERNET
    {
        return None;
    }
    let address = read("address")?;
    let bytes: Option<Vec<u8>> =
        address.trim().split(':').map(|part| u8::from_str_radix(part, 16).ok()).collect();
    Some(Card { name: name.to_owned(), hardware: bytes?.try_into().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cards_that_are_up_and_lead_somewhere_are_asked_on() {
        let place = tempfile::tempdir().unwrap();
        let add = |name: &str, flags: &str, kind: &str, address: &str| {
            let card = place.path().join(name);
            std::fs::create_dir(&card).unwrap();
            for (what, text) in [("flags", flags), ("type", kind), ("address", address)] {
                std::fs::write(card.join(what), format!("{text}\n")).unwrap();
            }
        };
        assert_eq!(cards(place.path()), Err("no network card is up".to_owned()));
        add("lo", "0x9", "772", "00:00:00:00:00:00");
        add("eth1", "0x1003", "1", "02:00:00:00:00:01");
        add("eth0", "0x1003", "1", "02:00:00:00:00:00");
        add("down", "0x1002", "1", "02:00:00:00:00:02");
        add("tun0", "0x1091", "65534", "");
        add("odd", "0x1003", "1", "02:00");
        std::fs::write(place.path().join("bonding_masters"), "").unwrap();
        let found = cards(place.path()).unwrap();
        let names: Vec<_> = found.iter().map(|card| (card.name.as_str(), card.hardware[5])).collect();
        assert_eq!(names, [("eth0", 0), ("eth1", 1)]);
        assert!(cards(&place.path().join("nowhere")).unwrap_err().contains("cannot list"));
    }

    #[test]
    fn who_is_not_permitted_is_told_what_is_needed() {
        assert!(told(&Error::from(ErrorKind::PermissionDenied)).contains("CAP_NET_BIND_SERVICE"));
        assert!(told(&Error::from(ErrorKind::AddrInUse)).contains("does not share it"));
        assert!(!told(&Error::from(ErrorKind::NetworkUnreachable)).contains("hint"));
    }
}
