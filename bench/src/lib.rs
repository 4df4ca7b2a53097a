//! Code shared by the benchmarks, and by tests of costs: fleets, and clients that put load on a server.

pub mod blocks;
pub mod histogram;
pub mod http;
pub mod load;
pub mod program;
pub mod rules_fleet;

use std::error::Error;

/// The result of a client. A request that fails ends its program, with the response.
pub type LoadResult<T> = Result<T, Box<dyn Error + Send + Sync>>;
