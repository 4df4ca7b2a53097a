//! The driver programs of `deploy/drivers`, and the command that judges driver programs.
//!
//! | a driver | tests |
//! |---|---|
//! | each order of the virsh driver takes effect once, wherever the driver dies | `virsh` |
//! | its moves between hosts, and its steps on hosts | `virsh_hosts` |
//! | `forewarn driver check` finds the faults of a driver | `check` |
//! | the JSON schemas of the contract | `schemas` |
//! | the same program with a real libvirtd and real guests | `libvirt` |
//! | the same program with the real virsh and libvirt's test hypervisor | `virsh_test_uri` |
//!
//! `virsh` and `virsh_hosts` use `fake-virsh`, whose guests are files.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod check;
mod libvirt;
mod schemas;
mod support;
mod virsh;
mod virsh_hosts;
mod virsh_test_uri;
