//! One run of a command: the server it asks, and the form in which it shows the answers.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::{Context, Result};
use forewarn_control::{ClockView, Items};
use forewarn_http_client::Method;
use forewarn_types::Moment;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::table::Width;
use super::visible::{json, visible};
use super::{Options, Output};
use crate::client::{Client, Refused};

/// A server, and the form in which its answers are shown.
pub(super) struct Session {
    client: Client,
    output: Output,
    /// The cluster that is meant, if it was said.
    cluster: Option<String>,
}

/// What does not belong to a cluster.
const OF_SERVER: [&str; 7] = [
    "/v1/audit/export",
    "/v1/backup",
    "/v1/clock",
    "/v1/clusters",
    "/v1/server",
    "/v1/tokens",
    "/v1/webhooks",
];

impl Session {
    pub(super) fn new(options: &Options) -> Result<Self> {
        Ok(Self { client: options.client()?, output: options.output, cluster: options.cluster() })
    }

    /// The same path, of the cluster that is meant.
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

    /// The server that is asked.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    pub(super) fn output(&self) -> Output {
        self.output
    }

    /// How many columns tables have.
    pub(super) fn width(&self) -> Width {
        match self.output {
            Output::Wide => Width::Wide,
            Output::Table | Output::Json => Width::Usual,
        }
    }

    pub(super) fn download(&self, path: &str, each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.client.download(&self.of_cluster(path), each)
    }

    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.client.get(&self.of_cluster(path))
    }

    /// Reads a list to its end.
    pub(super) fn all<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>> {
        self.client.pages(&self.of_cluster(path))
    }

    /// Reads a list to its end and shows it: as it is, or by `text`.
    pub(super) fn list<T, F>(&self, path: &str, text: F) -> Result<()>
    where
        T: DeserializeOwned,
        F: FnOnce(Vec<T>) -> Result<String>,
    {
        let items: Vec<Value> = self.client.pages(&self.of_cluster(path))?;
        self.present(json!({ "items": items }), |all: Items<T>| text(all.items))
    }

    /// Reads something that may not be there, or not be the only one of its name.
    pub(super) fn look<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>> {
        match self.get(path) {
            Ok(found) => Ok(Some(found)),
            Err(problem) => match problem.downcast_ref::<Refused>() {
                Some(refused) if (400..500).contains(&refused.status) => Ok(None),
                Some(_) | None => Err(problem),
            },
        }
    }

    /// What the clock of the server shows.
    pub(super) fn now(&self) -> Result<Moment> {
        Ok(self.get::<ClockView>("/v1/clock")?.now)
    }

    /// Reads something and shows it: as it is, or by `text`.
    pub(super) fn show<T, F>(&self, path: &str, text: F) -> Result<()>
    where
        T: DeserializeOwned,
        F: FnOnce(T) -> Result<String>,
    {
        self.present(self.get(path)?, text)
    }

    /// Asks for something and shows the answer: as it is, or by `text`.
    pub(super) fn ask<B, T, F>(&self, path: &str, body: &B, text: F) -> Result<()>
    where
        B: Serialize,
        T: DeserializeOwned,
        F: FnOnce(T) -> Result<String>,
    {
        self.present(self.post(path, body)?, text)
    }

    pub(super) fn post<B: Serialize>(&self, path: &str, body: &B) -> Result<Value> {
        self.client.post(&self.of_cluster(path), body)
    }

    /// Has something changed that is at a path.
    pub(super) fn change<B: Serialize>(&self, method: Method, path: &str, body: Option<&B>) -> Result<Value> {
        self.client.change(method, &self.of_cluster(path), body)
    }

    pub(super) fn patch<B: Serialize>(&self, path: &str, body: &B) -> Result<Value> {
        self.change(Method::PATCH, path, Some(body))
    }

    pub(super) fn follow(&self, path: &str, each: impl FnMut(&str) -> ControlFlow<()>) -> Result<()> {
        self.client.follow(&self.of_cluster(path), each, |note| eprintln!("forewarn: {}", visible(note)))
    }

    /// Shows an answer: as it is, or by `text`.
    pub(super) fn present<T, F>(&self, answer: Value, text: F) -> Result<()>
    where
        T: DeserializeOwned,
        F: FnOnce(T) -> Result<String>,
    {
        match self.output {
            Output::Json => print(&json(&format!("{answer:#}\n"))),
            Output::Table | Output::Wide => print(&visible(&text(understand(answer)?)?)),
        }
    }
}

/// What an answer means.
pub(super) fn understand<T: DeserializeOwned>(answer: Value) -> Result<T> {
    serde_json::from_value(answer).context("the answer of the server is not understood")
}

/// Writes to standard output. A reader who has seen enough and closes the pipe is no failure.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(broken) if broken.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// A text as one part of a path, or as a value in a query.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_a_cluster_is_asked_of_the_one_that_is_meant() {
        let client = || Client::new("http://127.0.0.1:1").unwrap();
        let of = |cluster: Option<&str>| Session {
            client: client(),
            output: Output::Table,
            cluster: cluster.map(str::to_owned),
        };
        let west = of(Some("west"));
        assert_eq!(west.of_cluster("/v1/hosts"), "/v1/hosts?cluster=west");
        assert_eq!(west.of_cluster("/v1/events?tenant=a"), "/v1/events?tenant=a&cluster=west");
        for path in [
            "/v1/clock",
            "/v1/audit/export?after=1",
            "/v1/tokens/ci",
            "/v1/clusters?limit=1",
            "/v1/webhooks/a/test",
        ] {
            assert_eq!(west.of_cluster(path), path);
        }
        assert_eq!(west.of_cluster("/v1/audit?kind=command"), "/v1/audit?kind=command&cluster=west");
        assert_eq!(of(None).of_cluster("/v1/hosts"), "/v1/hosts");
    }

    #[test]
    fn names_cannot_leave_their_place_in_a_path() {
        assert_eq!(escaped("web_0"), "web_0");
        assert_eq!(escaped("a b/../ü?"), "a%20b%2F..%2F%C3%BC%3F");
    }
}
