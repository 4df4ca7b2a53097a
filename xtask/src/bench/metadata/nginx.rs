//! The other server: nginx, which answers the same bytes without asking anything.
//!
//! It has as many workers as ours has threads, a listening socket for each of them, and closes a connection after as many
//! requests. It does not defer accepting (`listen … deferred`), because it does not do so by default.

use std::fmt::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::answer::{Answer, PATH};
use super::cores::Place;
use super::server::{Server, Start};

const NAME: &str = "nginx";
const CONFIGURATION: &str = "nginx.conf";
/// What it would otherwise keep where only an installed nginx may write.
const TEMPORARY: [&str; 5] = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];

/// What a configuration depends on.
struct Configuration<'a> {
    at: SocketAddr,
    workers: u32,
    answer: &'a Answer,
    /// Whom the workers belong to. Nobody but root may choose.
    user: Option<&'static str>,
}

pub(super) fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("-v").output().context("cannot run nginx")?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let version = text.trim().strip_prefix("nginx version: ").context("nginx does not tell its version")?;
    Ok(version.to_owned())
}

pub(super) fn start(program: &Path, answer: &Answer, place: Place) -> Result<Server> {
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let at = free_address()?;
    let user = (std::fs::metadata("/proc/self")?.uid() == 0).then_some("root");
    let configuration = Configuration { at, workers: place.threads(), answer, user }.text()?;
    std::fs::write(directory.path().join(CONFIGURATION), configuration).context("cannot configure nginx")?;
    let tell_where = |mut command: Command| {
        command.arg("-p").arg(directory.path()).args(["-c", CONFIGURATION, "-e", "stderr"]);
        command
    };
    let command = tell_where(place.command(program));
    let mut stop = tell_where(Command::new(program));
    stop.args(["-s", "stop"]);
    let start = Start { name: NAME, command, stop: Some(stop), directory };
    start.run(|_| TcpStream::connect(at).is_ok().then_some(at))
}

/// Free a moment ago; nginx cannot be told to take whichever is free.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}

impl Configuration<'_> {
    fn text(&self) -> Result<String> {
        let Self { at, workers, answer, user } = self;
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
        for (name, value) in answer.particular_fields() {
            let value = quoted(value)?;
            let _ = match name {
                "Content-Type" => writeln!(text, "      default_type {value};"),
                _ => writeln!(text, "      add_header {name} {value};"),
            };
        }
        let _ = writeln!(text, "      return 200 {};\n    }}\n  }}\n}}", quoted(answer.body())?);
        Ok(text)
    }
}

/// A text as nginx reads it. It has no way to write a dollar sign.
fn quoted(text: &str) -> Result<String> {
    if text.contains('$') {
        bail!("nginx cannot answer a dollar sign: {text}");
    }
    Ok(format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(user: Option<&'static str>) -> String {
        let answer = Answer::parse(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 8\r\n\
             Server: x\r\nETag: \"1\"\r\n\r\n{\"a\":1}\n",
        );
        let (at, answer) = (SocketAddr::from(([127, 0, 0, 1], 4_001)), answer.unwrap());
        Configuration { at, workers: 2, answer: &answer, user }.text().unwrap()
    }

    #[test]
    fn nginx_is_told_the_same_answer() {
        let text = text(None);
        assert!(text.starts_with("worker_processes 2;\n"), "{text}");
        let place = "    listen 127.0.0.1:4001 reuseport;\n    location = /metadata/scheduledevents {\n";
        let answer = "      default_type 'application/json; charset=utf-8';\n      add_header ETag '\"1\"';\n      \
                      return 200 '{\"a\":1}\n';\n";
        assert!(text.contains(&format!("{place}{answer}    }}\n")), "{text}");
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
