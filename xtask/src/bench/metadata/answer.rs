//! One answer of the endpoint, read with patience.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// What is asked, of both servers and by the program that polls.
pub(super) const PATH: &str = "/metadata/scheduledevents";
const QUERY: &str = "api-version=2020-07-01";
const PATIENCE: Duration = Duration::from_secs(5);
const BYTES_MAX: u64 = 64 * 1_024;
/// What each server writes by itself.
const OWN_FIELDS: [&str; 4] = ["connection", "content-length", "date", "server"];

/// A success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    fields: Vec<(String, String)>,
    body: String,
}

impl Answer {
    pub(super) fn get(at: SocketAddr) -> Result<Self> {
        let mut stream = TcpStream::connect_timeout(&at, PATIENCE).context("cannot connect")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let request = format!(
            "GET {PATH}?{QUERY} HTTP/1.1\r\nHost: {at}\r\nMetadata: true\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes())?;
        let mut text = String::new();
        stream.take(BYTES_MAX).read_to_string(&mut text).context("no answer")?;
        Self::parse(&text)
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        let (head, body) = text.split_once("\r\n\r\n").context("not a whole answer")?;
        let (status, fields) = head.split_once("\r\n").context("an answer without fields")?;
        ensure!(status.starts_with("HTTP/1.1 200 "), "not a success: {status}");
        let fields = fields.split("\r\n").filter_map(|line| line.split_once(": "));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let answer = Self { fields, body: body.to_owned() };
        let length = answer.field("content-length").and_then(|value| value.parse().ok());
        ensure!(length == Some(body.len()), "an answer of the wrong length: {}", body.len());
        Ok(answer)
    }

    pub(super) fn body(&self) -> &str {
        &self.body
    }

    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case(name));
        fields.next().map(|(_, value)| value.as_str())
    }

    /// The fields that are not written by every server anyway.
    pub(super) fn particular_fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        fields.filter(|(name, _)| !OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name)))
    }

    /// Whether it is the same body with the same fields, in whatever order; each server has a name of its own.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let names = |answer: &Self| {
            let mut names: Vec<_> = answer.fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
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
    fn an_answer_has_fields_and_a_body_of_its_length() {
        let answer = Answer::parse(TEXT).unwrap();
        assert_eq!((answer.body(), answer.field("etag")), ("{}", Some("\"1\"")));
        assert_eq!(answer.particular_fields().collect::<Vec<_>>(), [("ETag", "\"1\"")]);
        for wrong in [&TEXT.replace("200", "404"), &TEXT.replace("{}", "{"), &TEXT.replace("\r\n\r\n", "")] {
            assert!(Answer::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answers_are_alike_whatever_the_name_of_the_server() {
        let answer = Answer::parse(TEXT).unwrap();
        let other = TEXT.replace("Server: a\r\nETag: \"1\"", "ETag: \"1\"\r\nServer: nginx");
        assert!(answer.is_like(&Answer::parse(&other).unwrap()));
        for different in
            [TEXT.replace("\"1\"", "\"2\""), TEXT.replace("{}", "[]"), TEXT.replace("Server", "Via")]
        {
            assert!(!answer.is_like(&Answer::parse(&different).unwrap()), "{different}");
        }
    }
}
