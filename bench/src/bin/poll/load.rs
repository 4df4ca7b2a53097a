//! The loop: whichever connection has its answer asks again.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::arguments::{Arguments, Mode};
use crate::sample::{Samples, is_success};
use forewarn_bench::histogram::Histogram;

/// One answer of so many is compared byte for byte.
const COMPARED_EVERY: u64 = 512;
const EVENTS_AT_ONCE: usize = 1_024;
const READ_BYTES: usize = 64 * 1_024;
/// Nobody is silent for longer, unless something is wrong.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// What came of a run.
pub(crate) struct Measured {
    pub(crate) answers: u64,
    pub(crate) time: Duration,
    pub(crate) latency: Histogram,
}

/// The connections, and what they ask.
pub(crate) struct Load<'a> {
    at: SocketAddr,
    mode: Mode,
    time: Duration,
    request: Vec<u8>,
    samples: &'a Samples,
    poll: Poll,
    lines: Vec<Line>,
    buffer: Vec<u8>,
    answers: u64,
    latency: Histogram,
}

/// A connection with one request under way.
struct Line {
    stream: TcpStream,
    /// When it was sent; for a connection of its own, when that was begun.
    begun: Instant,
    sending: Sending,
    received_bytes: usize,
}

/// Whether the request has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sending {
    /// The connection is not there yet.
    Waits,
    Done,
}

type Outcome<T> = Result<T, Box<dyn Error>>;

impl<'a> Load<'a> {
    pub(crate) fn new(arguments: &Arguments, samples: &'a Samples) -> Outcome<Self> {
        let Arguments { at, mode, connections, milliseconds, .. } = *arguments;
        let mut load = Self {
            at,
            mode,
            time: Duration::from_millis(milliseconds.into()),
            request: arguments.request(mode),
            samples,
            poll: Poll::new()?,
            lines: Vec::new(),
            buffer: vec![0; READ_BYTES],
            answers: 0,
            latency: Histogram::new(),
        };
        for place in 0..connections as usize {
            let line = load.connect(place, Instant::now())?;
            load.lines.push(line);
        }
        Ok(load)
    }

    pub(crate) fn run(mut self) -> Outcome<Measured> {
        let mut events = Events::with_capacity(EVENTS_AT_ONCE);
        let begin = Instant::now();
        while begin.elapsed() < self.time {
            self.poll.poll(&mut events, Some(SILENCE_MAX))?;
            if events.is_empty() {
                return Err("nobody answers any more".into());
            }
            for event in &events {
                let Token(place) = event.token();
                if self.lines[place].sending == Sending::Waits {
                    self.send(place)?;
                }
                if event.is_readable() {
                    self.receive(place)?;
                }
            }
        }
        Ok(Measured { answers: self.answers, time: begin.elapsed(), latency: self.latency })
    }

    /// Begins a connection, and sends at once if it is there at once, as it mostly is on one machine.
    fn connect(&self, place: usize, begun: Instant) -> Outcome<Line> {
        let mut stream = TcpStream::connect(self.at)?;
        stream.set_nodelay(true)?;
        self.poll.registry().register(&mut stream, Token(place), Interest::READABLE | Interest::WRITABLE)?;
        let mut line = Line { stream, begun, sending: Sending::Waits, received_bytes: 0 };
        line.send(&self.request)?;
        Ok(line)
    }

    fn send(&mut self, place: usize) -> Outcome<()> {
        let line = &mut self.lines[place];
        if let Some(error) = line.stream.take_error()? {
            return Err(error.into());
        }
        line.send(&self.request)
    }

    /// Reads once: an event comes for everything that arrives later. An old event may find nothing.
    fn receive(&mut self, place: usize) -> Outcome<()> {
        let line = &mut self.lines[place];
        let count = match line.stream.read(&mut self.buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if count == 0 {
            return self.close(place);
        }
        let piece = &self.buffer[..count];
        if line.received_bytes == 0 && !is_success(piece) {
            return Err(format!("not a success: {}", String::from_utf8_lossy(piece)).into());
        }
        line.received_bytes += count;
        let (received, Samples { kept, closed }) = (line.received_bytes, self.samples);
        let is_piece = received < kept.bytes().max(closed.bytes());
        let is_compared = self.answers.is_multiple_of(COMPARED_EVERY) && received == count && !is_piece;
        if is_compared && !self.samples.has_body_of(piece) {
            return Err(format!("not the right answer: {}", String::from_utf8_lossy(piece)).into());
        }
        match self.mode {
            Mode::KeepAlive if received == kept.bytes() => self.ask_again(place),
            // The end is mostly there with the last answer; if not, an event comes for it.
            Mode::KeepAlive | Mode::PerRequest if received == closed.bytes() => self.receive(place),
            Mode::KeepAlive | Mode::PerRequest if is_piece => Ok(()),
            Mode::KeepAlive | Mode::PerRequest => {
                Err(format!("an answer that is too long: {received}").into())
            }
        }
    }

    fn ask_again(&mut self, place: usize) -> Outcome<()> {
        let begun = self.count(place);
        let line = &mut self.lines[place];
        (line.begun, line.received_bytes, line.sending) = (begun, 0, Sending::Waits);
        line.send(&self.request)
    }

    /// The server has closed, as it may after the answer that says so.
    fn close(&mut self, place: usize) -> Outcome<()> {
        let (received, last) = (self.lines[place].received_bytes, self.samples.closed.bytes());
        if received != last {
            return Err(format!("closed after {received} bytes of an answer; a last one has {last}").into());
        }
        let begun = self.count(place);
        self.lines[place] = self.connect(place, begun)?;
        Ok(())
    }

    fn count(&mut self, place: usize) -> Instant {
        let now = Instant::now();
        let time = now.duration_since(self.lines[place].begun);
        self.latency.add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.answers += 1;
        now
    }
}

impl Line {
    fn send(&mut self, request: &[u8]) -> Outcome<()> {
        match self.stream.write(request) {
            Ok(count) if count == request.len() => {
                self.sending = Sending::Done;
                Ok(())
            }
            Ok(count) => Err(format!("no room for a request: {count} bytes were taken").into()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
