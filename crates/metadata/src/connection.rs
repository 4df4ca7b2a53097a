//! One connection: reads request after request, each with a deadline, and answers each with one write.
//!
//! ```text
//!   idle ──first byte──▶ head ──complete──▶ body ──complete──▶ answered ──▶ idle, or closed
//!                          └── unreadable ────┴── over-long ──▶ refused ──▶ half-closed, drained, closed
//! ```

mod faults;

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use forewarn_imds::RequestError;
use forewarn_types::Now;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::body::Collector;
use crate::callers::{Caller, CallerId};
use crate::connections::ConnectionGuard;
use crate::control_plane::ControlPlane;
use crate::counts::Awaited;
use crate::deadlines::IoDeadline;
use crate::endpoint::{Endpoint, ParseOutcome, ParsedRequest};
use crate::limits::ConnectionLimits;
use crate::request::{Body, ConnectionMode};
use crate::request_cache::{CachedRequest, RequestCache};
use crate::response::{CONTINUE, Response};
use crate::response_rules::ResponseRules;
use crate::route::{Action, Wait};
use crate::settings::Identity;
use crate::stream::ClientStream;

/// After a rejection, the connection reads on for this long, and up to this many bytes, so that the client sees the
/// response.
const DRAIN_MAX: Duration = Duration::from_secs(1);
const DRAIN_BYTES_MAX: usize = 64 * 1024;

/// Bytes of one read.
const READ_BYTES: usize = 2 * 1024;

/// Capacity that a buffer keeps between requests.
const KEPT_BYTES_MAX: usize = 16 * 1024;

pub(crate) struct Connection<C, S> {
    endpoint: Arc<Endpoint<C>>,
    identity: Arc<Identity>,
    peer: Option<IpAddr>,
    guard: ConnectionGuard,
    stream: S,
    limits: ConnectionLimits,
    deadline: IoDeadline,
    born: Instant,
    cache: RequestCache<Arc<Caller>>,
    responses_sent: u32,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Step after a response.
enum NextStep {
    Request,
    Close,
    /// The client may still be sending: half-close and drain.
    Drain,
}

impl From<ConnectionMode> for NextStep {
    fn from(connection_mode: ConnectionMode) -> Self {
        match connection_mode {
            ConnectionMode::KeepAlive => Self::Request,
            ConnectionMode::Close => Self::Close,
        }
    }
}

impl<C: ControlPlane, S: ClientStream> Connection<C, S> {
    pub(crate) fn new(
        endpoint: Arc<Endpoint<C>>,
        identity: Arc<Identity>,
        stream: S,
        peer: Option<IpAddr>,
        guard: ConnectionGuard,
    ) -> Self {
        let limits = endpoint.settings.connections;
        let deadline = IoDeadline::new(Awaited::Request, limits.idle);
        let born = deadline.since;
        Self {
            endpoint,
            identity,
            peer,
            guard,
            stream,
            limits,
            deadline,
            born,
            cache: RequestCache::default(),
            responses_sent: 0,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Serves requests until either side closes the connection.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        let outcome = self.serve_requests().await;
        if let Err(error) = &outcome
            && error.kind() == ErrorKind::TimedOut
        {
            self.endpoint.counts.ran_out(self.deadline.awaited);
        }
        outcome
    }

    async fn serve_requests(&mut self) -> io::Result<()> {
        loop {
            match self.serve_request().await? {
                NextStep::Request => self.tidy(),
                NextStep::Close => return Ok(()),
                NextStep::Drain => return Box::pin(self.drain()).await,
            }
        }
    }

    /// Rare paths are boxed: each connection has the memory of the largest path that is not.
    async fn serve_request(&mut self) -> io::Result<NextStep> {
        let ParsedRequest { action, mut rules, head_bytes } = match self.next_request().await? {
            ParseOutcome::Partial => return Ok(NextStep::Close),
            ParseOutcome::Malformed { problem, rules } => {
                let now = self.endpoint.control.now();
                self.send(&problem.into(), rules, now).await?;
                return Ok(NextStep::Drain);
            }
            ParseOutcome::Request(parsed_request) => parsed_request,
        };
        self.input.drain(..head_bytes);
        self.responses_sent += 1;
        if self.is_last() {
            rules.connection_mode = ConnectionMode::Close;
        }
        let (caller, action) = match action {
            Ok(action) => action,
            Err(problem) => return Box::pin(self.refuse(problem, rules)).await,
        };
        if let Some(fault) = self.endpoint.take_fault(&caller, &action) {
            return Box::pin(self.serve_with_fault(fault, (caller, action), rules)).await;
        }
        let admitted = match self.endpoint.admit(&caller, &action).await {
            Ok(admitted) => admitted,
            Err(problem) => return Box::pin(self.refuse(problem, rules)).await,
        };
        let body = match self.collect(rules).await? {
            Ok(body) => body,
            Err(problem) => return Box::pin(self.refuse_and_drain(problem, rules)).await,
        };
        if let Action::Events { wait: Some(wait), .. } = &action
            && wait.incarnation == caller.slot.read().document.incarnation
        {
            match self.endpoint.admit_waiting(&caller) {
                Ok(_waiting) => {
                    self.release_buffers();
                    self.wait_for_change(&caller, *wait).await;
                }
                Err(problem) => return Box::pin(self.refuse(problem, rules)).await,
            }
        }
        let is_prompt = admitted.is_prompt(&action);
        let response = self.endpoint.perform(&caller, action, &body, &admitted).await;
        // Reading the clock is a large part of the cost of a poll, so a prompt response reuses the time of its
        // admission.
        let now = if is_prompt { admitted.now } else { self.endpoint.control.now() };
        self.finish(&response, rules, now).await
    }

    /// Returns true if this connection has reached its number of requests or its age.
    fn is_last(&self) -> bool {
        let counts = &self.endpoint.counts;
        if self.responses_sent >= self.limits.requests {
            counts.ended_requests.inc();
            return true;
        }
        let is_old = self.deadline.since - self.born > self.limits.life;
        if is_old {
            counts.ended_life.inc();
        }
        is_old
    }

    /// Waits for the next complete or malformed head. Returns a partial one only if the client has closed the
    /// connection.
    async fn next_request(&mut self) -> io::Result<ParseOutcome> {
        let mut has_begun = false;
        self.deadline.set(Awaited::Request, self.limits.idle);
        loop {
            if self.repeat() {
                self.write_output().await?;
                self.deadline.set(Awaited::Request, self.limits.idle);
            }
            if !self.input.is_empty() {
                let reading = self.endpoint.parse(&self.input, &self.identity, self.peer, &mut self.cache);
                if !matches!(reading, ParseOutcome::Partial) {
                    return Ok(reading);
                }
                if !has_begun {
                    has_begun = true;
                    self.deadline.set(Awaited::Head, self.limits.head);
                }
            }
            if !has_begun {
                // `stop()` aborts idle connections. Check `is_stopping` before going idle, or `stop()` misses this one.
                if self.guard.is_stopping() {
                    return Ok(ParseOutcome::Partial);
                }
                self.guard.set_idle();
            }
            let has_more = self.read_more().await?;
            self.guard.set_busy();
            if !has_more {
                return Ok(ParseOutcome::Partial);
            }
        }
    }

    /// Prepares the response to a poll that repeats the previous one byte for byte and needs no waiting, as most do.
    /// Returns true if the output is ready to be sent.
    fn repeat(&mut self) -> bool {
        if self.input.is_empty()
            || self.responses_sent + 1 >= self.limits.requests
            || self.guard.is_stopping()
        {
            return false;
        }
        if self.deadline.since - self.born > self.limits.life {
            return false;
        }
        let endpoint = &self.endpoint;
        let generation = endpoint.control.generation();
        let Some(CachedRequest { caller, action, rules, .. }) = self.cache.get(&self.input, generation)
        else {
            return false;
        };
        if rules.connection_mode == ConnectionMode::Close {
            return false;
        }
        let now = endpoint.control.now();
        let Some(response) = endpoint.respond_at_once(caller, action, now) else { return false };
        endpoint.counts.count_response(rules.path, response.code());
        self.output.clear();
        response.write(&mut self.output, now.wall, rules.connection_mode, rules.body_mode);
        self.input.clear();
        self.responses_sent += 1;
        true
    }

    /// Rejects a request whose head is valid. Reads its body unless the client waits for `100 Continue`: the next
    /// request follows it.
    async fn refuse(&mut self, problem: RequestError, rules: ResponseRules) -> io::Result<NextStep> {
        if rules.expects_continue {
            return Box::pin(self.refuse_and_drain(problem, rules)).await;
        }
        if self.collect(rules).await?.is_err() {
            return Box::pin(self.refuse_and_drain(problem, rules)).await;
        }
        let now = self.endpoint.control.now();
        self.finish(&problem.into(), rules, now).await
    }

    async fn refuse_and_drain(
        &mut self,
        problem: RequestError,
        rules: ResponseRules,
    ) -> io::Result<NextStep> {
        let now = self.endpoint.control.now();
        self.send(&problem.into(), ResponseRules { connection_mode: ConnectionMode::Close, ..rules }, now)
            .await?;
        Ok(NextStep::Drain)
    }

    /// Sends the response to a request that was read to its end.
    async fn finish(
        &mut self,
        response: &Response,
        mut rules: ResponseRules,
        now: Now,
    ) -> io::Result<NextStep> {
        if self.guard.is_stopping() {
            rules.connection_mode = ConnectionMode::Close;
        }
        self.send(response, rules, now).await?;
        match rules.connection_mode {
            // A client that did not ask to close may have sent more, and must still see this response.
            ConnectionMode::Close
                if self.responses_sent >= self.limits.requests || !self.input.is_empty() =>
            {
                Ok(NextStep::Drain)
            }
            ConnectionMode::Close => Ok(NextStep::Close),
            ConnectionMode::KeepAlive => Ok(NextStep::Request),
        }
    }

    /// Reads the body of a request.
    async fn collect(&mut self, rules: ResponseRules) -> io::Result<Result<Vec<u8>, RequestError>> {
        if rules.body == Body::NONE {
            return Ok(Ok(Vec::new()));
        }
        let mut collector = match Collector::new(rules.body) {
            Ok(collector) => collector,
            Err(problem) => return Ok(Err(problem)),
        };
        if rules.expects_continue && self.input.is_empty() {
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
                    self.deadline.set(Awaited::Body, self.limits.body);
                }
                None => {}
            }
            if !self.read_more().await? {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Waits until the document changes, the wait expires, or the client disconnects.
    async fn wait_for_change(&self, caller: &Caller, wait: Wait) {
        let news = caller.slot.differs_from(wait.incarnation);
        tokio::select! {
            _ = tokio::time::timeout(wait.at_most, news) => {}
            () = self.disconnected() => {}
            () = self.guard.stopping() => {}
        }
    }

    /// Returns when the client closes its side; never, if it has already sent another request.
    async fn disconnected(&self) {
        if self.input.is_empty()
            && let Ok(0) | Err(_) = self.stream.peek().await
        {
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Reads the available bytes. Returns false at the end of the stream.
    async fn read_more(&mut self) -> io::Result<bool> {
        self.input.reserve(READ_BYTES);
        let bytes = self.deadline.run(self.stream.read_buf(&mut self.input)).await?;
        Ok(bytes > 0)
    }

    async fn send(&mut self, response: &Response, rules: ResponseRules, now: Now) -> io::Result<()> {
        let code = response.code();
        self.endpoint.counts.count_response(rules.path, code);
        if (400..500).contains(&code) {
            self.delay_error(rules.caller).await;
        }
        self.output.clear();
        response.write(&mut self.output, now.wall, rules.connection_mode, rules.body_mode);
        self.write_output().await
    }

    /// Delays rejections for a machine that has caused too many: its number of connections is limited, so it slows
    /// down.
    async fn delay_error(&self, caller: Option<CallerId>) {
        let Some(delay) = caller.and_then(|caller| self.endpoint.error_delay(caller)) else { return };
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.guard.stopping() => {}
        }
    }

    async fn write_output(&mut self) -> io::Result<()> {
        // Usually the socket takes everything at once.
        let written = self.stream.try_write(&self.output).unwrap_or(0);
        if written == self.output.len() {
            return Ok(());
        }
        self.deadline.set(Awaited::Reader, self.limits.write);
        self.deadline.run(self.stream.write_all(&self.output[written..])).await
    }

    /// Lets the client read its response before the connection is closed: closing with unread input would reset it.
    async fn drain(&mut self) -> io::Result<()> {
        self.stream.shutdown().await?;
        self.deadline.set(Awaited::End, DRAIN_MAX);
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

    /// Frees the buffers of a connection that waits: many may wait for long.
    fn release_buffers(&mut self) {
        self.input.shrink_to_fit();
        self.output = Vec::new();
    }

    fn tidy(&mut self) {
        self.input.shrink_to(KEPT_BYTES_MAX);
        self.output.clear();
        self.output.shrink_to(KEPT_BYTES_MAX);
    }
}
