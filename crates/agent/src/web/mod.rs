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

mod answers;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::board::Shown;
use crate::peers::Key;

/// Connections at a time.
const CONNECTIONS_MAX: usize = 128;

/// How long a head may take, and a whole connection.
const HEAD_MAX: Duration = Duration::from_secs(5);
const CONNECTION_MAX: Duration = Duration::from_secs(10);

/// Bytes of a head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// How long to wait when nobody can be let in: the system is out of something.
const PAUSE: Duration = Duration::from_millis(100);

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
    mut stop: watch::Receiver<bool>,
) where
    M: Fn() -> String + Clone + Send + Sync + 'static,
{
    let desk = Desk { board, metrics, key };
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let accepting = async {
        loop {
            // Never closed; whoever comes now waits until a seat is free.
            let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, from)) => {
                    let desk = desk.clone();
                    tokio::spawn(async move {
                        // Whoever takes longer is no longer waited for.
                        drop(timeout(CONNECTION_MAX, desk.attend(stream, from)).await);
                        drop(seat);
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
    async fn attend(self, stream: TcpStream, from: SocketAddr) {
        // It only makes it quicker.
        stream.set_nodelay(true).ok();
        let here = stream.local_addr().ok().map(|here| here.ip());
        let answer = service_fn(move |request| {
            let answer = self.answer(&request, from.ip(), here);
            async { Ok::<_, Infallible>(answer) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_MAX)
            .keep_alive(false)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), answer)
            .await;
        if let Err(error) = served {
            tracing::debug!(%from, %error, "somebody has not asked properly");
        }
    }
}

#[cfg(test)]
mod tests;
