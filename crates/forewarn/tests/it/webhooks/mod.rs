//! Webhooks, with the program itself and a receiver that writes everything down.
//!
//! | it owes | tests |
//! |---|---|
//! | every event is told when it is scheduled, starts, is completed or canceled, in both forms | `events` |
//! | chats are told in their own formats, and need not agree | `chats` |
//! | nobody is told who has not agreed | `handshakes` |
//! | in order, again and again until it is taken, and not elsewhere | `delivery` |
//! | nothing is lost, whenever the server is killed | `kill` |
//! | a failure is told with its reason | `reasons` |
//! | secrets are sent and never shown; certificates are looked at | `secrets` |

#![cfg(test)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod chats;
mod delivery;
mod events;
mod handshakes;
mod hosts;
mod kill;
mod reasons;
mod secrets;
