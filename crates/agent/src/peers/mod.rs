//! The other machines: where they are, and how they say that they are ready.
//!
//! ```text
//!   GET /peers/v1/word                                        200
//!   Forewarn-Asker: web_0                                     Forewarn-Proof: HMAC(key, "word" 0 nonce 0 body)
//!   Forewarn-Nonce: 32 hex digits, never the same twice
//!   Forewarn-Proof: HMAC(key, "ask" 0 nonce 0 asker)          {"name":"web_1","events":{…}}
//! ```
//!
//! Whoever has the key is believed in everything; whoever has not can neither ask nor answer, and an answer fits one question
//! only. Nothing is encrypted: a stranger on the way can read names of machines and ids of events, and can keep an answer from
//! arriving. A question that a stranger repeats is answered again, with what that stranger could have read anyway; and the address
//! of that stranger gets the slots of a peer's address, which are limited for each address.

mod addresses;
mod ask;
mod find;
mod places;
mod poll;
mod proof;
#[cfg(test)]
mod tests;

pub(crate) use addresses::PeerAddresses;
pub(crate) use ask::Asker;
pub(crate) use places::PeerPlaces;
pub(crate) use poll::{PeerNews, PeerPoller};
pub(crate) use proof::{ASKER, Key, NONCE, Nonce, PROOF, is_asker};

/// Where a peer is asked.
pub(crate) const PATH: &str = "/peers/v1/word";
