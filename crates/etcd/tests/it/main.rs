//! The client against real members of etcd, which are killed, stopped and restarted.

#![cfg(test)]

mod basics;
mod endpoints;
mod leases;
mod limits;
mod login;
mod members;
mod newer;
mod support;
mod tls;
mod watches;
