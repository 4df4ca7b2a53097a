//! Three machines, each with a member of etcd and a server of one realm, under faults: killed, stopped, cut off, with
//! full disks and wrong clocks. Everything that clients send and receive is a history, which is checked.
//!
//! ```text
//!   machine 0             machine 1             machine 2             clients
//!   10.78.0.1             10.78.0.2             10.78.0.3             10.78.0.100
//!   etcd, server s0       etcd, server s1       etcd, server s2       guests that poll all servers
//!       └──────────────────── one switch ───────────┴─────────────────────┘
//! ```
//!
//! Each machine is a network namespace with its own boot id, uptime and small disks. Operators use the sockets of the
//! servers. Needs root and packages of Debian; `cargo xtask machines` installs what is missing and runs these tests.

mod clients;
mod faults;
mod history;
mod machine;
mod real_clients;
mod rounds;
mod site;
