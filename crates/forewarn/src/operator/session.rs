//! One run of a command: the client of the server, and the output format of its responses.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context, Result};
use forewarn_control::{ClockView, ClusterView, Items};
use forewarn_http_client::Method;
use forewarn_types::Moment;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::names::{names, names_of_change};
use super::table::Width;
use super::visible::visible;
use super::{DataFormat, GlobalOptions, OutputFormat};
use crate::client::{ApiError, Client, StreamOutcome};

/// A client with the output format.
pub(super) struct Session {
    client: Client,
    output: OutputFormat,
    /// None for the first accessible cluster.
    cluster: Option<String>,
}

/// Paths that belong to the server, not to a cluster.
const OF_SERVER: [&str; 8] = [
    "/v1/backup",
    "/v1/clock",
    "/v1/clusters",
    "/v1/reset",
    "/v1/server",
    "/v1/state",
    "/v1/tokens",
    "/v1/webhooks",
];

impl Session {
    pub(super) fn new(options: &GlobalOptions) -> Result<Self> {
        Ok(Self { client: options.client()?, output: options.output(), cluster: options.cluster()? })
    }

    /// The cluster that `--cluster` names.
    pub(super) fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// The path with the cluster as a query parameter.
    fn of_cluster(&self, path: &str) -> String {
        let is_of_server = |of: &str| {
            let rest = path.strip_prefix(of);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        match &self.cluster {
            Some(cluster) if !OF_SERVER.into_iter().any(is_of_server) => {
                let more = if path.contains('?') { '&' } else { '?' };
                format!("{path}{more}cluster={}", escaped(cluster))
            }
            Some(_) | None => path.to_owned(),
        }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn output(&self) -> OutputFormat {
        self.output
    }

    pub(super) fn width(&self) -> Width {
        self.output.width()
    }

    pub(super) fn download(&self, path: &str, each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.client.download(&self.of_cluster(path), each)
    }

    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.client.get(&self.of_cluster(path))
    }

    /// Reads all pages of a list.
    pub(super) fn all<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>> {
        self.client.pages(&self.of_cluster(path))
    }

    /// Reads all pages of a list and prints them: as data, or as `text`.
    pub(super) fn list<T, F>(&self, path: &str, text: F) -> Result<()>
    where
        T: DeserializeOwned,
        F: FnOnce(Vec<T>) -> Result<String>,
    {
        let items: Vec<Value> = self.client.pages(&self.of_cluster(path))?;
        self.present(json!({ "items": items }), |all: Items<T>| text(all.items))
    }

    /// Reads a resource. None if it does not exist, or its name is ambiguous.
    pub(super) fn find<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        match self.get(path) {
            Ok(found) => Ok(Some(found)),
            Err(error) => match error.downcast_ref::<ApiError>() {
                Some(rejection) if (400..500).contains(&rejection.status) => Ok(None),
                Some(_) | None => Err(error),
            },
        }
    }

    /// The time of the server's clock.
    pub(super) fn now(&self) -> Result<Moment> {
        Ok(self.get::<ClockView>("/v1/clock")?.now)
    }

    /// Reads a resource and prints it: as data, or as `text`.
    pub(super) fn show<T, F>(&self, path: &str, text: F) -> Result<()>
    where
        T: DeserializeOwned,
        F: FnOnce(T) -> Result<String>,
    {
        self.present(self.get(path)?, text)
    }

    /// Sends a request and prints the response: as data, or as `text`.
    pub(super) fn send<B, T, F>(&self, path: &str, body: &B, text: F) -> Result<()>
    where
        B: Serialize,
        T: DeserializeOwned,
        F: FnOnce(T) -> Result<String>,
    {
        let response = self.post(path, body)?;
        let body = serde_json::to_value(body)?;
        self.present_named(response, |response| names_of_change(&body, response), text)
    }

    pub(super) fn post<B: Serialize>(&self, path: &str, body: &B) -> Result<Value> {
        self.client.post(&self.of_cluster(path), body)
    }

    pub(super) fn change<B: Serialize>(&self, method: Method, path: &str, body: Option<&B>) -> Result<Value> {
        self.client.change(method, &self.of_cluster(path), body)
    }

    pub(super) fn patch<B: Serialize>(&self, path: &str, body: &B) -> Result<Value> {
        self.change(Method::PATCH, path, Some(body))
    }

    pub(super) fn follow(&self, path: &str, each: impl FnMut(&str) -> ControlFlow<()>) -> Result<()> {
        self.client.follow(&self.of_cluster(path), each, |note| eprintln!("forewarn: {}", visible(note)))
    }

    /// Follows a stream after a position, and keeps the position up to date, until `each` stops it or the deadline.
    pub(super) fn follow_from(
        &self,
        path: &str,
        position: &mut String,
        deadline: Option<Instant>,
        each: impl FnMut(&str) -> ControlFlow<()>,
    ) -> Result<StreamOutcome> {
        let note = |note: &str| eprintln!("forewarn: {}", visible(note));
        self.client.follow_from(&self.of_cluster(path), position, deadline, each, note)
    }

    /// The session with the name of its cluster, where the options name none.
    pub(super) fn with_cluster_name(self) -> Result<Self> {
        if self.cluster.is_some() {
            return Ok(self);
        }
        let first: Items<ClusterView> = self.get("/v1/clusters?limit=1")?;
        let cluster = first.items.into_iter().next().map(|cluster| cluster.name);
        Ok(Self { cluster, ..self })
    }

    /// Prints a response: as data, or as `text`.
    pub(super) fn present<T, F>(&self, response: Value, text: F) -> Result<()>
    where
        T: DeserializeOwned,
        F: FnOnce(T) -> Result<String>,
    {
        self.present_named(response, names, text)
    }

    /// Prints a response in which `names` finds the names: as data, or as `text`.
    pub(super) fn present_named<T, F>(
        &self,
        response: Value,
        names: impl FnOnce(&Value) -> Vec<String>,
        text: F,
    ) -> Result<()>
    where
        T: DeserializeOwned,
        F: FnOnce(T) -> Result<String>,
    {
        match self.output {
            OutputFormat::Data(format) => print(&format.document(&response, names)),
            OutputFormat::Text(_) => print(&visible(&text(parse(response)?)?)),
        }
    }
}

pub(super) fn parse<T: DeserializeOwned>(response: Value) -> Result<T> {
    serde_json::from_value(response).context("invalid response of the server")
}

/// Prints a value as data, with the names that `names` finds in it.
pub(crate) fn print_data(
    format: DataFormat,
    value: &impl Serialize,
    names: impl FnOnce(&Value) -> Vec<String>,
) -> Result<()> {
    print(&format.document(&serde_json::to_value(value)?, names))
}

/// Writes to standard output. A reader that closes the pipe early is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Percent-encodes a path segment or a query value.
pub(super) fn escaped(text: &str) -> String {
    forewarn_url::percent::encode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_cluster_get_its_name() {
        let client = || Client::new("http://127.0.0.1:1").unwrap();
        let of = |cluster: Option<&str>| Session {
            client: client(),
            output: OutputFormat::Text(Width::USUAL),
            cluster: cluster.map(str::to_owned),
        };
        let west = of(Some("west"));
        assert_eq!(west.of_cluster("/v1/hosts"), "/v1/hosts?cluster=west");
        assert_eq!(west.of_cluster("/v1/events?tenant=a"), "/v1/events?tenant=a&cluster=west");
        for path in [
            "/v1/clock",
            "/v1/backup?after=1",
            "/v1/tokens/ci",
            "/v1/clusters?limit=1",
            "/v1/state",
            "/v1/webhooks/a/test",
        ] {
            assert_eq!(west.of_cluster(path), path);
        }
        assert_eq!(west.of_cluster("/v1/audit?kind=command"), "/v1/audit?kind=command&cluster=west");
        assert_eq!(west.of_cluster("/v1/audit/export"), "/v1/audit/export?cluster=west");
        assert_eq!(of(None).of_cluster("/v1/hosts"), "/v1/hosts");
    }

    #[test]
    fn names_cannot_leave_their_path_segment() {
        assert_eq!(escaped("web_0"), "web_0");
        assert_eq!(escaped("a b/../ü?"), "a%20b%2F..%2F%C3%BC%3F");
    }
}
