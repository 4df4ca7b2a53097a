//! Writes to a machine of a cluster, one after the other: they show for how long a cluster accepts none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use forewarn_control::ClusterId;
use forewarn_http_client::header::{CONTENT_TYPE, HOST};
use forewarn_http_client::{HeaderValue, Method, Request, exchange};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::RealmEvent;

/// The machine that is written to, in each cluster.
const MACHINE: &str = "probe";

/// Pause after a write, and after a failed attempt.
const PAUSE: Duration = Duration::from_millis(100);
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// Longest wait for a server: then the next one is asked.
const ATTEMPT_MAX: Duration = Duration::from_secs(1);

/// Longest wait for everything that is created at the start.
const CREATION_MAX: Duration = Duration::from_secs(30);

/// Bytes of a response.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// A writer of one cluster.
pub(super) struct ClusterWriter {
    pub(super) cluster: ClusterId,
    pub(super) name: String,
    /// Sockets of all servers.
    pub(super) sockets: Vec<PathBuf>,
}

impl ClusterWriter {
    /// Creates the cluster, unless it is the default one, with its machine. Servers that are starting are asked again.
    pub(super) async fn create(&self) -> Result<()> {
        if self.cluster == ClusterId::DEFAULT {
            return Ok(());
        }
        let (name, host) = (&self.name, format!("{}-h1", self.name));
        let commands = format!("/v1/commands?cluster={name}");
        for (path, body) in [
            ("/v1/clusters", json!({ "name": name })),
            (&commands, json!({ "command": "admit_host", "name": host })),
            (&commands, json!({ "command": "admit_vm", "name": MACHINE, "host": host })),
        ] {
            let created = async {
                // A repetition of an attempt without an answer says that it exists.
                while !matches!(self.send(path, &body).await, Ok(200..=299 | 409)) {
                    sleep(RETRY_PAUSE).await;
                }
            };
            let created = timeout(CREATION_MAX, created).await;
            created.with_context(|| format!("cannot create cluster {name}: no server has accepted it"))?;
        }
        Ok(())
    }

    /// Sends a request to one server after the other.
    async fn send(&self, path: &str, body: &Value) -> Result<u16> {
        let mut last = None;
        for socket in &self.sockets {
            match attempt(socket, path, body).await {
                Ok(503) => last = Some(Ok(503)),
                Ok(status) => return Ok(status),
                Err(error) => last = Some(Err(error)),
            }
        }
        last.unwrap_or_else(|| bail!("there is no server"))
    }

    /// Writes until the receiver is gone. Each write goes to the next server, and is repeated until it is acknowledged.
    pub(super) async fn write(self, events: mpsc::Sender<RealmEvent>) {
        let path = format!("/v1/commands?cluster={}", self.name);
        let mut sockets = self.sockets.iter().cycle();
        for number in 0_u64.. {
            let tags = json!({ "write": number.to_string() });
            let body = json!({ "command": "describe", "machine": MACHINE, "tags": tags });
            for socket in sockets.by_ref() {
                if matches!(attempt(socket, &path, &body).await, Ok(200..=299)) {
                    break;
                }
                sleep(RETRY_PAUSE).await;
            }
            if events.send(RealmEvent::Written(self.cluster)).await.is_err() {
                return;
            }
            sleep(PAUSE).await;
        }
    }
}

/// The status of the response of one server.
async fn attempt(socket: &Path, path: &str, body: &Value) -> Result<u16> {
    let exchanged = async {
        let stream = UnixStream::connect(socket).await?;
        let request = Request::new(Method::POST, path, body.to_string());
        let request = request.with(HOST, HeaderValue::from_static("localhost"));
        let request = request.with(CONTENT_TYPE, HeaderValue::from_static("application/json")).prepare()?;
        let response = exchange(stream, request).await?;
        let status = response.status();
        response.whole(RESPONSE_BYTES_MAX).await.map_err(|error| anyhow!("incomplete response: {error}"))?;
        Ok(status)
    };
    timeout(ATTEMPT_MAX, exchanged).await.context("no answer in time")?
}
