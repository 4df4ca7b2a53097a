//! One thread per core: each has its own sockets and its own connections, and shares only what is published.
//!
//! A connection is answered by the thread that took it, from its first byte to its last. Nothing is handed from one
//! thread to another, so a poll wakes nobody but the thread that answers it.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::control_plane::ControlPlane;
use crate::front::Front;
use crate::listener::Listener;

/// Bytes of a thread's stack. Connections live on the heap; the deepest a thread goes is to render a document.
const STACK_BYTES: usize = 512 * 1024;

/// Threads that answer machines, until they are stopped.
#[derive(Debug)]
pub struct Threads {
    stop: watch::Sender<bool>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts so many threads. Each takes one listener of every door, or fewer, if the door has fewer.
    ///
    /// # Errors
    /// When the operating system gives no more threads, or no more file descriptors.
    pub fn start<C: ControlPlane>(
        front: &Arc<Front<C>>,
        count: NonZeroUsize,
        doors: Vec<Vec<Listener>>,
    ) -> io::Result<Self> {
        let mut shares: Vec<Vec<Listener>> = (0..count.get()).map(|_| Vec::new()).collect();
        for (door, listeners) in doors.into_iter().enumerate() {
            for (place, listener) in listeners.into_iter().enumerate() {
                // Doors with one listener go round, so that not all of them are the first thread's.
                shares[(door + place) % count].push(listener);
            }
        }
        let (stop, _) = watch::channel(false);
        let mut threads = Self { stop, threads: Vec::with_capacity(count.get()) };
        for (number, listeners) in shares.into_iter().enumerate() {
            threads.spawn(number, Arc::clone(front), listeners)?;
        }
        Ok(threads)
    }

    fn spawn<C: ControlPlane>(
        &mut self,
        number: usize,
        front: Arc<Front<C>>,
        listeners: Vec<Listener>,
    ) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = self.stop.subscribe();
        let thread = std::thread::Builder::new().name(format!("metadata-{number}")).stack_size(STACK_BYTES);
        self.threads.push(thread.spawn(move || runtime.block_on(serve(front, listeners, stop)))?);
        Ok(())
    }

    /// Takes no more connections, lets the requests that are under way be answered, and returns when all threads have
    /// ended: after about two seconds at most. It blocks; in a task, call it through `spawn_blocking`.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the metadata endpoint had panicked");
            }
        }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.end();
    }
}

async fn serve<C: ControlPlane>(front: Arc<Front<C>>, listeners: Vec<Listener>, stop: watch::Receiver<bool>) {
    let mut serving = JoinSet::new();
    for listener in listeners {
        let mut stop = stop.clone();
        let front = Arc::clone(&front);
        serving.spawn(async move {
            // It is an error if nobody is left who could say so: then it is time to stop, too.
            let stopped = async { drop(stop.wait_for(|stop| *stop).await) };
            if let Err(error) = front.serve(listener, stopped).await {
                tracing::error!(%error, "a listener could not be watched");
            }
        });
    }
    serving.join_all().await;
}
