//! hyper's server, set up as its documentation shows, over a stream in memory.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use tokio::runtime::Runtime;

use super::Seen;
use forewarn_fuzz::answers;

pub(crate) struct Hyper {
    runtime: Runtime,
}

/// Everything that comes, and then the end.
struct Script {
    bytes: Vec<u8>,
    at: usize,
    answers: Arc<Mutex<Vec<u8>>>,
}

impl Hyper {
    pub(crate) fn new() -> Self {
        Self { runtime: tokio::runtime::Builder::new_current_thread().build().unwrap() }
    }

    pub(crate) fn see(&self, bytes: &[u8]) -> Seen {
        let answers = Arc::new(Mutex::new(Vec::new()));
        let script = Script { bytes: bytes.to_vec(), at: 0, answers: Arc::clone(&answers) };
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        // A request counts when its body has come to its end.
        let service = service_fn(move |request: Request<Incoming>| {
            let count = Arc::clone(&count);
            async move {
                if request.into_body().collect().await.is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new()))
            }
        });
        let serving = http1::Builder::new().half_close(true).serve_connection(script, service);
        let served = self.runtime.block_on(serving);
        let answers = answers::read(&answers.lock().unwrap()).unwrap_or_default();
        let is_told = answers.iter().any(|answer| answer.status >= 400);
        let is_broken = served.as_ref().is_err_and(|error| error.is_parse() || error.is_user());
        Seen { taken: taken.load(Ordering::Relaxed), refused: is_told || is_broken, refused_last: false }
    }
}

impl Read for Script {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = &self.bytes[self.at..];
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..count]);
        self.at += count;
        Poll::Ready(Ok(()))
    }
}

impl Write for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.answers.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
