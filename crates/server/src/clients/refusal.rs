//! Answers that the server gives instead of hanging: 503 to a client for whom there is no room, 408 to one that was too slow.

use std::time::Duration;

use forewarn_azure::ArmError;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::stream::Duplex;
use crate::operator::problem_text;

/// Time for a client to take its refusal.
const TAKE_MAX: Duration = Duration::from_secs(2);

/// Bytes of a refused request that are read: closing over unread bytes would lose the answer.
const UNREAD_BYTES_MAX: u64 = 64 * 1024;

/// Kind of clients that a listener serves: refusals are in the form that they read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Problem documents (RFC 9457).
    Operators,
    /// Errors of Azure Resource Manager.
    Azure,
}

/// Refusal of a client whose request was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no room.
    Busy,
    /// The request did not come in time.
    TooSlow,
}

impl Refusal {
    const fn status(self) -> (u16, &'static str) {
        match self {
            Self::Busy => (503, "Service Unavailable"),
            Self::TooSlow => (408, "Request Timeout"),
        }
    }

    fn bytes(self, dialect: Dialect) -> String {
        let (status, phrase) = self.status();
        let (kind, body) = match dialect {
            Dialect::Operators => ("application/problem+json", problem_text(self)),
            Dialect::Azure => {
                let (code, message) = match self {
                    Self::Busy => ("ServerBusy", "The server has too many connections. Try again later."),
                    Self::TooSlow => ("RequestTimeout", "The request did not arrive in time."),
                };
                let error = ArmError::new(status, code, message);
                ("application/json; charset=utf-8", error.body().to_string())
            }
        };
        let retry = match self {
            Self::Busy => "retry-after: 1\r\n",
            Self::TooSlow => "",
        };
        format!(
            "HTTP/1.1 {status} {phrase}\r\ncontent-type: {kind}\r\n{retry}content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    /// Sends the refusal and closes the stream, within a short time.
    pub(super) async fn send(self, dialect: Dialect, mut stream: Duplex) {
        let send = async {
            stream.write_all(self.bytes(dialect).as_bytes()).await?;
            stream.shutdown().await?;
            tokio::io::copy(&mut stream.take(UNREAD_BYTES_MAX), &mut tokio::io::sink()).await
        };
        // A client that has gone, or does not read, needs no answer.
        drop(tokio::time::timeout(TAKE_MAX, send).await);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_in_the_form_that_its_reader_knows() {
        let busy = Refusal::Busy.bytes(Dialect::Operators);
        assert!(busy.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{busy}");
        assert!(busy.contains("\r\nretry-after: 1\r\n") && busy.contains("\"/problems/busy\""), "{busy}");
        let slow = Refusal::TooSlow.bytes(Dialect::Azure);
        assert!(slow.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{slow}");
        assert!(slow.contains("\"code\":\"RequestTimeout\""), "{slow}");
    }
}
