//! Servers with a listener for clients of Azure, and a client that speaks TLS.

use std::process::Command;

use forewarn_testkit::server::dev;
use forewarn_testkit::{SOLO_FLEET, ServeDir, TestServer, serve_dir};

serve_dir!(Place);

impl Place {
    pub(crate) fn new() -> Self {
        Self(ServeDir::new(crate::program(), SOLO_FLEET))
    }

    /// `forewarn dev` with a listener for clients of Azure.
    pub(crate) fn dev(&self, more: &[&str]) -> TestServer {
        let mut command = self.command();
        self.say_dev(&mut command, more);
        self.spawn(command)
    }

    pub(crate) fn say_dev(&self, command: &mut Command, more: &[&str]) {
        dev(command, &["--arm-listen", "127.0.0.1:0", "--clock", "frozen"]);
        command.args(more);
    }

    /// `forewarn serve` with a socket, an address, and a listener for clients of Azure.
    pub(crate) fn serve(&self, arm: &str) -> TestServer {
        self.start(&format!(
            "data_dir = 'DIR/data'\nfleet = 'DIR/fleet.toml'\n[api]\nlisten = '127.0.0.1:0'\nsocket = 'DIR/api.sock'\n\
             [driver]\nkind = 'simulated'\n[[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n{arm}\n"
        ))
    }
}

/// What operators get over http, from a server of `dev`.
pub(crate) fn over_http(server: &TestServer, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.api().port());
    let answer = forewarn_testkit::ask(server.api(), &request).unwrap();
    (answer.status(), answer.body)
}
