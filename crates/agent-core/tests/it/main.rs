//! What an agent does about what it learns: documents, endings, peers and time go in, deeds come out.

#![cfg(test)]

mod approvals;
mod conditions;
mod lives;
mod peers;
mod phases;
mod properties;
mod retries;
mod support;
mod undoing;
