//! Requests of others while the server does some work: commands, approvals, first polls of new tenants, and other
//! polls, all in the cluster that the work concerns.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use forewarn_bench::LoadResult;
use forewarn_bench::blocks::{self, MACHINES_PER_BLOCK};
use forewarn_bench::http::request;
use forewarn_bench::load::PATIENCE;

use crate::arguments::{Arguments, ServerWork};
use crate::window::{RequestTimes, Turn, Window};
use crate::{FLEET, connect, machine};

/// Single machines that are not new: one polls, one is described.
const POLLING: u32 = 0;
const DESCRIBED: u32 = 1;

/// Pauses of each client, so that the clients need little of the processor, and new tenants last.
const COMMAND_PAUSE: Duration = Duration::from_millis(5);
const APPROVAL_PAUSE: Duration = Duration::from_millis(15);
const FIRST_POLL_PAUSE: Duration = Duration::from_millis(15);
const POLL_PAUSE: Duration = Duration::from_millis(2);
/// Requests of a connection to the metadata endpoint: fewer than it allows.
const POLLS_PER_CONNECTION: u32 = 900;
const READ_BYTES: usize = 256 * 1_024;

/// The work, as it was.
struct Done {
    time: Duration,
    rounds: u32,
    bytes: u64,
}

/// Carries out the work while others send requests.
pub(crate) fn measure(arguments: &Arguments) -> LoadResult<String> {
    machine::poll(&mut machine::connect(POLLING, arguments.metadata)?)?;
    // Half of the new tenants have an event that they can approve.
    let new = arguments.new_tenants..arguments.new_tenants + arguments.tenants;
    let events = announce(arguments, new.clone().step_by(2))?;
    let window = Window::default();
    let (commands, approvals, first_polls, polls, work) = std::thread::scope(|scope| {
        let commands = scope.spawn(|| describe(arguments, &window));
        let approvals = scope.spawn(|| approve(arguments, &window, events));
        let first_polls = scope.spawn(|| poll_first(arguments, &window, new.skip(1).step_by(2)));
        let polls = scope.spawn(|| poll(arguments, &window));
        let work = carry_out(arguments, &window);
        window.end();
        let join = |handle: std::thread::ScopedJoinHandle<'_, LoadResult<RequestTimes>>| {
            handle.join().map_err(|_| "a client panicked")?
        };
        LoadResult::Ok((join(commands)?, join(approvals)?, join(first_polls)?, join(polls)?, work?))
    })?;
    Ok(format!(
        "{{\"nanoseconds\":{},\"rounds\":{},\"bytes\":{},\"command\":{},\"approval\":{},\
         \"first_poll\":{},\"poll\":{}}}",
        work.time.as_nanos(),
        work.rounds,
        work.bytes,
        commands.to_json(),
        approvals.to_json(),
        first_polls.to_json(),
        polls.to_json()
    ))
}

/// Announces an event to each of these machines, after its first poll.
fn announce(arguments: &Arguments, machines: impl Iterator<Item = u32>) -> LoadResult<Vec<(u32, String)>> {
    let mut connection = connect(arguments, &arguments.token)?;
    let mut announce = |number: u32| {
        machine::poll(&mut machine::connect(number, arguments.metadata)?)?;
        let name = blocks::single_name(number);
        let restart = format!("{{\"command\":\"restart\",\"machine\":\"{name}/{name}\"}}");
        let response = connection.post(&commands_target(), &restart)?;
        let event = first_event(&response).ok_or_else(|| format!("no event: {response}"))?;
        Ok((number, event.to_owned()))
    };
    machines.map(&mut announce).collect()
}

/// Describes a machine again and again, each time with another tag.
fn describe(arguments: &Arguments, window: &Window) -> LoadResult<RequestTimes> {
    let mut connection = connect(arguments, &arguments.token)?;
    let run = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
    let (name, mut count) = (blocks::single_name(DESCRIBED), 0_u64);
    window.sample(COMMAND_PAUSE, || {
        count += 1;
        let body = format!(
            "{{\"command\":\"describe\",\"machine\":\"{name}/{name}\",\"tags\":{{\"run\":\"{run}-{count}\"}}}}"
        );
        window.timed(|| connection.post(&commands_target(), &body).map(|_| ()))
    })
}

/// Approves events, one after the other, each as its machine.
fn approve(arguments: &Arguments, window: &Window, events: Vec<(u32, String)>) -> LoadResult<RequestTimes> {
    let mut events = events.into_iter();
    window.sample(APPROVAL_PAUSE, || {
        let Some((number, event)) = events.next() else { return Ok(Turn::Exhausted) };
        window.timed(|| machine::approve(&mut machine::connect(number, arguments.metadata)?, &event))
    })
}

/// The id of the first event of the response to a command.
fn first_event(response: &str) -> Option<&str> {
    let (_, events) = response.split_once("\"events\":[{\"id\":\"")?;
    events.split_once('"').map(|(id, _)| id)
}

/// Polls as machines whose tenants have not polled before.
fn poll_first(
    arguments: &Arguments,
    window: &Window,
    mut machines: impl Iterator<Item = u32>,
) -> LoadResult<RequestTimes> {
    window.sample(FIRST_POLL_PAUSE, || {
        let Some(number) = machines.next() else { return Ok(Turn::Exhausted) };
        window.timed(|| machine::poll(&mut machine::connect(number, arguments.metadata)?).map(|_| ()))
    })
}

/// Polls as a machine that has polled before.
fn poll(arguments: &Arguments, window: &Window) -> LoadResult<RequestTimes> {
    let mut connection = machine::connect(POLLING, arguments.metadata)?;
    let mut left = POLLS_PER_CONNECTION;
    window.sample(POLL_PAUSE, || {
        if left == 0 {
            (connection, left) = (machine::connect(POLLING, arguments.metadata)?, POLLS_PER_CONNECTION);
        }
        left -= 1;
        window.timed(|| machine::poll(&mut connection).map(|_| ()))
    })
}

/// Opens the window for the time of the work. Short work is repeated.
fn carry_out(arguments: &Arguments, window: &Window) -> LoadResult<Done> {
    let mut connection = connect(arguments, &arguments.token)?;
    let (begin, time) = (Instant::now(), Duration::from_millis(arguments.milliseconds.into()));
    let (mut rounds, mut bytes) = (0, 0);
    window.open();
    while rounds == 0 || begin.elapsed() < time {
        match arguments.work {
            ServerWork::Nothing => std::thread::sleep(time),
            ServerWork::Apply => {
                let first = arguments.first / MACHINES_PER_BLOCK;
                let added = arguments.count / MACHINES_PER_BLOCK;
                blocks::apply(&mut connection, FLEET, first..first + added)?;
                return Ok(Done { time: begin.elapsed(), rounds: 1, bytes });
            }
            ServerWork::Backup => bytes += download(arguments, "/v1/backup")?,
            ServerWork::Audit => bytes += download(arguments, "/v1/audit/export")?,
            ServerWork::Site => {
                let body = format!("{{\"location\":\"{}\"}}", ["east", "west"][rounds as usize % 2]);
                connection.send("PATCH", &format!("/v1/site?cluster={FLEET}"), &body)?;
            }
        }
        rounds += 1;
    }
    Ok(Done { time: begin.elapsed(), rounds, bytes })
}

/// Reads a long response to its end. Returns its length.
fn download(arguments: &Arguments, target: &str) -> LoadResult<u64> {
    let mut stream = TcpStream::connect(arguments.at)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&request("GET", target, &arguments.token, ""))?;
    let (mut buffer, mut bytes, mut end) = (vec![0; READ_BYTES], 0_u64, Vec::new());
    loop {
        let count = stream.read(&mut buffer)?;
        if bytes == 0 && !buffer[..count].starts_with(b"HTTP/1.1 200") {
            return Err(format!("not a success: {}", String::from_utf8_lossy(&buffer[..count])).into());
        }
        bytes += count as u64;
        end.extend_from_slice(&buffer[count.saturating_sub(LAST_CHUNK.len())..count]);
        end.drain(..end.len().saturating_sub(LAST_CHUNK.len()));
        if count == 0 || end == LAST_CHUNK {
            return Ok(bytes);
        }
    }
}

/// The end of a response in chunks.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

fn commands_target() -> String {
    format!("/v1/commands?cluster={FLEET}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_of_a_command_is_found() {
        assert_eq!(first_event(r#"{"changes":1,"events":[{"id":"a-b"},{"id":"c"}],"x":[]}"#), Some("a-b"));
        assert_eq!(first_event(r#"{"changes":1,"events":[]}"#), None);
    }
}
