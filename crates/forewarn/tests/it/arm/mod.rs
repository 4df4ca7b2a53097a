//! Azure Resource Manager, from outside: the program itself, and clients of Azure that nobody has changed.
//!
//! | what | where | needs |
//! |---|---|---|
//! | the documented REST calls, byte for byte | `documented`, `lengths` | – |
//! | what the documented PowerShell cmdlets send | `cmdlets` | – |
//! | operations: what ends them, and what they outlive | `operations` | – |
//! | acknowledging, and why nothing was seen | `acknowledge`, `explained` | – |
//! | what machines read of themselves: names, sizes | `metadata` | – |
//! | TLS, and `forewarn az env` | `secure` | `curl` |
//! | `az`: scale sets, machines, availability sets, groups | `scale_sets`, `flexible`, `machines`, `sets` | `az` |
//! | `az`: the rules of deletes, models and spot | `rules` | `az` |
//! | `az`: what is not supported | `unsupported` | `az` |
//! | `az` 2.50, 2.72 and the newest: login without a network | `versions` | root, `az` of each version |
//! | the compute clients for Python and JavaScript | `clients` | both |
//!
//! What needs a client is ignored unless it is asked for: `cargo xtask azure` installs them and says where they are, in
//! `FOREWARN_AZ`, `FOREWARN_AZ_2_50`, `FOREWARN_AZ_2_72`, `FOREWARN_AZURE_PYTHON` and `FOREWARN_AZURE_NODE`. Machines are asked what they see through the metadata
//! endpoint, the clock stands still unless a test sets it forward, and a client that waits runs beside the test.

#![cfg(test)]

mod acknowledge;
mod clients;
mod cmdlets;
mod documented;
mod explained;
mod flexible;
mod lengths;
mod machines;
mod metadata;
mod operations;
mod rules;
mod scale_sets;
mod secure;
mod sets;
mod unsupported;
mod versions;
