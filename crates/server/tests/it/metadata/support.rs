//! A small fleet, and a client that sends raw bytes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use forewarn_control::NamedCommand;
use forewarn_lifecycle::*;
use forewarn_metadata::{Caller, ControlPlane, Endpoint, Identity, ListenAddress, SERVER, Settings};
use forewarn_server::{Clock, ControlHandle, Speed, Telemetry};
use forewarn_types::ClusterId;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// 2026-01-01.
const START_MILLIS: i64 = 1_767_225_600_000;

pub(crate) const NEWEST: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// A server with an availability set `web` (web_0, web_1, web_10), a machine `solo` with a termination notice, and `spot`.
/// No tenant is enrolled.
///
/// Machine number n calls from 127.0.0.(n + 2).
pub(crate) struct TestServer {
    pub(crate) control: ControlHandle,
    pub(crate) at: SocketAddr,
    pub(crate) telemetry: Arc<Telemetry>,
}

pub(crate) const WEB_0: MachineId = MachineId(0);
pub(crate) const WEB_1: MachineId = MachineId(1);
pub(crate) const SOLO: MachineId = MachineId(3);
pub(crate) const SPOT: MachineId = MachineId(4);

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn address(MachineId(machine): MachineId) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, u8::try_from(machine + 2).unwrap())
}

/// Identification by address, among the machines of the default cluster.
pub(crate) fn by_address() -> Identity {
    Identity::Address { cluster: name(ClusterId::DEFAULT_NAME) }
}

pub(crate) async fn start_server() -> TestServer {
    start_server_with(Settings::default(), by_address()).await
}

pub(crate) async fn start_server_with(settings: Settings, identity: Identity) -> TestServer {
    let control = control().await;
    let listener = ListenAddress::Tcp((Ipv4Addr::LOCALHOST, 0).into()).open(identity, 1).unwrap().remove(0);
    let at = listener.address().unwrap();
    let telemetry = Telemetry::new();
    let endpoint = Endpoint::new(control.clone(), settings, Arc::clone(telemetry.metadata()));
    tokio::spawn(endpoint.serve(listener, std::future::pending()));
    TestServer { control, at, telemetry }
}

pub(crate) async fn control() -> ControlHandle {
    let clock = Clock::virtual_at(Timestamp::from_millis(START_MILLIS), Speed(0));
    let control = ControlHandle::simulated(Seed([9; 16]), clock);
    admit_fleet(&control).await;
    control
}

async fn admit_fleet(control: &ControlHandle) {
    let submit = async |command| drop(control.submit(command).await.unwrap());
    for host in ["h1", "h2", "h3"] {
        submit(Command::AdmitHost { name: name(host), zone: None, capacity: Size::NONE }).await;
    }
    let policy = Policy::default();
    submit(Command::AdmitTenant { name: name("web"), set: SetShape::AvailabilitySet, policy }).await;
    let place = |host: u32, domain| Placement {
        host: HostId(host),
        update_domain: UpdateDomain(domain),
        fault_domain: FaultDomain(domain),
        size: Size::NONE,
    };
    let (priority, profile) = (Priority::Regular, Profile::default());
    for (host, domain, machine) in [(0, 0, "web_0"), (1, 1, "web_1"), (0, 0, "web_10")] {
        let (tenant, placement) = (TenantId(0), place(host, domain));
        submit(Command::AdmitMachine { tenant, name: name(machine), placement, priority, profile }).await;
    }
    let notified = Profile { terminate: Some(TerminateNotice::MIN), ..profile };
    let placement = place(2, 0);
    submit(Command::AdmitStandalone { name: name("solo"), placement, priority, profile: notified, policy })
        .await;
    let priority = Priority::Spot(EvictionPolicy::Delete);
    submit(Command::AdmitStandalone { name: name("spot"), placement, priority, profile, policy }).await;
    for (number, machine) in (0..).zip(["web_0", "web_1", "web_10", "solo", "spot"]) {
        let addresses = vec![address(MachineId(number)).into()];
        let machine = machine.to_owned();
        let describe = NamedCommand::Describe { machine, addresses: Some(addresses), tags: None };
        control.run_commands(vec![describe]).await.unwrap();
    }
}

impl TestServer {
    pub(crate) async fn submit(&self, command: Command) {
        self.control.submit(command).await.unwrap();
    }

    /// Enrols every tenant.
    pub(crate) async fn enrol_all(&self) {
        for tenant in 0..3 {
            self.submit(Command::Enrol(TenantId(tenant))).await;
        }
    }

    pub(crate) async fn connect(&self, machine: MachineId) -> Connection {
        self.connect_from(address(machine)).await
    }

    pub(crate) async fn connect_from(&self, from: Ipv4Addr) -> Connection {
        self.try_connect_from(from).await.unwrap()
    }

    async fn try_connect_from(&self, from: Ipv4Addr) -> std::io::Result<Connection> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((IpAddr::from(from), 0).into())?;
        socket.connect(self.at).await.map(Connection)
    }

    /// Returns true if a connection from an address is closed at once.
    pub(crate) async fn refuses(&self, from: Ipv4Addr) -> bool {
        match self.try_connect_from(from).await {
            Ok(mut connection) => connection.rest().await.is_empty(),
            Err(_) => true,
        }
    }

    /// Sends bytes over a new connection. Returns the only response.
    pub(crate) async fn send_once(&self, machine: MachineId, bytes: &str) -> Response {
        let mut connection = self.connect(machine).await;
        connection.send(bytes).await;
        connection.answer().await
    }

    pub(crate) async fn get(&self, machine: MachineId, target: &str) -> Response {
        self.send_once(machine, &get(target)).await
    }

    pub(crate) async fn post(&self, machine: MachineId, body: &str) -> Response {
        self.send_once(machine, &post(body)).await
    }

    /// Value of a counter, labels included.
    pub(crate) fn count(&self, name: &str) -> u64 {
        let text = self.telemetry.encode();
        let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
        let (_, count) =
            lines.find(|(found, _)| *found == name).unwrap_or_else(|| panic!("{name} in {text}"));
        count.parse().unwrap()
    }

    pub(crate) fn caller(&self, name: &str) -> Arc<Caller> {
        self.control.caller_named(name).unwrap()
    }

    /// Ids of the events that a machine sees.
    pub(crate) fn ids(&self, name: &str) -> Vec<String> {
        let slot = &self.caller(name).slot;
        slot.read().document.events.iter().map(|event| event.id().to_string()).collect()
    }
}

pub(crate) fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\n\r\n")
}

pub(crate) fn post(body: &str) -> String {
    format!(
        "POST {NEWEST} HTTP/1.1\r\nHost: 169.254.169.254\r\nMetadata: true\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

pub(crate) fn approve(ids: &[String]) -> String {
    let ids: Vec<_> = ids.iter().map(|id| format!(r#"{{"EventId":"{id}"}}"#)).collect();
    format!(r#"{{"StartRequests":[{}]}}"#, ids.join(","))
}

pub(crate) struct Connection<S = TcpStream>(pub(crate) S);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    /// Status line and header fields.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(crate) async fn send(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.unwrap();
    }

    /// Reads exactly one response.
    pub(crate) async fn answer(&mut self) -> Response {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.expect("an answer"));
        }
        let head = String::from_utf8(head).unwrap();
        let mut body = vec![0; length(&head)];
        self.0.read_exact(&mut body).await.expect("a whole body");
        Response { head, body: String::from_utf8(body).unwrap() }
    }

    /// Everything until the connection is closed.
    pub(crate) async fn rest(&mut self) -> String {
        let mut rest = String::new();
        // A closed connection may also be reset.
        self.0.read_to_string(&mut rest).await.ok();
        rest
    }
}

fn length(head: &str) -> usize {
    let mut lengths = head.lines().filter_map(|line| line.strip_prefix("Content-Length: "));
    lengths.next().map_or(0, |length| length.parse().unwrap())
}

impl Response {
    pub(crate) fn status(&self) -> u16 {
        self.head.split(' ').nth(1).unwrap().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// Status and body.
    pub(crate) fn short(&self) -> (u16, &str) {
        (self.status(), &self.body)
    }

    /// The head, with `S` for the value of `Server`.
    pub(crate) fn plain_head(&self) -> String {
        self.head.replace(SERVER, "S")
    }
}

/// A server with a scheduled restart of web_0, and the id of the event.
pub(crate) async fn restarting() -> (TestServer, String) {
    let server = start_server().await;
    server.enrol_all().await;
    server.submit(Command::Restart(WEB_0)).await;
    let id = server.ids("web/web_0").remove(0);
    (server, id)
}
