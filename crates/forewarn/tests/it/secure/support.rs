//! A directory with everything that a server with TLS needs.

use forewarn_testkit::command::run_with_input;
use forewarn_testkit::{CommandResult, SOLO_FLEET, ServeDir, TestServer, serve_dir};

use forewarn_testkit::tls::Leaf;

serve_dir!(Place);

impl Place {
    pub(crate) fn new() -> Self {
        Self(ServeDir::new(crate::program(), SOLO_FLEET))
    }

    /// From now on, that is what the server finds.
    pub(crate) fn certificate(&self, leaf: &Leaf) {
        self.write("certificate.pem", &leaf.certificate);
        self.write("key.pem", &leaf.key);
        self.set_mode("key.pem", 0o600);
    }

    /// Settings that name that certificate.
    pub(crate) fn tls(&self, listen: &str) -> String {
        let (certificate, key) = (self.path("certificate.pem"), self.path("key.pem"));
        format!("listen = '{listen}'\ntls = {{ certificate = {certificate:?}, key = {key:?} }}")
    }

    /// Writes settings; gives their file.
    pub(crate) fn config(&self, api: &str, more: &str) -> String {
        let text = format!(
            "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n[api]\n{api}\n[driver]\nkind = 'simulated'\n{more}\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n"
        );
        self.configure("config.toml", &text)
    }

    pub(crate) fn start(&self, api: &str) -> TestServer {
        self.start_with(api, "")
    }

    /// Starts with those settings of the API, and more.
    pub(crate) fn start_with(&self, api: &str, more: &str) -> TestServer {
        let mut command = self.command();
        command.args(["serve", "--config", &self.config(api, more)]);
        self.spawn(command)
    }

    pub(crate) fn forewarn(&self, words: &[&str]) -> CommandResult {
        run_with_input(self.command().args(words), "")
    }
}
