//! Clients of a server with a large fleet: commands, polls, approvals, watchers, and the fleet itself.
//!
//! Prints one line of JSON (`hold` up to two). A request that fails ends the program, with its response.
//!
//! ```text
//! fleet prepare --at ADDRESS --socket PATH
//! fleet apply --at ADDRESS --token TOKEN --machines M
//! fleet commands --at ADDRESS --token TOKEN --names plain|qualified --count CLIENTS --milliseconds T
//! fleet beside --at ADDRESS --metadata ADDRESS --token TOKEN --work WORK --milliseconds T
//!              --new-tenants FIRST --tenants N [--first F --count ADDED]
//! fleet hold --at ADDRESS --token TOKEN --kind watch|idle --count N
//! fleet hold --at ADDRESS --metadata ADDRESS --token TOKEN --kind poll --machines M --count N
//! fleet arm --at ADDRESS --token TOKEN --process PID --count ROUNDS
//! fleet audit --at ADDRESS --token TOKEN --megabytes N
//! ```
//!
//! `prepare` creates a token, the cluster `fleet`, and the cluster `load` with a machine for each client of `audit`.
//! `apply` creates a fleet of M machines. `commands` describes machines of the fleet. `beside` sends requests of all
//! kinds while the server does some work. `hold` holds connections. `arm` creates and removes scale sets. `audit`
//! makes the audit log large.

mod arguments;
mod arm;
mod audit;
mod beside;
mod hold;
mod machine;
mod window;

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arguments::{Arguments, NameForm, Role};
use forewarn_bench::http::Connection;
use forewarn_bench::load::{Load, LoadTarget, PATIENCE};
use forewarn_bench::{LoadResult, blocks, program};

/// The cluster with the large fleet.
const FLEET: &str = "fleet";
/// The cluster whose audit log is large.
const LOAD: &str = "load";
const LOAD_MACHINES: u32 = 8;

fn main() -> ExitCode {
    program::run(Arguments::parse(std::env::args().skip(1)), |arguments| play(&arguments))
}

/// Plays a role.
fn play(arguments: &Arguments) -> LoadResult<String> {
    match arguments.role {
        Role::Prepare => prepare(arguments),
        Role::Apply => apply(arguments),
        Role::Commands => send_commands(arguments),
        Role::Beside => beside::measure(arguments),
        Role::Hold => hold::hold(arguments),
        Role::Arm => arm::put(arguments),
        Role::Audit => audit::fill(arguments),
    }
}

/// Creates a token over the socket, and the clusters.
fn prepare(arguments: &Arguments) -> LoadResult<String> {
    let mut local = Connection::new(UnixStream::connect(&arguments.socket)?, "");
    let created = local.post("/v1/tokens", r#"{"name":"bench","role":"admin"}"#)?;
    let text = created.split_once("\"text\":\"").and_then(|(_, rest)| rest.split_once('"'));
    let (token, _) = text.ok_or_else(|| format!("no token: {created}"))?;
    let mut connection = connect(arguments, token)?;
    for cluster in [FLEET, LOAD] {
        connection.post("/v1/clusters", &format!("{{\"name\":\"{cluster}\"}}"))?;
    }
    let machines = blocks::machines_of_clients(0..LOAD_MACHINES);
    connection.post(&format!("/v1/fleet?cluster={LOAD}"), &machines)?;
    Ok(format!("{{\"token\":\"{token}\"}}"))
}

/// Creates the fleet.
fn apply(arguments: &Arguments) -> LoadResult<String> {
    let (begin, mut connection) = (Instant::now(), connect(arguments, &arguments.token)?);
    blocks::apply(&mut connection, FLEET, 0..arguments.machines / blocks::MACHINES_PER_BLOCK)?;
    Ok(format!("{{\"nanoseconds\":{}}}", begin.elapsed().as_nanos()))
}

/// Sends commands for a time; each client has a machine of the first block.
fn send_commands(arguments: &Arguments) -> LoadResult<String> {
    let target = |client: u32| {
        let name = blocks::single_name(client % blocks::SINGLE);
        let machine = match arguments.names {
            NameForm::Plain => name,
            NameForm::Qualified => format!("{name}/{name}"),
        };
        LoadTarget { cluster: FLEET.to_owned(), machine }
    };
    let load = Load::connect(arguments.at, &arguments.token, (0..arguments.count).map(target))?;
    let (begin, time) = (Instant::now(), Duration::from_millis(arguments.milliseconds.into()));
    let measured = load.run(|| begin.elapsed() >= time)?;
    Ok(format!("{{\"answers\":{},\"nanoseconds\":{}}}", measured.answers, measured.time.as_nanos()))
}

/// A connection of the operator API.
fn connect(arguments: &Arguments, token: &str) -> LoadResult<Connection<TcpStream>> {
    let stream = TcpStream::connect(arguments.at)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(Connection::new(stream, token))
}
