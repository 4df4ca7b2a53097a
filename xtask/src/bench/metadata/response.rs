//! One response of the endpoint.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The requested path, of both servers and of the program that polls.
pub(super) const PATH: &str = "/metadata/scheduledevents";
const QUERY: &str = "api-version=2020-07-01";
const TIMEOUT: Duration = Duration::from_secs(5);
const BYTES_MAX: u64 = 64 * 1_024;
/// Header fields that differ between servers.
const OWN_FIELDS: [&str; 4] = ["connection", "content-length", "date", "server"];

/// A response with status 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Response {
    fields: Vec<(String, String)>,
    body: String,
}

impl Response {
    pub(super) fn get(at: SocketAddr) -> Result<Self> {
        let mut stream = TcpStream::connect_timeout(&at, TIMEOUT).context("cannot connect")?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let request = format!(
            "GET {PATH}?{QUERY} HTTP/1.1\r\nHost: {at}\r\nMetadata: true\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.take(BYTES_MAX).read_to_string(&mut text).context("no response")?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let (head, body) = text.split_once("\r\n\r\n").context("incomplete response")?;
        let (status, fields) = head.split_once("\r\n").context("a response without fields")?;
        ensure!(status.starts_with("HTTP/1.1 200 "), "not a success: {status}");
        let fields = fields.split("\r\n").filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let response = Self { fields, body: body.to_owned() };
        let length = response.field("content-length").and_then(|value| value.parse().ok());
        ensure!(length == Some(body.len()), "a response of the wrong length: {}", body.len());
        Ok(response)
    }

    pub(super) fn body(&self) -> &str {
        &self.body
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        fields.next().map(|(_, value)| value.as_str())
    }

    /// The fields except those that differ between servers.
    pub(super) fn particular_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        fields.filter(|(name, _)| !OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)))
    }

    /// True for the same body and the same fields in any order, except the name of the server.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let names = |response: &Self| {
            let mut names: Vec<_> =
                response.fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
            names.sort();
            names
        };
        let mut particular = self.particular_fields();
        self.body == other.body
            && names(self) == names(other)
            && particular.all(|(name, value)| other.field(name) == Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "HTTP/1.1 200 OK\r\nServer: a\r\nETag: \"1\"\r\nContent-Length: 2\r\n\r\n{}";

    #[test]
    fn a_response_has_fields_and_a_body_of_its_length() {
        let response = Response::parse(TEXT).unwrap();
        assert_eq!((response.body(), response.field("etag")), ("{}", Some("\"1\"")));
        assert_eq!(response.particular_fields().collect::<Vec<_>>(), [("ETag", "\"1\"")]);
        for wrong in [&TEXT.replace("200", "404"), &TEXT.replace("{}", "{"), &TEXT.replace("\r\n\r\n", "")] {
            assert!(Response::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn responses_are_alike_whatever_the_name_of_the_server() {
        let response = Response::parse(TEXT).unwrap();
        let other = TEXT.replace("Server: a\r\nETag: \"1\"", "ETag: \"1\"\r\nServer: nginx");
        assert!(response.is_like(&Response::parse(&other).unwrap()));
        for different in
            [TEXT.replace("\"1\"", "\"2\""), TEXT.replace("{}", "[]"), TEXT.replace("Server", "Via")]
        {
            assert!(!response.is_like(&Response::parse(&different).unwrap()), "{different}");
        }
    }
}
