//! The web dashboard as a browser meets it, without the browser: its files, sessions, and `forewarn dashboard`.
//!
//! | it owes | tests |
//! |---|---|
//! | the page is on every listener of operators, and on no other | `served` |
//! | a session is worth its token, in the own page only | `sessions` |
//! | `forewarn dashboard`: the page for any server, without a token in the browser | `command`, `proxied` |

mod command;
mod place;
mod proxied;
mod served;
mod sessions;
