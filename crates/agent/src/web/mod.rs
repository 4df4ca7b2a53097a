//! The HTTP listener: for supervisors, metrics, load balancers, and peers.
//!
//! | path | caller | response |
//! |---|---|---|
//! | `/healthz` | a supervisor | 200 while the agent runs |
//! | `/readyz` | a supervisor | 200 once the endpoint has responded, 503 before |
//! | `/ready` | a load balancer | 200 `serving`, 503 `draining` |
//! | `/metrics` | a metrics collector | OpenMetrics |
//! | `/status` | this machine only | the full status as JSON |
//! | `POST /retry`, `/retry/ID` | this machine only | runs failed hooks again, of all events or of one |
//! | `/peers/v1/status` | peers that have the key | the state of each event on this machine |
//!
//! HTTP/1.1, read-only except for `/retry`: no bodies, one request per connection, limits on connections and time. No TLS: any caller learns
//! whether this machine is drained, and how often it polls.
//!
//! Unknown callers cannot block peers: see `admission.rs`.

mod admission;
mod responses;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::peers::{Key, PeerAddresses};
use crate::status_board::Board;
use admission::{Admission, OPEN_MAX, Slot};
use responses::ProvenPeer;

/// Limits of the time for a request head and for a connection.
const HEAD_MAX: Duration = Duration::from_secs(5);
const CONNECTION_MAX: Duration = Duration::from_secs(10);

/// Size limit of a request head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Pause after a failed accept, when the system is out of resources.
const PAUSE: Duration = Duration::from_millis(100);

/// The response to a connection that has lost its slot.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    cache-control: no-store\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 21\r\n\r\ntoo many connections\n";

/// The data that responses need.
#[derive(Clone)]
struct RequestHandler<M> {
    board: Board,
    metrics: M,
    key: Option<Key>,
}

/// Serves requests until it is stopped.
pub(crate) async fn serve<M>(
    listener: TcpListener,
    board: Board,
    metrics: M,
    key: Option<Key>,
    peers: PeerAddresses,
    mut stop: watch::Receiver<bool>,
) where
    M: Fn() -> String + Clone + Send + Sync + 'static,
{
    let handler = RequestHandler { board, metrics, key };
    let admission = Admission::new(peers);
    let permits = Arc::new(Semaphore::new(OPEN_MAX));
    let accepting = async {
        loop {
            // There are fewer slots than permits: the rest are for connections that have lost their slot and are
            // closing.
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, from)) => {
                    let handler = handler.clone();
                    let (slot, dropped) = admission.admit(from.ip());
                    tokio::spawn(async move {
                        // Slower connections are not waited for.
                        drop(
                            timeout(CONNECTION_MAX, handler.handle_connection(stream, from, slot, dropped))
                                .await,
                        );
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection");
                    sleep(PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        // A dropped sender counts as a stop.
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

impl<M> RequestHandler<M>
where
    M: Fn() -> String + Clone + Send + Sync + 'static,
{
    async fn handle_connection(
        self,
        stream: TcpStream,
        from: SocketAddr,
        slot: Slot,
        dropped: oneshot::Receiver<()>,
    ) {
        // Only an optimisation.
        stream.set_nodelay(true).ok();
        let here = stream.local_addr().ok().map(|here| here.ip());
        let has_response = AtomicBool::new(false);
        let respond = service_fn(|request: Request<Incoming>| {
            has_response.store(true, Ordering::Relaxed);
            let (handler, slot) = (&self, &slot);
            async move {
                let response = handler.respond(&request, from.ip(), here).await;
                if response.extensions().get::<ProvenPeer>().is_some() {
                    slot.prove();
                }
                Ok::<_, Infallible>(response)
            }
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_MAX)
            .keep_alive(false)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), respond);
        let served = tokio::select! {
            // A request that was received already is answered, even without a slot.
            biased;
            served = &mut connection => served,
            Ok(()) = dropped => {
                if !has_response.load(Ordering::Relaxed) {
                    // A client that does not read at once misses this response.
                    connection.into_parts().io.into_inner().try_write(BUSY).ok();
                }
                return;
            }
        };
        if let Err(error) = served {
            tracing::debug!(%from, %error, "rejected malformed request");
        }
    }
}

#[cfg(test)]
mod tests;
