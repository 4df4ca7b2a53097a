//! The client against real members of etcd, which are killed, stopped and restarted.

#![cfg(test)]

mod basics;
mod support;
