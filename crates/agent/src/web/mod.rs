//! What the agent tells over HTTP: to a supervisor, to collectors of numbers, to load balancers, and to its peers.
//!
//! | path | who asks | answer |
//! |---|---|---|
//! | `/healthz` | a supervisor | 200 while the agent lives |
//! | `/readyz` | a supervisor | 200 once the endpoint has answered, 503 before |
//! | `/ready` | a load balancer | 200 `serving`, 503 `draining` |
//! | `/metrics` | a collector of numbers | OpenMetrics |
//! | `/status` | this machine only | everything, as JSON |
//! | `/peers/v1/word` | peers that have the key | how this machine stands to each event |
//!
//! Only reading, over HTTP/1.1: no bodies, one request per connection, and a limit on connections and on time. Nothing is changed
//! from here. Deliberately absent: TLS. Whoever can ask learns whether this machine is drained, and how often it polls.
//!
//! Strangers cannot keep a peer from being answered: `admission.rs` says which connections stay when there are too many.

mod admission;
mod answers;

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

use crate::board::Shown;
use crate::peers::{Key, PeerAddresses};
use admission::{Admission, OPEN_MAX, Slot};
use answers::ProvenPeer;

/// How long a head may take, and a whole connection.
const HEAD_MAX: Duration = Duration::from_secs(5);
const CONNECTION_MAX: Duration = Duration::from_secs(10);

/// Bytes of a head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// How long to wait when nobody can be let in: the system is out of something.
const PAUSE: Duration = Duration::from_millis(100);

/// The answer to a connection whose slot another one has taken.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    cache-control: no-store\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 21\r\n\r\ntoo many connections\n";

/// Everything that answers need.
#[derive(Clone)]
struct Desk<M> {
    board: watch::Receiver<Arc<Shown>>,
    metrics: M,
    key: Option<Key>,
}

/// Answers whoever asks, until it is told to stop.
pub(crate) async fn serve<M>(
    listener: TcpListener,
    board: watch::Receiver<Arc<Shown>>,
    metrics: M,
    key: Option<Key>,
    peers: PeerAddresses,
    mut stop: watch::Receiver<bool>,
) where
    M: Fn() -> String + Clone + Send + Sync + 'static,
{
    let desk = Desk { board, metrics, key };
    let admission = Admission::new(peers);
    let open = Arc::new(Semaphore::new(OPEN_MAX));
    let accepting = async {
        loop {
            // There are fewer slots than permits: the rest are for connections that have lost their slot and close at once.
            let Ok(permit) = Arc::clone(&open).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, from)) => {
                    let desk = desk.clone();
                    let (slot, dropped) = admission.admit(from.ip());
                    tokio::spawn(async move {
                        // Whoever takes longer is no longer waited for.
                        drop(timeout(CONNECTION_MAX, desk.attend(stream, from, slot, dropped)).await);
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "nobody can be let in");
                    sleep(PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = accepting => {}
        // Nobody is left who could say it: that is one way to say it.
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

impl<M> Desk<M>
where
    M: Fn() -> String + Clone + Send + Sync + 'static,
{
    async fn attend(self, stream: TcpStream, from: SocketAddr, slot: Slot, dropped: oneshot::Receiver<()>) {
        // It only makes it quicker.
        stream.set_nodelay(true).ok();
        let here = stream.local_addr().ok().map(|here| here.ip());
        let is_answered = AtomicBool::new(false);
        let answer = service_fn(|request: Request<Incoming>| {
            is_answered.store(true, Ordering::Relaxed);
            let answer = self.answer(&request, from.ip(), here);
            if answer.extensions().get::<ProvenPeer>().is_some() {
                slot.prove();
            }
            async move { Ok::<_, Infallible>(answer) }
        });
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_MAX)
            .keep_alive(false)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), answer);
        let served = tokio::select! {
            // A request that is here already is answered, even if the slot is gone.
            biased;
            served = &mut connection => served,
            Ok(()) = dropped => {
                if !is_answered.load(Ordering::Relaxed) {
                    // A client that does not take it at once does without.
                    connection.into_parts().io.into_inner().try_write(BUSY).ok();
                }
                return;
            }
        };
        if let Err(error) = served {
            tracing::debug!(%from, %error, "somebody has not asked properly");
        }
    }
}

#[cfg(test)]
mod tests;
