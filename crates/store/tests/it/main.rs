//! The journal: stored form, audit log, upgrades, and what survives kills, power cuts and damaged disks.

#![cfg(test)]

mod durability;
mod embedded;
mod filing;
mod installing;
mod stored;
mod stored_settings;
mod streams;
mod support;
mod trail;
mod upgrade;
