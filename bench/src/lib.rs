//! Code shared by the programs that put load on an endpoint.

pub mod histogram;
