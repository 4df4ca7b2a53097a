//! Clusters of etcd on loopback, started for one test and ended with it.
//!
//! A machine may not have etcd; then the test says so loudly, and fails where nobody would read that.

mod member;
mod ports;

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{TestDir, programs, wait_until};

use member::EtcdMember;
use ports::free_ports;

/// The variable with the program, if it is not on the path; and the one with the program of a newer version.
const PROGRAM: &str = "FOREWARN_ETCD";
const NEWER_PROGRAM: &str = "FOREWARN_ETCD_NEW";

/// Starts that are tried: a port that was free may be taken when a member starts.
const STARTS: usize = 5;

/// Does not wait for the disk: a killed process loses nothing by that. From 3.4.10 on.
const NO_SYNC: &str = "--unsafe-no-fsync";

/// The members of a cluster.
pub struct EtcdCluster {
    members: Vec<EtcdMember>,
    /// Outlives the members.
    directory: TestDir,
    tls: Option<ClusterCertificates>,
}

/// PEM files of a cluster with TLS.
#[derive(Clone, Debug)]
pub struct ClusterCertificates {
    pub authority: PathBuf,
    /// A certificate that members accept from clients.
    pub client_certificate: PathBuf,
    pub client_key: PathBuf,
    server_certificate: PathBuf,
    server_key: PathBuf,
}

impl EtcdCluster {
    /// Starts a cluster, and waits until every member knows a leader. None without etcd.
    pub fn start(members: usize) -> Option<Self> {
        Self::start_with(members, &[])
    }

    /// The same with more options of etcd.
    pub fn start_with(members: usize, options: &[&str]) -> Option<Self> {
        Some(Self::run(&program()?, members, options, None))
    }

    /// The same with a newer version of etcd.
    pub fn start_newer(members: usize, options: &[&str]) -> Option<Self> {
        Some(Self::run(&newer_program()?, members, options, None))
    }

    /// A cluster whose members have certificates, and demand them of clients.
    #[cfg(feature = "tls")]
    pub fn start_with_tls(members: usize) -> Option<Self> {
        let program = program()?;
        let certificates = TestDir::new();
        let tls = ClusterCertificates::issue(&certificates);
        Some(Self::run(&program, members, &[], Some((tls, certificates))))
    }

    fn run(
        program: &Path,
        members: usize,
        options: &[&str],
        tls: Option<(ClusterCertificates, TestDir)>,
    ) -> Self {
        let (tls, directory) = tls.map_or_else(|| (None, TestDir::new()), |(tls, dir)| (Some(tls), dir));
        let words = [NO_SYNC].iter().chain(options);
        let mut options: Vec<_> = words.map(|word| (*word).to_owned()).collect();
        options.extend(tls.iter().flat_map(ClusterCertificates::options));
        let mut cluster = Self { members: Vec::new(), directory, tls };
        for attempt in 0..STARTS {
            cluster.members = cluster.plan(program, members, &options, attempt);
            cluster.members.iter_mut().for_each(EtcdMember::start);
            if wait_until("every member of etcd knows a leader", || cluster.is_up()) {
                return cluster;
            }
        }
        panic!("etcd does not start:\n{}", cluster.logs());
    }

    /// Members with ports that nobody uses.
    fn plan(&self, program: &Path, members: usize, options: &[String], attempt: usize) -> Vec<EtcdMember> {
        let ports = free_ports(members * 3);
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let peer = |number: usize| format!("m{number}=http://127.0.0.1:{}", ports[number * 3 + 1]);
        let peers = (0..members).map(peer).collect::<Vec<_>>().join(",");
        let member = |number: usize| {
            let directory = self.directory.file(&format!("{attempt}-m{number}"));
            let [client, peer, metrics] = [0, 1, 2].map(|which| ports[number * 3 + which]);
            EtcdMember::new(program, &format!("m{number}"), directory)
                .listening(scheme, client, peer, metrics)
                .with(&["--initial-cluster", &peers, "--initial-cluster-token", "forewarn-test"])
                .with(options)
        };
        (0..members).map(member).collect()
    }

    /// None while members start, false if one has ended.
    fn is_up(&mut self) -> Option<bool> {
        if self.members.iter_mut().any(EtcdMember::has_ended) {
            return Some(false);
        }
        self.members.iter().all(EtcdMember::has_leader).then_some(true)
    }

    fn logs(&self) -> String {
        self.members.iter().map(EtcdMember::log).collect()
    }

    /// The URLs of members for clients.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.client_url().to_owned()).collect()
    }

    /// The files of a cluster with TLS.
    pub fn certificates(&self) -> &ClusterCertificates {
        self.tls.as_ref().expect("a cluster with TLS")
    }

    /// The number of the leader, once every running member says that it knows one.
    pub fn leader(&self) -> usize {
        wait_until("a member of etcd is the leader", || {
            self.members.iter().position(|member| member.is_running() && member.is_leader())
        })
    }

    /// Ends a member as a power cut would, as far as a process can tell.
    pub fn kill(&mut self, member: usize) {
        self.members[member].kill();
    }

    /// Stops a member without ending it: its connections stay open, and nobody answers.
    pub fn stop(&mut self, member: usize) {
        self.members[member].stop();
    }

    /// Lets a stopped member go on.
    pub fn resume(&mut self, member: usize) {
        self.members[member].resume();
    }

    /// Starts a member that was killed, with its data, and waits until it knows a leader.
    pub fn restart(&mut self, member: usize) {
        self.members[member].kill();
        self.members[member].start();
        wait_until("the member of etcd knows a leader", || self.members[member].has_leader().then_some(()));
    }

    /// Keeps a copy of the data of all members, for [`Self::restore`]. They do not run meanwhile.
    pub fn back_up(&mut self) {
        self.replace_data(EtcdMember::copy_data);
    }

    /// Starts all members with the data of [`Self::back_up`].
    pub fn restore(&mut self) {
        self.replace_data(EtcdMember::restore_data);
    }

    fn replace_data(&mut self, change: impl Fn(&EtcdMember)) {
        self.members.iter_mut().for_each(EtcdMember::kill);
        self.members.iter().for_each(change);
        self.members.iter_mut().for_each(EtcdMember::start);
        (0..self.members.len()).for_each(|member| self.wait_for_leader(member));
    }

    /// Waits until a member knows a leader.
    pub fn wait_for_leader(&self, member: usize) {
        wait_until("the member of etcd knows a leader", || self.members[member].has_leader().then_some(()));
    }

    /// Posts JSON to the HTTP gateway of a member without TLS, with a token or without; gives the answer.
    pub fn post(&self, member: usize, path: &str, token: Option<&str>, body: &Value) -> Value {
        self.members[member].post(path, token, body)
    }

    /// The same; gives the error of etcd, if it is one.
    ///
    /// # Errors
    /// The member has answered with an error.
    pub fn try_post(
        &self,
        member: usize,
        path: &str,
        token: Option<&str>,
        body: &Value,
    ) -> Result<Value, Value> {
        self.members[member].try_post(path, token, body)
    }

    /// The sum of a member's metrics with this name and this label.
    pub fn count(&self, member: usize, name: &str, label: &str) -> u64 {
        self.members[member].count(name, label)
    }

    /// Creates a user `root` with this password, and switches authentication on.
    pub fn enable_authentication(&self, password: &str) {
        let post = |path: &str, body: Value| self.post(0, path, None, &body);
        post("/v3/auth/user/add", serde_json::json!({ "name": "root", "password": password }));
        post("/v3/auth/role/add", serde_json::json!({ "name": "root" }));
        post("/v3/auth/user/grant", serde_json::json!({ "user": "root", "role": "root" }));
        post("/v3/auth/enable", serde_json::json!({}));
    }

    /// A token of `root`.
    pub fn token(&self, password: &str) -> String {
        let login = serde_json::json!({ "name": "root", "password": password });
        let answer = self.post(0, "/v3/auth/authenticate", None, &login);
        answer["token"].as_str().expect("a token").to_owned()
    }
}

impl ClusterCertificates {
    #[cfg(feature = "tls")]
    fn issue(directory: &TestDir) -> Self {
        let authority = crate::tls::Authority::new("authority of a test");
        let server = authority.leaf(&["localhost", "127.0.0.1"]);
        let client = authority.leaf(&["client"]);
        let write = |name: &str, text: &str| PathBuf::from(directory.write(name, text));
        Self {
            authority: write("ca.pem", &authority.pem()),
            client_certificate: write("client.pem", &client.certificate),
            client_key: write("client-key.pem", &client.key),
            server_certificate: write("server.pem", &server.certificate),
            server_key: write("server-key.pem", &server.key),
        }
    }

    fn options(&self) -> Vec<String> {
        let path = |file: &Path| file.display().to_string();
        let pairs = [
            ("--trusted-ca-file", &self.authority),
            ("--cert-file", &self.server_certificate),
            ("--key-file", &self.server_key),
        ];
        let words = pairs.iter().flat_map(|(option, file)| [(*option).to_owned(), path(file)]);
        words.chain(["--client-cert-auth".to_owned()]).collect()
    }
}

/// The program of etcd, or a loud word that this test has not looked at anything.
fn program() -> Option<PathBuf> {
    match env::var_os(PROGRAM) {
        Some(program) => Some(program.into()),
        None => programs::find_or_skip("etcd"),
    }
}

/// The program of a newer version of etcd.
fn newer_program() -> Option<PathBuf> {
    match env::var_os(NEWER_PROGRAM) {
        Some(program) => Some(program.into()),
        None => programs::skip(&format!("a newer etcd, named by {NEWER_PROGRAM}")),
    }
}

/// The address of a port on loopback.
fn on_loopback(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}
