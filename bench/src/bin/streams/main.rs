//! Clients of the operator API: durable commands in several clusters, and a large fleet in another one.
//!
//! Prints one line of JSON. A request that fails ends the program, with its response.
//!
//! ```text
//! streams prepare --at ADDRESS --socket PATH --clusters N --clients C
//! streams commands --at ADDRESS --token TOKEN --clusters N --clients C --milliseconds T
//! streams fleet --at ADDRESS --token TOKEN --machines M
//! streams beside --at ADDRESS --token TOKEN --clusters N --clients C --first F --machines M
//! ```
//!
//! `prepare` creates a token, the clusters `load-0` … and a machine for each client, and prints the token. `commands`
//! sends commands there. `fleet` creates the cluster `fleet` with M machines. `beside` adds M machines to it, of which
//! the first has the number F, and sends commands to the other clusters meanwhile.

mod arguments;

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arguments::{Arguments, Role};
use forewarn_bench::http::Connection;
use forewarn_bench::load::{Load, LoadTarget, Measured, PATIENCE};
use forewarn_bench::{LoadResult, blocks, program};

/// The cluster with the large fleet.
const FLEET: &str = "fleet";

fn main() -> ExitCode {
    program::run(Arguments::parse(std::env::args().skip(1)), |arguments| play(&arguments))
}

/// Plays a role.
fn play(arguments: &Arguments) -> LoadResult<String> {
    match arguments.role {
        Role::Prepare => prepare(arguments),
        Role::Commands => send_commands(arguments),
        Role::Fleet => build_fleet(arguments),
        Role::Beside => send_beside_an_apply(arguments),
    }
}

/// Creates a token over the socket, and the clusters with their machines.
fn prepare(arguments: &Arguments) -> LoadResult<String> {
    let mut local = Connection::new(UnixStream::connect(&arguments.socket)?, "");
    let created = local.post("/v1/tokens", r#"{"name":"bench","role":"admin"}"#)?;
    let text = created.split_once("\"text\":\"").and_then(|(_, rest)| rest.split_once('"'));
    let (token, _) = text.ok_or_else(|| format!("no token: {created}"))?;
    let mut connection = connect(arguments, token)?;
    for cluster in 0..arguments.clusters {
        let machines = (0..arguments.clients).filter(|client| client % arguments.clusters == cluster);
        create_cluster(&mut connection, &load_cluster(cluster))?;
        let target = format!("/v1/fleet?cluster={}", load_cluster(cluster));
        connection.post(&target, &blocks::machines_of_clients(machines))?;
    }
    Ok(format!("{{\"token\":\"{token}\"}}"))
}

/// Sends commands for a time.
fn send_commands(arguments: &Arguments) -> LoadResult<String> {
    let time = Duration::from_millis(arguments.milliseconds.into());
    let load = connect_load(arguments)?;
    let (begin, busy) = (Instant::now(), busy_nanoseconds()?);
    let measured = load.run(|| begin.elapsed() >= time)?;
    let busy = busy_nanoseconds()?.saturating_sub(busy);
    Ok(format!("{{{},\"busy_nanoseconds\":{busy}}}", members(&measured)))
}

/// Creates the large fleet, in pieces.
fn build_fleet(arguments: &Arguments) -> LoadResult<String> {
    let begin = Instant::now();
    let mut connection = connect(arguments, &arguments.token)?;
    create_cluster(&mut connection, FLEET)?;
    blocks::apply(&mut connection, FLEET, 0..arguments.machines / blocks::MACHINES_PER_BLOCK)?;
    Ok(format!("{{\"nanoseconds\":{}}}", begin.elapsed().as_nanos()))
}

/// Sends commands from the first byte of the apply until its response is there.
fn send_beside_an_apply(arguments: &Arguments) -> LoadResult<String> {
    let first = arguments.first / blocks::MACHINES_PER_BLOCK;
    let body = blocks::fleet_of(first..first + arguments.machines / blocks::MACHINES_PER_BLOCK);
    let mut connection = connect(arguments, &arguments.token)?;
    let load = connect_load(arguments)?;
    let is_applied = AtomicBool::new(false);
    let apply = || {
        let begin = Instant::now();
        let result = connection.post(&format!("/v1/fleet?cluster={FLEET}"), &body);
        is_applied.store(true, Ordering::Release);
        result.map(|_| begin.elapsed())
    };
    std::thread::scope(|scope| {
        let apply = scope.spawn(apply);
        let measured = load.run(|| is_applied.load(Ordering::Acquire));
        let time = apply.join().map_err(|_| "the apply panicked")??;
        Ok(format!("{{{},\"apply_nanoseconds\":{}}}", members(&measured?), time.as_nanos()))
    })
}

/// The name of a cluster with clients.
fn load_cluster(number: u32) -> String {
    format!("load-{number}")
}

/// The clients, spread evenly over the clusters.
fn connect_load(arguments: &Arguments) -> LoadResult<Load> {
    let target = |client: u32| LoadTarget {
        cluster: load_cluster(client % arguments.clusters),
        machine: blocks::machine(client),
    };
    Load::connect(arguments.at, &arguments.token, (0..arguments.clients).map(target))
}

fn create_cluster(connection: &mut Connection<TcpStream>, name: &str) -> LoadResult<()> {
    connection.post("/v1/clusters", &format!("{{\"name\":\"{name}\"}}"))?;
    Ok(())
}

fn connect(arguments: &Arguments, token: &str) -> LoadResult<Connection<TcpStream>> {
    let stream = TcpStream::connect(arguments.at)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(Connection::new(stream, token))
}

/// The time that this thread has been on a processor.
fn busy_nanoseconds() -> LoadResult<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    first.parse().map_err(|_| format!("not a time on the processor: {first:?}").into())
}

/// Members of the line that `cargo xtask bench streams` reads.
fn members(measured: &Measured) -> String {
    let Measured { answers, time, latency } = measured;
    let [p50, p99, max] = [50, 99, 100].map(|percent| latency.percentile(percent));
    format!(
        "\"answers\":{answers},\"nanoseconds\":{},\"p50_nanoseconds\":{p50},\"p99_nanoseconds\":{p99},\
         \"max_nanoseconds\":{max}",
        time.as_nanos()
    )
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{SocketAddr, TcpListener};

    use super::*;

    const DONE: &str = r#"{"changes":1}"#;

    /// Answers the requests of a connection.
    fn answer(stream: &TcpStream, status: &str, body: &str) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                if let Some(text) = line.strip_prefix("Content-Length: ") {
                    length = text.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length])?;
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
            (&mut &*stream).write_all((head + body).as_bytes())?;
        }
    }

    fn server(status: &'static str, body: &'static str) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || answer(&stream, status, body));
            }
        });
        at
    }

    fn arguments(role: &str, at: SocketAddr) -> Arguments {
        let line = format!(
            "{role} --at {at} --token t --clusters 2 --clients 3 --milliseconds 50 --machines 1000 --first 2000"
        );
        Arguments::parse(line.split(' ').map(str::to_owned)).unwrap()
    }

    #[test]
    fn commands_are_counted() {
        let at = server("200 OK", DONE);
        let line = send_commands(&arguments("commands", at)).unwrap();
        assert!(line.starts_with("{\"answers\":") && !line.starts_with("{\"answers\":0,"), "{line}");
        let line = send_beside_an_apply(&arguments("beside", at)).unwrap();
        assert!(line.contains("\"apply_nanoseconds\":"), "{line}");
    }

    #[test]
    fn a_failed_request_ends_it_with_its_response() {
        let full = server("503 Service Unavailable", "the disk is full");
        for problem in
            [send_commands(&arguments("commands", full)), send_beside_an_apply(&arguments("beside", full))]
        {
            assert!(problem.unwrap_err().to_string().contains("the disk is full"));
        }
        let idle = server("200 OK", r#"{"changes":0}"#);
        let problem = send_commands(&arguments("commands", idle)).unwrap_err().to_string();
        assert!(problem.contains("changed nothing"), "{problem}");
    }
}
