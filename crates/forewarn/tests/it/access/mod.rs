//! Who may do what through the operator API, with the program itself: roles, scopes, secrets, and requests that are repeated.
//!
//! | it owes | tests |
//! |---|---|
//! | a route is for whom it is said to be | `roles` |
//! | who is limited sees and touches nothing of others | `scopes` |
//! | nothing secret is in logs, files or errors | `secrets` |
//! | a request under a key is carried out once, also over a kill; what was read is edited | `repeated` |
//! | an empty list selects nothing | `lists` |
//! | a long response ends with its token | `streams` |
//! | the socket and the address have rules of their own; the command line | `doors` |

#![cfg(test)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod doors;
mod lists;
pub(crate) mod place;
mod repeated;
mod roles;
mod scopes;
mod secrets;
mod streams;
