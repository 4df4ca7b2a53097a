//! A server with its settings in a file.

use std::fs::{self, File};
use std::process::{Child, Command};

use serde_json::Value;

use crate::patience::until;
use crate::support::Place;

pub(crate) struct Server {
    process: Child,
    log: String,
    out: String,
    pub(crate) api: String,
    pub(crate) metadata: String,
}

impl Server {
    /// Starts with those settings of the API.
    pub(crate) fn start(place: &Place, api: &str) -> Self {
        Self::start_with(place, api, "")
    }

    /// Starts with those settings of the API, and more.
    pub(crate) fn start_with(place: &Place, api: &str, more: &str) -> Self {
        let config = place.config(api, more);
        let (log, out, addresses) = (place.path("log"), place.path("out"), place.path("addresses.json"));
        let mut command = place.command();
        command.args(["serve", "--config", &config, "--addresses-file", &addresses]);
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&log).unwrap());
        let process = command.spawn().unwrap();
        let mut server = Self { process, log, out, api: String::new(), metadata: String::new() };
        server.hear("forewarn serves");
        let addresses: Value = serde_json::from_str(&fs::read_to_string(addresses).unwrap()).unwrap();
        server.api = addresses["api"].as_str().unwrap().to_owned();
        server.metadata = addresses["metadata"].as_str().unwrap().to_owned();
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.api.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// The key of operators, which it has printed.
    pub(crate) fn key(&self) -> String {
        let said = fs::read_to_string(&self.out).unwrap();
        said.split_whitespace().last().unwrap_or_default().to_owned()
    }

    /// Waits until the log has that.
    pub(crate) fn hear(&self, wanted: &str) {
        until(wanted, || self.said().contains(wanted).then_some(()));
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Has it read its settings again, and waits until it has.
    pub(crate) fn reload(&self) {
        let count = || self.said().matches("read again").count();
        let (before, number) = (count(), self.process.id().to_string());
        assert!(Command::new("kill").args(["-HUP", &number]).status().unwrap().success());
        until("the settings are read again", || (count() != before).then_some(()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to end.
        self.process.kill().ok();
        self.process.wait().ok();
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}
