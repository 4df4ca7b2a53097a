//! A metadata endpoint for one agent that records the time of its responses.
//!
//! One VM, one event at a time, one api-version, no checks: the agent is measured, not the endpoint.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The VM of the agent.
pub(super) const NAME: &str = "bench_0";
/// The time limit for the next request of the agent.
const TIMEOUT: Duration = Duration::from_secs(20);
/// A long poll is answered after this time at the latest.
const WAIT_MAX: Duration = Duration::from_secs(30);
const BODY_BYTES_MAX: usize = 65_536;

/// The kind of the simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Responds at once.
    Plain,
    /// Lets clients wait for the next document.
    LongPoll,
}

/// A running endpoint. It ends with the process.
pub(super) struct Endpoint {
    at: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    style: Style,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    incarnation: u64,
    /// The announced event.
    event: Option<String>,
    polls: u64,
    /// The incarnation of the client that waits for the next one.
    awaited: Option<u64>,
    /// The incarnation of the newest document, and the time of its first response.
    sent: Option<(u64, Instant)>,
    /// The last posted body.
    posted: String,
}

impl Endpoint {
    pub(super) fn start(style: Style) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
        let state = Mutex::new(State { incarnation: 1, ..State::default() });
        let shared = Arc::new(Shared { style, state, changed: Condvar::new() });
        let (at, served) = (listener.local_addr()?, Arc::clone(&shared));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&served);
                // A connection that breaks off is the agent's to open again.
                std::thread::spawn(move || serve(&shared, &stream).ok());
            }
        });
        Ok(Self { at, shared })
    }

    pub(super) fn at(&self) -> SocketAddr {
        self.at
    }

    pub(super) fn polls(&self) -> u64 {
        self.shared.lock().polls
    }

    /// Announces an event to a waiting agent and returns the time of the response.
    pub(super) fn announce(&self, id: &str) -> Result<Instant> {
        self.shared
            .wait(TIMEOUT, |state| state.awaited == Some(state.incarnation))
            .context("the agent does not wait for a document")?;
        let incarnation = self.publish(Some(id));
        self.shared
            .wait(TIMEOUT, |state| state.sent.is_some_and(|(sent, _)| sent == incarnation))
            .context("the document was not sent")?;
        let (_, sent) = self.shared.lock().sent.context("the document was not sent")?;
        Ok(sent)
    }

    /// Waits until an event is approved, and ends it.
    pub(super) fn end(&self, id: &str) -> Result<()> {
        self.shared.wait(TIMEOUT, |state| state.posted.contains(id)).context("the event is not approved")?;
        self.publish(None);
        Ok(())
    }

    fn publish(&self, event: Option<&str>) -> u64 {
        let mut state = self.shared.lock();
        state.incarnation += 1;
        state.event = event.map(str::to_owned);
        self.shared.changed.notify_all();
        state.incarnation
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a condition holds. None if the time limit passes.
    fn wait(&self, time: Duration, mut holds: impl FnMut(&State) -> bool) -> Option<()> {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |state| !holds(state));
        let (_state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        (!outcome.timed_out()).then_some(())
    }
}

/// The relevant parts of a request.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    line: String,
    tag: Option<String>,
    body: String,
}

fn serve(shared: &Shared, stream: &TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(request) = read(&mut reader)? {
        answer(shared, stream, &request)?;
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> Result<Option<Request>> {
    let mut request = Request::default();
    if reader.read_line(&mut request.line)? == 0 {
        return Ok(None);
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse::<usize>()?.min(BODY_BYTES_MAX),
            "if-none-match" => request.tag = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.body = String::from_utf8(body)?;
    Ok(Some(request))
}

fn answer(shared: &Shared, mut stream: &TcpStream, request: &Request) -> Result<()> {
    if request.line.contains("/compute/name") {
        return Ok(stream.write_all(text(shared.style, 200, "", NAME).as_bytes())?);
    }
    if request.line.starts_with("POST ") {
        stream.write_all(text(shared.style, 200, "", "").as_bytes())?;
        shared.lock().posted.clone_from(&request.body);
        shared.changed.notify_all();
        return Ok(());
    }
    let had = awaited(&request.line).filter(|_| shared.style == Style::LongPoll);
    {
        let mut state = shared.lock();
        state.polls += 1;
        state.awaited = had;
    }
    shared.changed.notify_all();
    if let Some(had) = had {
        // Respond with the current document, also after the time limit.
        shared.wait(WAIT_MAX, |state| state.incarnation != had);
    }
    let (incarnation, event) = {
        let mut state = shared.lock();
        state.awaited = None;
        (state.incarnation, state.event.clone())
    };
    let tag = format!("\"{incarnation}\"");
    let answer = if request.tag.as_ref() == Some(&tag) {
        text(shared.style, 304, &tag, "")
    } else {
        text(shared.style, 200, &tag, &document(incarnation, event.as_deref()))
    };
    let now = Instant::now();
    stream.write_all(answer.as_bytes())?;
    let mut state = shared.lock();
    if state.sent.is_none_or(|(sent, _)| sent < incarnation) {
        state.sent = Some((incarnation, now));
    }
    drop(state);
    shared.changed.notify_all();
    Ok(())
}

/// The incarnation of a client that asks to wait for the next one.
fn awaited(line: &str) -> Option<u64> {
    let query = line.split(' ').nth(1)?.split_once('?')?.1;
    let value = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value("wait")?;
    value("incarnation")?.parse().ok()
}

fn document(incarnation: u64, event: Option<&str>) -> String {
    let event = event.map(|id| {
        format!(
            r#"{{"EventId":"{id}","EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["{NAME}"],"NotBefore":"Thu, 01 Jan 2026 00:15:00 GMT","Description":"","EventSource":"User","DurationInSeconds":-1}}"#
        )
    });
    format!(r#"{{"DocumentIncarnation":{incarnation},"Events":[{}]}}"#, event.unwrap_or_default())
}

fn text(style: Style, status: u16, tag: &str, body: &str) -> String {
    let server = match style {
        Style::Plain => "IMDS/150.870.65.1854",
        Style::LongPoll => "forewarn/0.0.0",
    };
    let tag = if tag.is_empty() { String::new() } else { format!("ETag: {tag}\r\n") };
    format!(
        "HTTP/1.1 {status} X\r\nServer: {server}\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/json; charset=utf-8\r\n\
         {tag}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_long_poll_names_its_incarnation() {
        let line = "GET /metadata/scheduledevents?api-version=2020-07-01&wait=30s&incarnation=7 HTTP/1.1\r\n";
        assert_eq!(awaited(line), Some(7));
        assert_eq!(awaited("GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\n"), None);
    }

    #[test]
    fn a_request_is_read_with_its_body() {
        let mut bytes = "POST /x HTTP/1.1\r\nIf-None-Match: \"1\"\r\ncontent-length: 2\r\n\r\n{}".as_bytes();
        let request = read(&mut bytes).unwrap().unwrap();
        assert_eq!((request.tag.as_deref(), request.body.as_str()), (Some("\"1\""), "{}"));
        assert_eq!(read(&mut bytes).unwrap(), None);
    }

    #[test]
    fn a_waiting_client_gets_the_next_document() {
        let endpoint = Endpoint::start(Style::LongPoll).unwrap();
        let mut stream = TcpStream::connect(endpoint.at()).unwrap();
        stream.write_all(b"GET /metadata/scheduledevents?wait=30s&incarnation=1 HTTP/1.1\r\n\r\n").unwrap();
        endpoint.announce("A").unwrap();
        let mut head = [0; 15];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 X\r");
        assert_eq!(endpoint.polls(), 1);
    }
}
