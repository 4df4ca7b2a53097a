//! Worker threads, one per core: each has its own sockets and connections, and shares only published documents.
//!
//! A connection stays on the thread that accepted it. Nothing moves between threads, so a poll wakes only the thread
//! that serves it.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::control_plane::ControlPlane;
use crate::endpoint::Endpoint;
use crate::listener::Listener;

/// Stack size of a thread. Connections live on the heap; rendering a document needs the deepest stack.
const STACK_BYTES: usize = 512 * 1024;

/// Threads that serve machines until they are stopped.
#[derive(Debug)]
pub struct Threads {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts the threads. Each gets one listener of every address, or none if the address has fewer.
    ///
    /// # Errors
    /// Fails if the operating system provides no more threads or file descriptors.
    pub fn start<C: ControlPlane>(
        endpoint: &Arc<Endpoint<C>>,
        count: NonZeroUsize,
        listeners_by_address: Vec<Vec<Listener>>,
    ) -> io::Result<Self> {
        let mut shares: Vec<Vec<Listener>> = (0..count.get()).map(|_| Vec::new()).collect();
        for (address, listeners) in listeners_by_address.into_iter().enumerate() {
            for (place, listener) in listeners.into_iter().enumerate() {
                // Addresses with one listener are spread over the threads.
                shares[(address + place) % count].push(listener);
            }
        }
        let (stop, _) = watch::channel(false);
        let mut threads = Self { stop, threads: Vec::with_capacity(count.get()) };
        for (number, listeners) in shares.into_iter().enumerate() {
            threads.spawn(number, Arc::clone(endpoint), listeners)?;
        }
        Ok(threads)
    }

    fn spawn<C: ControlPlane>(
        &mut self,
        number: usize,
        endpoint: Arc<Endpoint<C>>,
        listeners: Vec<Listener>,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = self.stop.subscribe();
        let thread = std::thread::Builder::new().name(format!("metadata-{number}")).stack_size(STACK_BYTES);
        self.threads.push(thread.spawn(move || runtime.block_on(serve(endpoint, listeners, stop)))?);
        Ok(())
    }

    /// Stops accepting connections, finishes requests in progress, and returns when all threads have ended: after about
    /// two seconds at most. Blocks; in a task, call it through `spawn_blocking`.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("metadata endpoint thread panicked");
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve<C: ControlPlane>(
    endpoint: Arc<Endpoint<C>>,
    listeners: Vec<Listener>,
    stop: watch::Receiver<bool>,
) {
    let mut serving = JoinSet::new();
    for listener in listeners {
        let mut stop = stop.clone();
        let endpoint = Arc::clone(&endpoint);
        serving.spawn(async move {
            // An error means that the sender is gone: stop as well.
            let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
            if let Err(error) = endpoint.serve(listener, stopped).await {
                tracing::error!(%error, "cannot watch listener");
            }
        });
    }
    serving.join_all().await;
}
