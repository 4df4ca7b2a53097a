//! A server with every kind of listener.

use forewarn_testkit::{ServeDir, TestServer, serve_dir};

const FLEET: &str = "host = [{ name = 'h1' }]\n\
                     vm = [{ name = 'solo', host = 'h1', addresses = ['127.0.0.1', '::1'] }]\n";

serve_dir!(Place);

impl Place {
    pub(crate) fn new() -> Self {
        Self(ServeDir::new(crate::program(), FLEET))
    }

    /// Writes settings: an address and a socket for operators, `more` tables, and no limits for machines.
    pub(crate) fn settings(&self, api: &str, more: &str) -> String {
        let text = format!(
            "in_memory = true\nfleet = 'DIR/fleet.toml'\n[metadata]\nlisten = [{{ address = '127.0.0.1:0' }}]\n\
             limits = {{ enabled = false }}\n[driver]\nkind = 'simulated'\n[api]\nsocket = 'DIR/api.sock'\n{api}\n{more}\n"
        );
        self.configure("config.toml", &text)
    }

    /// Starts a server whose operators come by an address and by the socket.
    pub(crate) fn start(&self, more: &str) -> TestServer {
        let mut command = self.command();
        command.args(["serve", "--config", &self.settings("listen = '127.0.0.1:0'", more)]);
        self.spawn(command)
    }

    pub(crate) fn token(&self) -> String {
        self.0.token("ops --role admin")
    }
}
