//! The directory, the ports and the processes of a realm on this computer.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER;

use super::etcd_program::EtcdProgram;
use super::process::{ProcessRole, RealmProcess, end_all};

/// The number of members of etcd.
const MEMBERS: usize = 3;

/// The fleet of the default cluster: that of `forewarn dev`, and a machine to which something is written all the time.
const FLEET: &str = include_str!("../server/demo.toml");
const MORE_FLEET: &str = "\n[[vm]]\nname = \"probe\"\nhost = \"h10\"\n";

/// Ports below those that the kernel gives to outgoing connections.
const PORT_FIRST: u16 = 12_000;
const PORTS: u16 = 20_000;

/// Random bytes in the name of the directory.
const RANDOM_BYTES: usize = 6;

/// Longest path of a socket.
const SOCKET_BYTES_MAX: usize = 100;

/// A server of the realm.
#[derive(Clone, Debug)]
pub(super) struct ServerAddresses {
    pub(super) name: String,
    pub(super) socket: PathBuf,
    /// Address of the metadata endpoint, for the machine `solo`.
    pub(super) metadata: String,
}

/// Everything on this computer. The directory is removed when this is dropped.
pub(super) struct RealmSite {
    /// Before the directory: they are killed when this is dropped.
    pub(super) processes: Vec<RealmProcess>,
    pub(super) servers: Vec<ServerAddresses>,
    /// URLs of the members of etcd.
    pub(super) endpoints: Vec<String>,
    pub(super) directory: SiteDirectory,
}

/// A directory that is removed when this is dropped.
pub(super) struct SiteDirectory(PathBuf);

impl SiteDirectory {
    fn create() -> Result<Self> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).context("cannot get random bytes from the operating system")?;
        let path = std::env::temp_dir().join(format!("forewarn-realm-{}", HEXLOWER.encode(&bytes)));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("cannot create the directory: {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SiteDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, directory = %self.0.display(), "cannot remove the directory of the realm");
        }
    }
}

impl RealmSite {
    /// Plans all processes, and starts none.
    pub(super) fn plan(etcd: &EtcdProgram, servers: usize, speed: u32) -> Result<Self> {
        let directory = SiteDirectory::create()?;
        let ports = free_ports(MEMBERS * 2 + servers * 2)?;
        let (member_ports, server_ports) = ports.split_at(MEMBERS * 2);
        let mut processes = members(directory.path(), etcd, member_ports);
        let urls = member_ports.iter().step_by(2).map(|port| format!("http://127.0.0.1:{port}"));
        let endpoints: Vec<_> = urls.collect();
        let fleet = directory.path().join("fleet.toml");
        fs::write(&fleet, format!("enrolment = \"always\"\n{FLEET}{MORE_FLEET}"))?;
        let mut addresses = Vec::new();
        for (number, ports) in (1..).zip(server_ports.chunks_exact(2)) {
            let name = format!("s{number}");
            let plan =
                ServerPlan { name: &name, directory: directory.path(), endpoints: &endpoints, speed, ports };
            let (process, address) = plan.process()?;
            processes.push(process);
            addresses.push(address);
        }
        Ok(Self { processes, servers: addresses, endpoints, directory })
    }

    pub(super) fn of_role(&mut self, role: ProcessRole) -> impl Iterator<Item = &mut RealmProcess> {
        self.processes.iter_mut().filter(move |process| process.role == role)
    }

    pub(super) fn process(&self, name: &str) -> Option<&RealmProcess> {
        self.processes.iter().find(|process| process.name == name)
    }

    /// Ends everything: servers first, which give their clusters back.
    pub(super) async fn end(mut self) {
        end_all(self.of_role(ProcessRole::Server)).await;
        end_all(self.of_role(ProcessRole::Member)).await;
    }
}

fn members(directory: &Path, etcd: &EtcdProgram, ports: &[u16]) -> Vec<RealmProcess> {
    let names: Vec<_> = (1..=MEMBERS).map(|number| format!("etcd-{number}")).collect();
    let peer_url = |number: usize| format!("http://127.0.0.1:{}", ports[number * 2 + 1]);
    let peers = names.iter().enumerate().map(|(number, name)| format!("{name}={}", peer_url(number)));
    let peers = peers.collect::<Vec<_>>().join(",");
    let member = |(number, name): (usize, &String)| {
        let client_url = format!("http://127.0.0.1:{}", ports[number * 2]);
        let peer_url = peer_url(number);
        let data = directory.join(name);
        let words = [
            ("--name", name.clone()),
            ("--data-dir", data.display().to_string()),
            ("--logger", "zap".to_owned()),
            ("--log-outputs", "stderr".to_owned()),
            ("--listen-client-urls", client_url.clone()),
            ("--advertise-client-urls", client_url),
            ("--listen-peer-urls", peer_url.clone()),
            ("--initial-advertise-peer-urls", peer_url),
            ("--initial-cluster", peers.clone()),
            ("--initial-cluster-token", "forewarn-realm-dev".to_owned()),
        ];
        let words = words.into_iter().flat_map(|(option, value)| [OsString::from(option), value.into()]);
        let log = directory.join(format!("{name}.log"));
        RealmProcess::new(ProcessRole::Member, name, etcd.path.clone(), words.collect(), log)
    };
    names.iter().enumerate().map(member).collect()
}

/// A server before its start.
struct ServerPlan<'a> {
    name: &'a str,
    directory: &'a Path,
    endpoints: &'a [String],
    speed: u32,
    /// Ports of the metadata endpoint, and for other servers.
    ports: &'a [u16],
}

impl ServerPlan<'_> {
    fn process(&self) -> Result<(RealmProcess, ServerAddresses)> {
        let &Self { name, directory, ports, .. } = self;
        let [metadata, _] = ports else { bail!("a server needs two ports") };
        let socket = directory.join(format!("{name}.sock"));
        if socket.as_os_str().len() > SOCKET_BYTES_MAX {
            bail!(
                "the path of a socket is too long: {}\n  hint: set TMPDIR to a shorter one",
                socket.display()
            );
        }
        let (config, log) = (directory.join(format!("{name}.toml")), directory.join(format!("{name}.log")));
        fs::write(&config, self.settings()?)?;
        let words = ["serve".into(), "--config".into(), config.into_os_string()];
        let program = std::env::current_exe().context("cannot find the program of this process")?;
        let process = RealmProcess::new(ProcessRole::Server, name, program, words.into(), log);
        let metadata = format!("http://127.0.0.1:{metadata}");
        Ok((process, ServerAddresses { name: name.to_owned(), socket, metadata }))
    }

    fn settings(&self) -> Result<String> {
        let &Self { name, directory, endpoints, speed, ports } = self;
        let [metadata, listen] = ports else { bail!("a server needs two ports") };
        let directory = directory.to_str().context("the temporary directory has no name in UTF-8")?;
        let mut endpoint_list = String::new();
        for url in endpoints {
            write!(endpoint_list, "{url:?}, ")?;
        }
        Ok(format!(
            "data_dir = {:?}\nfleet = {:?}\napi.socket = {:?}\ndriver.kind = \"simulated\"\n\
             [[metadata.listen]]\naddress = \"127.0.0.1:{metadata}\"\nmachine = \"solo\"\n\
             [metadata.limits]\nenabled = false\n\
             [engine]\nendpoints = [{endpoint_list}]\nclock_speed = {speed}\n\
             [server]\nname = {name:?}\nlisten = \"127.0.0.1:{listen}\"\n",
            format!("{directory}/{name}"),
            format!("{directory}/fleet.toml"),
            format!("{directory}/{name}.sock"),
        ))
    }
}

/// So many different ports on which no process listens.
fn free_ports(number: usize) -> Result<Vec<u16>> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).context("cannot get random bytes from the operating system")?;
    let first = u16::from_le_bytes(bytes) % PORTS;
    let candidates = (first..PORTS).chain(0..first).map(|port| PORT_FIRST + port);
    let free = candidates.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let ports: Vec<_> = free.take(number).collect();
    if ports.len() < number {
        bail!("no free ports on 127.0.0.1 from {PORT_FIRST} on");
    }
    Ok(ports)
}
