//! The thread of streams: responses without an end, and the feed of audit entries. Its priority is low, so that many
//! streams do not delay commands if all cores are busy: entries then come later, in larger batches.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::long_work::lower_priority;

/// A runtime with one thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct StreamThread(Option<Runtime>);

impl StreamThread {
    pub(crate) fn start() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).max_blocking_threads(1).enable_all().thread_name("streams");
        builder.on_thread_start(lower_priority);
        builder.build().map(|runtime| Self(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> Handle {
        self.0.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }
}

impl Drop for StreamThread {
    fn drop(&mut self) {
        // A runtime must not wait for its thread inside another one.
        self.0.take().into_iter().for_each(Runtime::shutdown_background);
    }
}
