//! Asking for a change, once, however often it has to be asked for.
//!
//! A client whose connection breaks off does not know whether it was done. It asks again, under the same key: the server
//! carries it out once, and answers the same.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::time::Duration;

use anyhow::{Context, Result};
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, understand};

/// The header with a key that makes a request safe to repeat.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Random bytes in such a key.
const KEY_BYTES: usize = 16;

/// When a change is asked for again of which it is not known whether it was done.
const REPEATED_AFTER: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(2)];

/// The status of an answer that says: not now.
const UNAVAILABLE: u16 = 503;

/// A connection that ended before the answer did. What was asked for may have been done.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct BrokenOff(pub(super) String);

impl Client {
    /// Has something changed, once: it is asked for under a key, so that it can be asked for again when it is not known
    /// whether it was done.
    pub(crate) fn change<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
    ) -> Result<T> {
        let key = random_key()?;
        let mut headers = vec![(IDEMPOTENCY_KEY, key.as_str())];
        let body = match body {
            Some(body) => {
                headers.push((CONTENT_TYPE.as_str(), "application/json"));
                Bytes::from(serde_json::to_vec(body)?)
            }
            None => Bytes::new(),
        };
        let mut is_unsure = false;
        for pause in REPEATED_AFTER {
            let answered = self.send(method.clone(), path, &headers, body.clone());
            is_unsure |= match &answered {
                Ok((status, _)) => *status == UNAVAILABLE,
                Err(problem) => problem.is::<BrokenOff>(),
            };
            match answered {
                // It may have been done, and the server may be coming back.
                Err(_) | Ok((UNAVAILABLE, _)) if is_unsure => std::thread::sleep(pause),
                answered => return understand(&answered?),
            }
        }
        understand(&self.send(method, path, &headers, body)?)
    }
}

/// Whether a connection that was there has gone.
pub(super) fn is_broken_off(why: &anyhow::Error) -> bool {
    let is_gone = |kind: ErrorKind| {
        matches!(
            kind,
            ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof
        )
    };
    why.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| is_gone(error.kind()))
            || cause.downcast_ref::<hyper::Error>().is_some_and(|error| {
                error.is_incomplete_message() || error.is_closed() || error.is_canceled()
            })
    })
}

/// A key that nobody has used before.
fn random_key() -> Result<String> {
    let mut bytes = [0; KEY_BYTES];
    let read = File::open("/dev/urandom").and_then(|mut source| source.read_exact(&mut bytes));
    read.context("no random numbers to be had: /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
