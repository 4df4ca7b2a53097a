//! Peers: their discovery, and the protocol by which they report their status.
//!
//! ```text
//!   GET /peers/v1/status                                      200
//!   Forewarn-Peer: web_0                                      Forewarn-Proof: HMAC(key, "response" 0 nonce 0 body)
//!   Forewarn-Nonce: 32 hex digits, unique
//!   Forewarn-Proof: HMAC(key, "request" 0 nonce 0 peer)       {"name":"web_1","events":{…}}
//! ```
//!
//! A holder of the key is fully trusted; anyone else can neither send a request nor a response, and a response is valid
//! for one request only. Nothing is encrypted: an attacker on the path can read machine names and event ids, and can
//! drop responses. A replayed request is answered again, with data that the attacker could already read; the attacker's
//! address then gets the connection slots of a peer, which are limited per address.

mod addresses;
mod discovery;
mod finder;
mod peer_client;
mod poller;
mod proof;
#[cfg(test)]
mod tests;

pub(crate) use addresses::PeerAddresses;
pub(crate) use discovery::PeerDiscovery;
pub(crate) use peer_client::PeerClient;
pub(crate) use poller::{PeerNews, PeerPoller};
pub(crate) use proof::{Key, NONCE, Nonce, PEER, PROOF, is_peer_name};

/// Path of the peer status.
pub(crate) const PATH: &str = "/peers/v1/status";
