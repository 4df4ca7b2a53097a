//! The measured server: `forewarn dev` with default settings.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

use super::cores::CpuPlacement;
use super::response::Response;
use super::server::{Server, Start};

const NAME: &str = "forewarn";
/// The file appears when all listeners are ready.
pub(in crate::bench) const ADDRESSES: &str = "addresses.json";

/// The program.
pub(in crate::bench) struct Forewarn {
    pub(in crate::bench) program: PathBuf,
}

impl Forewarn {
    pub(in crate::bench) fn start(&self, place: CpuPlacement) -> Result<Server> {
        let threads = place.threads().to_string();
        self.start_with(place, &["--metadata-threads", &threads])
    }

    /// The time from the start of the program to the end of its first response, with default settings.
    pub(in crate::bench) fn time_to_first_response(&self) -> Result<Duration> {
        let begin = Instant::now();
        let server = self.start_with(CpuPlacement::Anywhere { cores: 1 }, &[])?;
        Response::get(server.at())?;
        Ok(begin.elapsed())
    }

    fn start_with(&self, place: CpuPlacement, words: &[&str]) -> Result<Server> {
        let directory = tempfile::tempdir().context("no temporary directory")?;
        let mut command = place.command(&self.program);
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "off"]);
        command.arg("--addresses-file").arg(directory.path().join(ADDRESSES)).args(words);
        Start { name: NAME, command, stop: None, directory }.run(find_address)
    }
}

fn find_address(directory: &Path) -> Option<SocketAddr> {
    parse_address(&std::fs::read_to_string(directory.join(ADDRESSES)).ok()?)
}

fn parse_address(text: &str) -> Option<SocketAddr> {
    let addresses: Value = serde_json::from_str(text).ok()?;
    addresses["metadata"].as_str()?.strip_prefix("http://")?.trim_end_matches('/').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_endpoint_is_one_of_several() {
        let text = r#"{"metadata":"http://127.0.0.1:4001","api":"http://127.0.0.1:4002"}"#;
        assert_eq!(parse_address(text), Some(SocketAddr::from(([127, 0, 0, 1], 4_001))));
        assert_eq!(parse_address("{}"), None);
    }
}
