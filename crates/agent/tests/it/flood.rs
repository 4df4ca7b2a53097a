//! Strangers that open connections and never finish a request.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use forewarn_testkit::wait_until;

/// Pause of one stranger before it connects again: the strangers share two processors with the agents under test.
const AGAIN: Duration = Duration::from_millis(50);

/// Connections that are opened again as soon as the agent closes them. They end when this is dropped.
pub(crate) struct Flood {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Flood {
    /// Opens that many connections from each of the addresses, and waits until each was opened once.
    pub(crate) fn start(target: SocketAddr, sources: &[Ipv4Addr], from_each: usize) -> Self {
        let (stop, stopped) = watch::channel(false);
        let opened = Arc::new(AtomicUsize::new(0));
        let (count, sources) = (Arc::clone(&opened), sources.to_vec());
        let wanted = sources.len() * from_each;
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                for source in sources {
                    for _ in 0..from_each {
                        tokio::spawn(keep_open(target, source, Arc::clone(&count)));
                    }
                }
                let mut stopped = stopped;
                stopped.wait_for(|stop| *stop).await.ok();
            });
        });
        wait_until("strangers have connected", || (opened.load(Ordering::Relaxed) >= wanted).then_some(()));
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

async fn keep_open(target: SocketAddr, source: Ipv4Addr, opened: Arc<AtomicUsize>) {
    let mut attempts = tokio::time::interval(AGAIN);
    attempts.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        attempts.tick().await;
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((source, 0).into()).unwrap();
        if let Ok(mut stream) = socket.connect(target).await
            && stream.write_all(b"GET /peers/v1/status HTTP/1.1\r\nHost: h\r\nX: ").await.is_ok()
        {
            opened.fetch_add(1, Ordering::Relaxed);
            // Until the agent closes it.
            stream.read_to_end(&mut Vec::new()).await.ok();
        }
    }
}
