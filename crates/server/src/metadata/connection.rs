//! One connection: request after request, each read with patience that ends and answered with one write.
//!
//! ```text
//!   idle ──first byte──▶ head ──complete──▶ body ──complete──▶ answered ──▶ idle, or closed
//!                          └── unreadable ────┴── over-long ──▶ refused ──▶ half-closed, drained, closed
//! ```

use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use forewarn_lifecycle::Now;
use forewarn_wire::Problem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, Sleep};

use super::answer::{Answer, CONTINUE};
use super::body::Collector;
use super::connections::Seat;
use super::memory::Memory;
use super::request::{After, Body};
use super::route::{Asked, Wait};
use super::serve::{Front, Reading, Terms, Ticket};
use super::settings::Identity;
use super::stream::Stream;
use crate::directory::Caller;

const IDLE_MAX: Duration = Duration::from_secs(30);
const HEAD_MAX: Duration = Duration::from_secs(5);
const BODY_MAX: Duration = Duration::from_secs(5);
const WRITE_MAX: Duration = Duration::from_secs(10);
const LIFE_MAX: Duration = Duration::from_mins(10);
const REQUESTS_MAX: usize = 1_000;

/// After a refusal, what the caller still sends is read for that long, and up to that much, so that it sees the answer.
const DRAIN_MAX: Duration = Duration::from_secs(1);
const DRAIN_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are read at once.
const READ_BYTES: usize = 2 * 1024;

/// Bytes that a buffer keeps between requests.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// One connection.
pub(super) struct Connection<S> {
    front: Arc<Front>,
    identity: Arc<Identity>,
    peer: Option<IpAddr>,
    seat: Seat,
    stream: S,
    patience: Patience,
    born: Instant,
    memory: Memory<Arc<Caller>>,
    answered: usize,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// What comes after an answer.
enum Next {
    Request,
    Close,
    /// Somebody may still be sending.
    Drain,
}

impl From<After> for Next {
    fn from(after: After) -> Self {
        match after {
            After::KeepAlive => Self::Request,
            After::Close => Self::Close,
        }
    }
}

impl<S: Stream> Connection<S> {
    pub(super) fn new(
        front: Arc<Front>,
        identity: Arc<Identity>,
        stream: S,
        peer: Option<IpAddr>,
        seat: Seat,
    ) -> Self {
        let patience = Patience::new(IDLE_MAX);
        let born = patience.since;
        Self {
            front,
            identity,
            peer,
            seat,
            stream,
            patience,
            born,
            memory: Memory::default(),
            answered: 0,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Answers until either side has had enough.
    pub(super) async fn run(&mut self) -> io::Result<()> {
        loop {
            match self.answer_next().await? {
                Next::Request => self.tidy(),
                Next::Close => return Ok(()),
                Next::Drain => return self.drain().await,
            }
        }
    }

    async fn answer_next(&mut self) -> io::Result<Next> {
        let Ticket { asked, mut terms, head_bytes } = match self.next_reading().await? {
            Reading::Partial => return Ok(Next::Close),
            Reading::Broken { problem, terms } => {
                let now = self.front.engine.clock().now();
                self.send(&problem.into(), terms, now).await?;
                return Ok(Next::Drain);
            }
            Reading::Request(ticket) => ticket,
        };
        self.input.drain(..head_bytes);
        self.answered += 1;
        if self.answered >= REQUESTS_MAX || self.patience.since - self.born > LIFE_MAX {
            terms.after = After::Close;
        }
        let (caller, asked) = match asked {
            Ok(asked) => asked,
            Err(problem) => return self.refuse(problem, terms).await,
        };
        let admitted = match self.front.admit(&caller, &asked).await {
            Ok(admitted) => admitted,
            Err(problem) => return self.refuse(problem, terms).await,
        };
        let body = match self.collect(terms).await? {
            Ok(body) => body,
            Err(problem) => return self.refuse_and_drain(problem, terms).await,
        };
        if let Asked::Events { wait: Some(wait), .. } = &asked
            && wait.incarnation == caller.slot.read().document.incarnation
        {
            match self.front.let_wait(&caller) {
                Ok(_waiting) => self.wait_for_news(&caller, *wait).await,
                Err(problem) => return self.refuse(problem, terms).await,
            }
        }
        let is_prompt = admitted.is_prompt(&asked);
        let answer = self.front.perform(&caller, asked, &body, admitted.visit).await;
        // Looking at the clock is a good part of what a poll costs: who did not wait needs no second look.
        let now = if is_prompt { admitted.now } else { self.front.engine.clock().now() };
        self.finish(&answer, terms, now).await
    }

    /// The next thing that is not a part of a head; a part only if nothing follows.
    async fn next_reading(&mut self) -> io::Result<Reading> {
        let mut has_begun = false;
        self.patience.give(IDLE_MAX);
        loop {
            if !self.input.is_empty() {
                let reading = self.front.understand(&self.input, &self.identity, self.peer, &mut self.memory);
                if !matches!(reading, Reading::Partial) {
                    return Ok(reading);
                }
                if !has_begun {
                    has_begun = true;
                    self.patience.give(HEAD_MAX);
                }
            }
            if !has_begun {
                // Who is idle may be closed; so nobody becomes idle who would not be found.
                if self.seat.is_stopping() {
                    return Ok(Reading::Partial);
                }
                self.seat.set_idle();
            }
            let has_more = self.read_more().await?;
            self.seat.set_busy();
            if !has_more {
                return Ok(Reading::Partial);
            }
        }
    }

    /// Refuses a request whose head was understood. Its body is read if it is about to come anyway: the next request
    /// follows it.
    async fn refuse(&mut self, problem: Problem, terms: Terms) -> io::Result<Next> {
        if terms.expects_continue {
            return self.refuse_and_drain(problem, terms).await;
        }
        if self.collect(terms).await?.is_err() {
            return self.refuse_and_drain(problem, terms).await;
        }
        let now = self.front.engine.clock().now();
        self.finish(&problem.into(), terms, now).await
    }

    async fn refuse_and_drain(&mut self, problem: Problem, terms: Terms) -> io::Result<Next> {
        let now = self.front.engine.clock().now();
        self.send(&problem.into(), Terms { after: After::Close, ..terms }, now).await?;
        Ok(Next::Drain)
    }

    /// Sends the answer to a request that was read to its end.
    async fn finish(&mut self, answer: &Answer, mut terms: Terms, now: Now) -> io::Result<Next> {
        if self.seat.is_stopping() {
            terms.after = After::Close;
        }
        self.send(answer, terms, now).await?;
        match terms.after {
            // Who did not ask for the end may have sent more already, and should still see this answer.
            After::Close if self.answered >= REQUESTS_MAX || !self.input.is_empty() => Ok(Next::Drain),
            After::Close => Ok(Next::Close),
            After::KeepAlive => Ok(Next::Request),
        }
    }

    /// Reads the body of a request, if it can be one.
    async fn collect(&mut self, terms: Terms) -> io::Result<Result<Vec<u8>, Problem>> {
        if terms.body == Body::NONE {
            return Ok(Ok(Vec::new()));
        }
        let mut collector = match Collector::new(terms.body) {
            Ok(collector) => collector,
            Err(problem) => return Ok(Err(problem)),
        };
        if terms.expects_continue && self.input.is_empty() {
            self.output.clear();
            self.output.extend_from_slice(CONTINUE);
            self.write_output().await?;
        }
        let mut has_begun = false;
        loop {
            match collector.take(&mut self.input).transpose() {
                Some(outcome) => return Ok(outcome),
                None if !has_begun => {
                    has_begun = true;
                    self.patience.give(BODY_MAX);
                }
                None => {}
            }
            if !self.read_more().await? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Waits until there is another document, for as long as the caller likes and stays.
    async fn wait_for_news(&self, caller: &Caller, wait: Wait) {
        let news = caller.slot.differs_from(wait.incarnation);
        tokio::select! {
            _ = tokio::time::timeout(wait.at_most, news) => {}
            () = self.hang_up() => {}
            () = self.seat.stopping() => {}
        }
    }

    /// Returns when the caller sends nothing more; never, if it has sent another request already.
    async fn hang_up(&self) {
        if self.input.is_empty()
            && let Ok(0) | Err(_) = self.stream.peek().await
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Reads what there is; says whether there was anything.
    async fn read_more(&mut self) -> io::Result<bool> {
        self.input.reserve(READ_BYTES);
        let bytes = self.patience.during(self.stream.read_buf(&mut self.input)).await?;
        Ok(bytes > 0)
    }

    async fn send(&mut self, answer: &Answer, terms: Terms, now: Now) -> io::Result<()> {
        self.front.telemetry.metadata.answered(terms.path, answer.code());
        self.output.clear();
        answer.write(&mut self.output, now.wall, terms.after, terms.shown);
        self.write_output().await
    }

    async fn write_output(&mut self) -> io::Result<()> {
        // Mostly everything goes at once.
        let written = self.stream.try_write(&self.output).unwrap_or(0);
        if written == self.output.len() {
            return Ok(());
        }
        self.patience.give(WRITE_MAX);
        self.patience.during(self.stream.write_all(&self.output[written..])).await
    }

    /// Lets the caller read its answer before the connection goes: closing with something unread would take it back.
    async fn drain(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        self.patience.give(DRAIN_MAX);
        let mut drained = 0;
        while drained < DRAIN_BYTES_MAX {
            self.input.clear();
            if !self.read_more().await? {
                break;
            }
            drained += self.input.len();
        }
        Ok(())
    }

    fn tidy(&mut self) {
        self.input.shrink_to(KEPT_BYTES_MAX);
        self.output.clear();
        self.output.shrink_to(KEPT_BYTES_MAX);
    }
}

/// One alarm for everything that a connection waits for. It is set anew only when it rings too early, or would ring too
/// late: a request that comes in time costs no timer.
struct Patience {
    since: Instant,
    ends: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Patience {
    fn new(span: Duration) -> Self {
        let since = Instant::now();
        let ends = since + span;
        Self { since, ends, alarm: Box::pin(tokio::time::sleep_until(ends)) }
    }

    /// Patience lasts that long from now on.
    fn give(&mut self, span: Duration) {
        self.since = Instant::now();
        self.ends = self.since + span;
        if self.ends < self.alarm.deadline() {
            self.alarm.as_mut().reset(self.ends);
        }
    }

    /// Waits for something until patience ends.
    async fn during<T>(&mut self, something: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        tokio::pin!(something);
        loop {
            tokio::select! {
                biased;
                done = &mut something => return done,
                () = self.alarm.as_mut() => {
                    if Instant::now() >= self.ends {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    self.alarm.as_mut().reset(self.ends);
                }
            }
        }
    }
}
