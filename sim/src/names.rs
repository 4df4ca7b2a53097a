//! The names of the servers.

use forewarn_ownership::ServerName;

/// The number of servers.
pub(crate) const SERVERS: usize = 3;

const NAMES: [&str; SERVERS] = ["alpha", "beta", "gamma"];

pub(crate) fn name_of(index: usize) -> ServerName {
    ServerName::new(NAMES[index % SERVERS]).expect("a good name")
}

pub(crate) fn index_of(name: &ServerName) -> Option<usize> {
    NAMES.iter().position(|known| *known == name.as_str())
}
