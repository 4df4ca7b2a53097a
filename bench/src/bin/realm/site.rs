//! Three members of etcd and three servers on loopback.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forewarn_bench::LoadResult;
use forewarn_bench::http::Connection;

/// The number of members of etcd, and of servers.
pub(crate) const COUNT: usize = 3;

/// Longest wait for a process to be ready, and pause between two looks.
const READY_MAX: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ports below those that the kernel gives to outgoing connections.
const PORTS: std::ops::Range<u16> = 12_000..32_000;

/// A process that is killed when this is dropped.
pub(crate) struct Part {
    process: Mutex<(Command, Option<Child>)>,
    log: PathBuf,
}

/// The whole realm.
pub(crate) struct Site {
    pub(crate) members: Vec<Part>,
    pub(crate) servers: Vec<Part>,
    directory: PathBuf,
    client_ports: Vec<u16>,
    metadata_ports: Vec<u16>,
}

/// Programs and settings of a realm.
pub(crate) struct SitePlan<'a> {
    pub(crate) forewarn: &'a Path,
    pub(crate) etcd: &'a Path,
    /// Empty, and not removed.
    pub(crate) directory: &'a Path,
    /// Speed of the clock.
    pub(crate) speed: u32,
}

impl Part {
    fn new(command: Command, log: PathBuf) -> Self {
        Self { process: Mutex::new((command, None)), log }
    }

    fn process(&self) -> MutexGuard<'_, (Command, Option<Child>)> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the process, for the first time or again.
    pub(crate) fn start(&self) -> LoadResult<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let (command, child) = &mut *self.process();
        *child = Some(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?);
        Ok(())
    }

    fn is_running(&self) -> bool {
        self.process().1.is_some()
    }

    /// Ends the process as a power cut does.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.process().1.take() {
            // It may have ended already.
            child.kill().ok();
            child.wait().ok();
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.kill();
    }
}

impl SitePlan<'_> {
    /// Starts everything, and waits until each server has the fleet.
    pub(crate) fn start(&self) -> LoadResult<Site> {
        let ports = free_ports(COUNT * 4)?;
        let (client_ports, rest) = ports.split_at(COUNT);
        let (peer_ports, rest) = rest.split_at(COUNT);
        let (metadata_ports, listen_ports) = rest.split_at(COUNT);
        let mut site = Site {
            members: self.members(client_ports, peer_ports),
            servers: Vec::new(),
            directory: self.directory.to_owned(),
            client_ports: client_ports.to_vec(),
            metadata_ports: metadata_ports.to_vec(),
        };
        site.members.iter().try_for_each(Part::start)?;
        site.leader()?;
        fs::write(
            self.directory.join("fleet.toml"),
            "enrolment = 'always'\nhost = [{ name = 'h1' }]\nvm = [{ name = 'solo', host = 'h1' }]\n",
        )?;
        for number in 0..COUNT {
            let server = self.server(number, client_ports, (metadata_ports[number], listen_ports[number]))?;
            server.start()?;
            site.servers.push(server);
        }
        site.wait_for_all()?;
        Ok(site)
    }

    fn members(&self, client_ports: &[u16], peer_ports: &[u16]) -> Vec<Part> {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let peers = peer_ports.iter().enumerate().map(|(number, port)| format!("m{number}={}", url(*port)));
        let peers = peers.collect::<Vec<_>>().join(",");
        let member = |(number, (client, peer)): (usize, (&u16, &u16))| {
            let name = format!("m{number}");
            let mut command = Command::new(self.etcd);
            command.args(["--name", &name, "--data-dir"]).arg(self.directory.join(&name));
            for (option, value) in [
                ("--listen-client-urls", url(*client)),
                ("--advertise-client-urls", url(*client)),
                ("--listen-peer-urls", url(*peer)),
                ("--initial-advertise-peer-urls", url(*peer)),
                ("--initial-cluster", peers.clone()),
                ("--snapshot-count", "10000".to_owned()),
                ("--logger", "zap".to_owned()),
            ] {
                command.args([option, &value]);
            }
            Part::new(command, self.directory.join(format!("{name}.log")))
        };
        client_ports.iter().zip(peer_ports).enumerate().map(member).collect()
    }

    fn server(
        &self,
        number: usize,
        client_ports: &[u16],
        (metadata, listen): (u16, u16),
    ) -> LoadResult<Part> {
        let directory = self.directory.display();
        let endpoints: Vec<_> =
            client_ports.iter().map(|port| format!("'http://127.0.0.1:{port}'")).collect();
        let (endpoints, speed) = (endpoints.join(", "), self.speed);
        let settings = format!(
            "data_dir = '{directory}/s{number}'\nfleet = '{directory}/fleet.toml'\n\
             api.socket = '{directory}/s{number}.sock'\ndriver.kind = 'simulated'\n\
             [[metadata.listen]]\naddress = '127.0.0.1:{metadata}'\nmachine = 'solo'\n\
             [metadata.limits]\nenabled = false\n\
             [engine]\nendpoints = [{endpoints}]\nclock_speed = {speed}\n\
             [server]\nname = 's{number}'\nlisten = '127.0.0.1:{listen}'\n"
        );
        let file = self.directory.join(format!("s{number}.toml"));
        fs::write(&file, settings)?;
        let mut command = Command::new(self.forewarn);
        command.args(["serve", "--config"]).arg(file).env("NO_COLOR", "1");
        Ok(Part::new(command, self.directory.join(format!("s{number}.log"))))
    }
}

impl Site {
    /// A connection for operators to a server.
    pub(crate) fn connect(&self, server: usize) -> LoadResult<Connection<UnixStream>> {
        let stream = UnixStream::connect(self.directory.join(format!("s{server}.sock")))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Connection::new(stream, ""))
    }

    /// The status and the body of a poll of the machine `solo`, on a connection of its own.
    pub(crate) fn poll(&self, server: usize) -> LoadResult<(u16, String)> {
        let path = "/metadata/scheduledevents?api-version=2020-07-01";
        let text = get(self.metadata_ports[server], path, "Metadata: true\r\n")?;
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or("no status")?;
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        Ok((status, body))
    }

    /// Waits until all servers answer operators, and know the machine.
    pub(crate) fn wait_for_all(&self) -> LoadResult<()> {
        for server in 0..COUNT {
            wait(&format!("server {server} answers"), || {
                let has_machine = self.poll(server).is_ok_and(|(status, _)| status == 200);
                let listed = self.connect(server).and_then(|mut one| one.send("GET", "/v1/hosts", ""));
                (has_machine && listed.is_ok()).then_some(())
            })?;
        }
        Ok(())
    }

    /// The member that leads.
    pub(crate) fn leader(&self) -> LoadResult<usize> {
        wait("a member of etcd is the leader", || {
            let leads = |port: &u16| {
                get(*port, "/metrics", "")
                    .is_ok_and(|text| text.lines().any(|line| line == "etcd_server_is_leader 1"))
            };
            self.client_ports.iter().position(leads)
        })
    }

    /// The server that has become the owner of a cluster last, and the time that the takeover took.
    pub(crate) fn owner(&self, cluster: u32) -> LoadResult<(usize, Duration)> {
        wait("a server owns the cluster", || {
            let running = self.servers.iter().enumerate().filter(|(_, server)| server.is_running());
            let last = |(number, server): (usize, &Part)| {
                let (term, took) = last_ownership(&server.log(), cluster)?;
                Some((term, number, took))
            };
            running.filter_map(last).max_by_key(|(term, ..)| *term).map(|(_, number, took)| (number, took))
        })
    }
}

/// The term and the duration of the last takeover of a cluster in a log.
fn last_ownership(log: &str, cluster: u32) -> Option<(u64, Duration)> {
    let wanted = format!("cluster={cluster}");
    let lines = log.lines().filter(|line| line.contains("this server owns the cluster"));
    let mut owned = lines.filter_map(|line| {
        let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name));
        line.split_whitespace().any(|word| word == wanted).then_some(())?;
        Some((field("term=")?.parse().ok()?, duration(field("took=")?)?))
    });
    owned.next_back()
}

/// A duration as the log shows it: `1.5ms`, `2s`, `730µs`.
fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let factor = match unit {
        "ns" => 1e-9,
        "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * factor).ok()
}

/// Calls `look` until it gives something.
pub(crate) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> LoadResult<T> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if begin.elapsed() > READY_MAX {
            return Err(format!("waited in vain: {what}").into());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
}

/// A whole response, as text.
fn get(port: u16, path: &str, fields: &str) -> LoadResult<String> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}Connection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn free_ports(number: usize) -> LoadResult<Vec<u16>> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let first = u16::try_from(now.subsec_nanos() % u32::try_from(PORTS.len())?)? + PORTS.start;
    let candidates = (first..PORTS.end).chain(PORTS.start..first);
    let free = candidates.filter(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let ports: Vec<_> = free.take(number).collect();
    if ports.len() == number { Ok(ports) } else { Err("no free ports".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ownership_of_a_cluster_is_read() {
        let log = "INFO this server owns the cluster cluster=0 term=1 took=1.5ms\n\
                   INFO this server owns the cluster cluster=10 term=7 took=2s\n\
                   INFO this server owns the cluster cluster=0 term=3 took=730µs\n";
        assert_eq!(last_ownership(log, 0), Some((3, Duration::from_micros(730))));
        assert_eq!(last_ownership(log, 10), Some((7, Duration::from_secs(2))));
        assert_eq!(last_ownership(log, 1), None);
        assert_eq!((duration("5"), duration("5h"), duration("x")), (None, None, None));
    }
}
