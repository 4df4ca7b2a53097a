//! Servers that keep their things in a directory of the test's, and a client that speaks TLS.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::Value;
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::server::program;
use crate::harness::{PATIENCE, Server};

const FLEET: &str = "host = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]\n";

/// Somewhere to keep things. What is there outlives the servers on it.
pub(crate) struct Place(TempDir);

/// A client of Azure, as far as these tests need one.
pub(crate) struct Client {
    at: SocketAddr,
    config: Arc<ClientConfig>,
    pub(crate) bearer: Option<String>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        fs::write(place.path("fleet.toml"), FLEET).unwrap();
        place
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// This program, with a directory of its user here.
    pub(crate) fn forewarn(&self) -> Command {
        let mut command = Command::new(program());
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        for name in ["FOREWARN_API", "FOREWARN_TOKEN", "FOREWARN_CA"].into_iter().chain(proxies) {
            command.env_remove(name);
        }
        command.env("XDG_STATE_HOME", self.path("state")).stdin(Stdio::null());
        command
    }

    /// `forewarn dev` with a listener for clients of Azure.
    pub(crate) fn dev(&self, more: &[&str]) -> Server {
        let mut command = self.forewarn();
        self.say_dev(&mut command, more);
        Server::spawn(command)
    }

    pub(crate) fn say_dev(&self, command: &mut Command, more: &[&str]) {
        command.args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
        command.args(["--arm-listen", "127.0.0.1:0", "--clock", "frozen"]).args(more);
    }

    /// `forewarn serve` with a socket, an address, and a listener for clients of Azure.
    pub(crate) fn serve(&self, arm: &str) -> Server {
        let text = format!(
            "data_dir = {:?}\nfleet = {:?}\n[api]\nlisten = '127.0.0.1:0'\nsocket = {:?}\n[hands]\nkind = 'pretend'\n\
             [[metadata.listen]]\naddress = '127.0.0.1:0'\nmachine = 'solo'\n{arm}\n",
            self.path("data"),
            self.path("fleet.toml"),
            self.path("api.sock"),
        );
        fs::write(self.path("serve.toml"), text).unwrap();
        let mut command = self.forewarn();
        command.args(["serve", "--config", &self.path("serve.toml")]);
        Server::spawn(command)
    }

    /// What a command prints that is given through the socket of `serve`.
    pub(crate) fn out(&self, words: &[&str]) -> String {
        let api = format!("unix:{}", self.path("api.sock"));
        printed(self.forewarn().args(["--api", &api]).args(words))
    }

    /// The text of a new token.
    pub(crate) fn token(&self, name: &str, role: &str) -> String {
        self.out(&["token", "create", name, "--role", role]).trim().to_owned()
    }
}

/// What a command prints, which has to succeed.
pub(crate) fn printed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

impl Client {
    /// Of the server there, with an authority to believe.
    pub(crate) fn new(at: SocketAddr, authority: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
        Self { at, config, bearer: None }
    }

    pub(crate) fn with(self, bearer: &str) -> Self {
        Self { bearer: Some(bearer.to_owned()), ..self }
    }

    /// Status and body of an answer. The name is the one that the certificate has to have.
    pub(crate) fn ask_as(&self, name: &str, line: &str, fields: &str, body: &str) -> (u16, String) {
        let name_of = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.config), name_of).unwrap();
        let socket = TcpStream::connect(self.at).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = StreamOwned::new(connection, socket);
        let bearer = self.bearer.as_ref().map(|text| format!("Authorization: Bearer {text}\r\n"));
        let request = format!(
            "{line} HTTP/1.1\r\nHost: {name}:{}\r\nConnection: close\r\n{}{fields}Content-Length: {}\r\n\r\n{body}",
            self.at.port(),
            bearer.unwrap_or_default(),
            body.len(),
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The other side may close without a word of TLS.
        drop(stream.read_to_end(&mut answer));
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        self.json(&format!("GET {path}"), "", "")
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.json(&format!("PUT {path}"), "Content-Type: application/json\r\n", &body.to_string())
    }

    pub(crate) fn post_form(&self, path: &str, form: &str) -> (u16, Value) {
        self.json(&format!("POST {path}"), "Content-Type: application/x-www-form-urlencoded\r\n", form)
    }

    fn json(&self, line: &str, fields: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.ask_as("localhost", line, fields, body);
        (status, serde_json::from_str(&body).unwrap_or_default())
    }
}

/// What operators get over http, from a server of `dev`.
pub(crate) fn over_http(server: &Server, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost:{}\r\n\r\n", server.api().port());
    let answer = crate::harness::ask(server.api(), &request).unwrap();
    (answer.status(), answer.body)
}
