//! Clients in a closed loop: each has one command under way, and sends the next when it has the response.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::LoadResult;
use crate::histogram::Histogram;
use crate::http::{Connection, Incoming, request};

/// The longest wait for a response.
pub const PATIENCE: Duration = Duration::from_secs(600);
const EVENTS_AT_ONCE: usize = 1_024;
const READ_BYTES: usize = 64 * 1_024;

/// Responses of a run, and their times.
pub struct Measured {
    pub answers: u64,
    pub time: Duration,
    pub latency: Histogram,
}

/// All clients.
pub struct Load {
    poll: Poll,
    clients: Vec<Client>,
    buffer: Vec<u8>,
    answers: u64,
    latency: Histogram,
}

/// A connection that has authenticated.
struct Client {
    stream: TcpStream,
    /// Two descriptions of its machine, which it sends in turn, so that each one is a change.
    requests: [Vec<u8>; 2],
    count: usize,
    sent: Instant,
    incoming: Incoming,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Done,
}

/// The machine that a client describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadTarget {
    pub cluster: String,
    /// Its name, with or without its tenant.
    pub machine: String,
}

impl Load {
    /// Connects a client for each target; each carries out a first command, which does not count.
    pub fn connect(
        at: SocketAddr,
        token: &str,
        targets: impl IntoIterator<Item = LoadTarget>,
    ) -> LoadResult<Self> {
        let run = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos();
        let (poll, mut clients) = (Poll::new()?, Vec::new());
        for target in targets {
            clients.push(Client::connect(at, token, &target, run)?);
        }
        for (place, client) in clients.iter_mut().enumerate() {
            poll.registry().register(&mut client.stream, Token(place), Interest::READABLE)?;
        }
        Ok(Self { poll, clients, buffer: vec![0; READ_BYTES], answers: 0, latency: Histogram::new() })
    }

    /// Sends commands until `is_over`, and waits for the last responses.
    pub fn run(mut self, is_over: impl Fn() -> bool) -> LoadResult<Measured> {
        let mut events = Events::with_capacity(EVENTS_AT_ONCE);
        let begin = Instant::now();
        self.clients.iter_mut().try_for_each(Client::send)?;
        while self.clients.iter().any(|client| client.state == State::Waits) {
            self.poll.poll(&mut events, Some(PATIENCE))?;
            if events.is_empty() {
                return Err("no response in time".into());
            }
            for event in &events {
                let Token(place) = event.token();
                self.receive(place, &is_over)?;
            }
        }
        Ok(Measured { answers: self.answers, time: begin.elapsed(), latency: self.latency })
    }

    /// Reads all that is there.
    fn receive(&mut self, place: usize, is_over: impl Fn() -> bool) -> LoadResult<()> {
        let client = &mut self.clients[place];
        loop {
            let count = match client.stream.read(&mut self.buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            client.incoming.add(&self.buffer[..count])?;
            let Some(body) = client.incoming.take_body()? else { continue };
            check(&body)?;
            self.latency.add(u64::try_from(client.sent.elapsed().as_nanos())?);
            self.answers += 1;
            if is_over() {
                client.state = State::Done;
            } else {
                client.send()?;
            }
        }
    }
}

impl Client {
    /// Waits for the first response before the next client connects: a server limits connections that have not
    /// authenticated.
    fn connect(at: SocketAddr, token: &str, described: &LoadTarget, run: u128) -> LoadResult<Self> {
        let LoadTarget { cluster, machine } = described;
        let target = format!("/v1/commands?cluster={cluster}");
        let body = |variant: &str| {
            format!(
                "{{\"command\":\"describe\",\"machine\":\"{machine}\",\"tags\":{{\"run\":\"{run}-{variant}\"}}}}"
            )
        };
        let stream = std::net::TcpStream::connect(at)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut connection = Connection::new(stream, token);
        check(&connection.post(&target, &body("first"))?)?;
        let stream = connection.into_stream();
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream: TcpStream::from_std(stream),
            requests: ["even", "odd"].map(|variant| request("POST", &target, token, &body(variant))),
            count: 0,
            sent: Instant::now(),
            incoming: Incoming::default(),
            state: State::Done,
        })
    }

    fn send(&mut self) -> LoadResult<()> {
        let request = &self.requests[self.count % 2];
        (self.sent, self.state) = (Instant::now(), State::Waits);
        self.count += 1;
        let written = self.stream.write(request)?;
        if written < request.len() {
            return Err(format!("no room for a request: {written} bytes were taken").into());
        }
        Ok(())
    }
}

/// A command that changes nothing would measure less.
fn check(body: &str) -> LoadResult<()> {
    if body.contains("\"changes\":1") {
        return Ok(());
    }
    Err(format!("the command changed nothing: {body}").into())
}
