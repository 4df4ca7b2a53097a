//! The server for comparison: nginx, which sends the same bytes without any check.
//!
//! It has as many workers as Forewarn has threads, a listening socket for each of them, and closes a connection after
//! as many requests. It does not defer accepting (`listen … deferred`), which is its default.

use std::fmt::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::cores::CpuPlacement;
use super::response::{PATH, Response};
use super::server::{Server, Start};

const NAME: &str = "nginx";
const CONFIGURATION: &str = "nginx.conf";
/// Temporary directories, whose default paths are writable only for an installed nginx.
const TEMPORARY: [&str; 5] = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/// The variable parts of a configuration.
struct Configuration<'a> {
    at: SocketAddr,
    workers: u32,
    response: &'a Response,
    /// The user of the workers. None if not root, which alone may choose.
    user: Option<&'static str>,
}

pub(super) fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("-v").output().context("cannot run nginx")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let version = text.trim().strip_prefix("nginx version: ").context("nginx does not print its version")?;
    Ok(version.to_owned())
}

pub(super) fn start(program: &Path, response: &Response, place: CpuPlacement) -> Result<Server> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let at = free_address()?;
    let user = (std::fs::metadata("/proc/self")?.uid() == 0).then_some("root");
    let configuration = Configuration { at, workers: place.threads(), response, user }.text()?;
    std::fs::write(directory.path().join(CONFIGURATION), configuration).context("cannot configure nginx")?;
    let in_directory = |mut command: Command| {
        command.arg("-p").arg(directory.path()).args(["-c", CONFIGURATION, "-e", "stderr"]);
        command
    };
    let command = in_directory(place.command(program));
    let mut stop = in_directory(Command::new(program));
    stop.args(["-s", "stop"]);
    let start = Start { name: NAME, command, stop: Some(stop), directory };
    start.run(|_| TcpStream::connect(at).is_ok().then_some(at))
}

/// An address that was free a moment ago: nginx cannot choose a free port.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}

impl Configuration<'_> {
    fn text(&self) -> Result<String> {
        let Self { at, workers, response, user } = self;
        let mut text = String::new();
        if let Some(user) = user {
            let _ = writeln!(text, "user {user};");
        }
        let _ = writeln!(
            text,
            "worker_processes {workers};\ndaemon off;\npid nginx.pid;\nerror_log stderr warn;"
        );
        text.push_str(
            "events {\n  worker_connections 1024;\n}\nhttp {\n  access_log off;\n  server_tokens off;\n",
        );
        text.push_str("  keepalive_requests 1000;\n");
        for kind in TEMPORARY {
            let _ = writeln!(text, "  {kind}_temp_path {kind};");
        }
        let _ = writeln!(text, "  server {{\n    listen {at} reuseport;\n    location = {PATH} {{");
        for (name, value) in response.particular_fields() {
            let value = quoted(value)?;
            let _ = match name {
                "Content-Type" => writeln!(text, "      default_type {value};"),
                _ => writeln!(text, "      add_header {name} {value};"),
            };
        }
        let _ = writeln!(text, "      return 200 {};\n    }}\n  }}\n}}", quoted(response.body())?);
        Ok(text)
    }
}

/// A quoted text. nginx cannot quote a dollar sign.
fn quoted(text: &str) -> Result<String> {
    if text.contains('$') {
        bail!("nginx cannot send a dollar sign: {text}");
    }
    Ok(format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(user: Option<&'static str>) -> String {
        let response = Response::parse(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 8\r\n\
             Server: x\r\nETag: \"1\"\r\n\r\n{\"a\":1}\n",
        );
        let (at, response) = (SocketAddr::from(([127, 0, 0, 1], 4_001)), response.unwrap());
        Configuration { at, workers: 2, response: &response, user }.text().unwrap()
    }

    #[test]
    fn nginx_is_configured_with_the_same_response() {
        let text = text(None);
        assert!(text.starts_with("worker_processes 2;\n"), "{text}");
        let place = "    listen 127.0.0.1:4001 reuseport;\n    location = /metadata/scheduledevents {\n";
        let response = "      default_type 'application/json; charset=utf-8';\n      add_header ETag '\"1\"';\n      \
                      return 200 '{\"a\":1}\n';\n";
        assert!(text.contains(&format!("{place}{response}    }}\n")), "{text}");
    }

    #[test]
    fn workers_of_root_belong_to_root() {
        assert!(text(Some("root")).starts_with("user root;\nworker_processes"));
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted(r#"it's "a\b""#).unwrap(), r#"'it\'s "a\\b"'"#);
        assert!(quoted("$x").is_err());
    }
}
