//! One connection: request after request, each read with patience that ends and answered with one write.
//!
//! ```text
//!   idle ──first byte──▶ head ──complete──▶ body ──complete──▶ answered ──▶ idle, or closed
//!                          └── unreadable ────┴── over-long ──▶ refused ──▶ half-closed, drained, closed
//! ```

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use forewarn_imds::Problem;
use forewarn_types::{MachineId, Now};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::answer::{Answer, CONTINUE};
use crate::body::Collector;
use crate::connections::Seat;
use crate::control_plane::ControlPlane;
use crate::counts::Awaited;
use crate::directory::Caller;
use crate::front::{Front, Reading, Ticket};
use crate::limits::ConnectionLimits;
use crate::memory::{Meaning, Memory};
use crate::patience::Patience;
use crate::request::{After, Body};
use crate::route::{Asked, Wait};
use crate::settings::Identity;
use crate::stream::Stream;
use crate::terms::Terms;

/// After a refusal, what the caller still sends is read for that long, and up to that much, so that it sees the answer.
const DRAIN_MAX: Duration = Duration::from_secs(1);
const DRAIN_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are read at once.
const READ_BYTES: usize = 2 * 1024;

/// Bytes that a buffer keeps between requests.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// One connection.
pub(crate) struct Connection<C, S> {
    front: Arc<Front<C>>,
    identity: Arc<Identity>,
    peer: Option<IpAddr>,
    seat: Seat,
    stream: S,
    limits: ConnectionLimits,
    patience: Patience,
    born: Instant,
    memory: Memory<Arc<Caller>>,
    answered: u32,
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

impl<C: ControlPlane, S: Stream> Connection<C, S> {
    pub(crate) fn new(
        front: Arc<Front<C>>,
        identity: Arc<Identity>,
        stream: S,
        peer: Option<IpAddr>,
        seat: Seat,
    ) -> Self {
        let limits = front.settings.connections;
        let patience = Patience::new(Awaited::Request, limits.idle);
        let born = patience.since;
        Self {
            front,
            identity,
            peer,
            seat,
            stream,
            limits,
            patience,
            born,
            memory: Memory::default(),
            answered: 0,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Answers until either side has had enough.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        let outcome = self.answer_all().await;
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::TimedOut
        {
            self.front.counts.ran_out(self.patience.awaited);
        }
        outcome
    }

    async fn answer_all(&mut self) -> io::Result<()> {
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
                let now = self.front.control.now();
                self.send(&problem.into(), terms, now).await?;
                return Ok(Next::Drain);
            }
            Reading::Request(ticket) => ticket,
        };
        self.input.drain(..head_bytes);
        self.answered += 1;
        if self.is_last() {
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
        let answer = self.front.perform(&caller, asked, &body, &admitted).await;
        // Looking at the clock is a good part of what a poll costs: who did not wait needs no second look.
        let now = if is_prompt { admitted.now } else { self.front.control.now() };
        self.finish(&answer, terms, now).await
    }

    /// Whether this connection has had enough requests, or has been there for long enough.
    fn is_last(&self) -> bool {
        let counts = &self.front.counts;
        if self.answered >= self.limits.requests {
            counts.ended_requests.inc();
            return true;
        }
        let is_old = self.patience.since - self.born > self.limits.life;
        if is_old {
            counts.ended_life.inc();
        }
        is_old
    }

    /// The next thing that is not a part of a head; a part only if nothing follows.
    async fn next_reading(&mut self) -> io::Result<Reading> {
        let mut has_begun = false;
        self.patience.give(Awaited::Request, self.limits.idle);
        loop {
            if self.repeat() {
                self.write_output().await?;
                self.patience.give(Awaited::Request, self.limits.idle);
            }
            if !self.input.is_empty() {
                let reading = self.front.understand(&self.input, &self.identity, self.peer, &mut self.memory);
                if !matches!(reading, Reading::Partial) {
                    return Ok(reading);
                }
                if !has_begun {
                    has_begun = true;
                    self.patience.give(Awaited::Head, self.limits.head);
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

    /// Prepares the answer to a poll that is the one before to the letter, and needs nothing that may take time: most are.
    /// Says whether there is one to be sent.
    fn repeat(&mut self) -> bool {
        if self.input.is_empty() || self.answered + 1 >= self.limits.requests || self.seat.is_stopping() {
            return false;
        }
        if self.patience.since - self.born > self.limits.life {
            return false;
        }
        let front = &self.front;
        let generation = front.control.directory().generation();
        let Some(Meaning { caller, asked, terms, .. }) = self.memory.recall(&self.input, generation) else {
            return false;
        };
        if terms.after == After::Close {
            return false;
        }
        let now = front.control.now();
        let Some(answer) = front.answer_at_once(caller, asked, now) else { return false };
        front.counts.answered(terms.path, answer.code());
        self.output.clear();
        answer.write(&mut self.output, now.wall, terms.after, terms.shown);
        self.input.clear();
        self.answered += 1;
        true
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
        let now = self.front.control.now();
        self.finish(&problem.into(), terms, now).await
    }

    async fn refuse_and_drain(&mut self, problem: Problem, terms: Terms) -> io::Result<Next> {
        let now = self.front.control.now();
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
            After::Close if self.answered >= self.limits.requests || !self.input.is_empty() => {
                Ok(Next::Drain)
            }
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
                    self.patience.give(Awaited::Body, self.limits.body);
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
        let code = answer.code();
        self.front.counts.answered(terms.path, code);
        if (400..500).contains(&code) {
            self.slow_down(terms.machine).await;
        }
        self.output.clear();
        answer.write(&mut self.output, now.wall, terms.after, terms.shown);
        self.write_output().await
    }

    /// Who is refused again and again gets its refusals late: it has only so many connections to wait on.
    async fn slow_down(&self, machine: Option<MachineId>) {
        let Some(delay) = machine.and_then(|machine| self.front.error_delay(machine)) else { return };
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.seat.stopping() => {}
        }
    }

    async fn write_output(&mut self) -> io::Result<()> {
        // Mostly everything goes at once.
        let written = self.stream.try_write(&self.output).unwrap_or(0);
        if written == self.output.len() {
            return Ok(());
        }
        self.patience.give(Awaited::Reader, self.limits.write);
        self.patience.during(self.stream.write_all(&self.output[written..])).await
    }

    /// Lets the caller read its answer before the connection goes: closing with something unread would take it back.
    async fn drain(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        self.patience.give(Awaited::End, DRAIN_MAX);
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
