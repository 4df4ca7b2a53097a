//! One member: a process, its addresses and its data.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::on_loopback;
use crate::{clean_command, wait_until};

/// Time in which a member answers about itself, unless it is stopped.
const ANSWER_TIME: Duration = Duration::from_secs(5);

pub(super) struct EtcdMember {
    program: PathBuf,
    directory: PathBuf,
    words: Vec<String>,
    client_url: String,
    client_port: u16,
    metrics_port: u16,
    /// None before the first start, and after it was killed.
    child: Option<Child>,
    is_stopped: bool,
}

impl EtcdMember {
    pub(super) fn new(program: &Path, name: &str, directory: PathBuf) -> Self {
        let data = directory.join("data").display().to_string();
        let words = ["--name", name, "--data-dir", &data, "--logger", "zap", "--log-outputs", "stderr"];
        Self {
            program: program.to_owned(),
            directory,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            client_url: String::new(),
            client_port: 0,
            metrics_port: 0,
            child: None,
            is_stopped: false,
        }
    }

    /// With a scheme for clients, and ports for clients, members and metrics.
    pub(super) fn listening(self, scheme: &str, client: u16, peer: u16, metrics: u16) -> Self {
        let client_url = format!("{scheme}://127.0.0.1:{client}");
        let (peer_url, metrics_url) =
            (format!("http://127.0.0.1:{peer}"), format!("http://127.0.0.1:{metrics}"));
        let words = [
            ("--listen-client-urls", &client_url),
            ("--advertise-client-urls", &client_url),
            ("--listen-peer-urls", &peer_url),
            ("--initial-advertise-peer-urls", &peer_url),
            ("--listen-metrics-urls", &metrics_url),
        ];
        let words: Vec<_> = words.iter().flat_map(|(option, url)| [*option, url.as_str()]).collect();
        let mut member = self.with(&words);
        (member.client_port, member.metrics_port) = (client, metrics);
        member.client_url = client_url;
        member
    }

    pub(super) fn with(mut self, words: &[impl AsRef<str>]) -> Self {
        self.words.extend(words.iter().map(|word| word.as_ref().to_owned()));
        self
    }

    pub(super) fn client_url(&self) -> &str {
        &self.client_url
    }

    pub(super) fn start(&mut self) {
        fs::create_dir_all(&self.directory).unwrap();
        let log = OpenOptions::new().create(true).append(true).open(self.log_file()).unwrap();
        let mut command = clean_command(&self.program);
        clear_settings(&mut command);
        command.args(&self.words).stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.child = Some(command.spawn().expect("etcd starts"));
        self.is_stopped = false;
    }

    /// Copies the data of a member that does not run.
    pub(super) fn copy_data(&self) {
        copy_directory(&self.directory.join("data"), &self.directory.join("copy"));
    }

    /// Replaces the data of a member that does not run by the copy.
    pub(super) fn restore_data(&self) {
        let data = self.directory.join("data");
        fs::remove_dir_all(&data).unwrap();
        copy_directory(&self.directory.join("copy"), &data);
    }

    fn log_file(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    pub(super) fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some())
    }

    pub(super) fn is_running(&self) -> bool {
        self.child.is_some() && !self.is_stopped
    }

    pub(super) fn has_leader(&self) -> bool {
        self.metrics().lines().any(|line| line == "etcd_server_has_leader 1")
    }

    pub(super) fn is_leader(&self) -> bool {
        self.metrics().lines().any(|line| line == "etcd_server_is_leader 1")
    }

    /// What a member says about itself; nothing before it listens.
    fn metrics(&self) -> String {
        ask(self.metrics_port, "GET /metrics", "", "").map(|(_, body)| body).unwrap_or_default()
    }

    /// The sum of metrics with this name and this label.
    pub(super) fn count(&self, name: &str, label: &str) -> u64 {
        let metrics = self.metrics();
        let lines = metrics.lines().filter(|line| line.starts_with(name) && line.contains(label));
        let value = |line: &str| line.rsplit_once(' ')?.1.parse::<u64>().ok();
        lines.filter_map(value).sum()
    }

    /// Posts JSON to the HTTP gateway.
    pub(super) fn post(&self, path: &str, token: Option<&str>, body: &Value) -> Value {
        self.try_post(path, token, body).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(super) fn try_post(&self, path: &str, token: Option<&str>, body: &Value) -> Result<Value, Value> {
        let token = token.map(|token| format!("Authorization: {token}\r\n")).unwrap_or_default();
        let answer = ask(self.client_port, &format!("POST {path}"), &token, &body.to_string());
        let (status, answer) = answer.expect("the member answers");
        let answer = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("no JSON: {answer}"));
        if status == 200 { Ok(answer) } else { Err(answer) }
    }

    pub(super) fn stop(&mut self) {
        self.signal(Signal::STOP);
        self.is_stopped = true;
        wait_until("every thread of the member is stopped", || self.has_stopped().then_some(()));
    }

    fn has_stopped(&self) -> bool {
        let process = self.child.as_ref().expect("it runs").id();
        let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
        // The state is the word after the name, which is in brackets.
        let is_stopped = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'));
        threads.flatten().all(|thread| fs::read_to_string(thread.path().join("stat")).is_ok_and(is_stopped))
    }

    pub(super) fn resume(&mut self) {
        self.signal(Signal::CONT);
        self.is_stopped = false;
    }

    fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("it runs");
        kill_process(Pid::from_child(child), signal).expect("it runs");
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().unwrap();
        }
        self.is_stopped = false;
    }
}

impl Drop for EtcdMember {
    fn drop(&mut self) {
        self.kill();
    }
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    // Members accept no data that others can read.
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_directory(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Takes options of etcd out of the environment.
fn clear_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD_") {
            command.env_remove(name);
        }
    }
}

/// The status and the body of an answer. HTTP/1.0, because it ends with the connection.
fn ask(port: u16, line: &str, fields: &str, body: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&on_loopback(port), ANSWER_TIME)?;
    stream.set_read_timeout(Some(ANSWER_TIME))?;
    let length = body.len();
    write!(stream, "{line} HTTP/1.0\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, body.to_owned()))
}
