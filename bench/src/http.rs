//! Requests of the operator API, and their responses.

use std::io::{Read, Write};

use crate::LoadResult;

const READ_BYTES: usize = 64 * 1_024;

/// A connection with one request at a time, which waits for the response.
pub struct Connection<S> {
    stream: S,
    token: String,
}

/// The bytes of a response that have arrived.
#[derive(Debug, Default)]
pub struct Incoming(Vec<u8>);

impl<S: Read + Write> Connection<S> {
    /// Without a token, if it is empty.
    pub fn new(stream: S, token: &str) -> Self {
        Self { stream, token: token.to_owned() }
    }

    /// The body of a successful response to a POST.
    pub fn post(&mut self, target: &str, body: &str) -> LoadResult<String> {
        self.send("POST", target, body)
    }

    /// The body of a successful response.
    pub fn send(&mut self, method: &str, target: &str, body: &str) -> LoadResult<String> {
        self.exchange(&request(method, target, &self.token, body))
    }

    /// The body of a successful response to these bytes.
    pub fn exchange(&mut self, request: &[u8]) -> LoadResult<String> {
        self.stream.write_all(request)?;
        let (mut incoming, mut buffer) = (Incoming::default(), vec![0; READ_BYTES]);
        loop {
            let count = self.stream.read(&mut buffer)?;
            incoming.add(&buffer[..count])?;
            if let Some(body) = incoming.take_body()? {
                return Ok(body);
            }
        }
    }

    pub fn into_stream(self) -> S {
        self.stream
    }
}

/// A request with a JSON body.
pub fn request(method: &str, target: &str, token: &str, body: &str) -> Vec<u8> {
    let authorization =
        if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
    format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: forewarn-bench\r\nAccept: */*\r\n\
         {authorization}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

impl Incoming {
    /// Adds what was read; nothing means that the server has closed the connection.
    pub fn add(&mut self, piece: &[u8]) -> LoadResult<()> {
        self.0.extend_from_slice(piece);
        if piece.is_empty() {
            return Err(format!("closed after: {:?}", String::from_utf8_lossy(&self.0)).into());
        }
        Ok(())
    }

    /// Takes the body, once all of it is there; an error, if the response is none of success.
    pub fn take_body(&mut self) -> LoadResult<Option<String>> {
        let Some(end) = self.0.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let head = std::str::from_utf8(&self.0[..end])?;
        let mut fields = head.lines().filter_map(|line| line.split_once(':'));
        let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|(_, value)| value.trim().parse::<usize>().ok());
        // The status that never has a body needs no length.
        let length = length.or(head.starts_with("HTTP/1.1 204").then_some(0));
        let length = length.ok_or_else(|| format!("a response without a length: {head}"))?;
        let start = end + 4;
        if self.0.len() < start + length {
            return Ok(None);
        }
        if !head.starts_with("HTTP/1.1 2") {
            return Err(format!("not a success: {}", String::from_utf8_lossy(&self.0)).into());
        }
        let body = std::str::from_utf8(&self.0[start..start + length])?.to_owned();
        self.0.clear();
        Ok(Some(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_taken_when_it_is_whole() {
        let response = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        let mut incoming = Incoming::default();
        for byte in &response[..response.len() - 1] {
            incoming.add(&[*byte]).unwrap();
            assert_eq!(incoming.take_body().unwrap(), None);
        }
        incoming.add(b"c").unwrap();
        assert_eq!(incoming.take_body().unwrap().as_deref(), Some("abc"));
        assert!(incoming.add(b"").is_err());
    }

    #[test]
    fn an_error_has_its_response() {
        let mut incoming = Incoming::default();
        incoming.add(b"HTTP/1.1 409 Conflict\r\nContent-Length: 4\r\n\r\nheld").unwrap();
        let problem = incoming.take_body().unwrap_err().to_string();
        assert!(problem.contains("409") && problem.ends_with("held"), "{problem}");
        let mut incoming = Incoming::default();
        incoming.add(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        assert!(incoming.take_body().unwrap_err().to_string().contains("length"));
    }

    #[test]
    fn a_token_is_sent_if_there_is_one() {
        let text = |token| String::from_utf8(request("POST", "/x", token, "{}")).unwrap();
        assert!(text("t").contains("\r\nAuthorization: Bearer t\r\n"));
        assert!(!text("").contains("Authorization") && text("").ends_with("\r\nContent-Length: 2\r\n\r\n{}"));
    }
}
