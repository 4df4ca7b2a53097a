//! Two answers, read with care, which all others must be like.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::arguments::Mode;

const ANSWER_BYTES_MAX: usize = 64 * 1_024;
const PATIENCE: Duration = Duration::from_secs(5);
const SUCCESS: &[u8] = b"HTTP/1.1 200 ";

/// What a right answer looks like.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    head_bytes: usize,
    body: Vec<u8>,
}

/// A server says whether it closes, so its last answer on a connection differs from the ones before.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) kept: Sample,
    pub(crate) closed: Sample,
}

impl Samples {
    pub(crate) fn of(&self, mode: Mode) -> &Sample {
        match mode {
            Mode::KeepAlive => &self.kept,
            Mode::PerRequest => &self.closed,
        }
    }

    /// Whether a whole answer has the right body; heads differ by their date.
    pub(crate) fn has_body_of(&self, answer: &[u8]) -> bool {
        self.kept.has_body_of(answer) || self.closed.has_body_of(answer)
    }
}

/// Whether an answer begins like a success.
pub(crate) fn is_success(answer: &[u8]) -> bool {
    answer.starts_with(SUCCESS)
}

impl Sample {
    /// Asks once, and waits.
    pub(crate) fn take(at: SocketAddr, request: &[u8]) -> Result<Self, Box<dyn Error>> {
        let mut stream = TcpStream::connect_timeout(&at, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request)?;
        let (mut answer, mut piece) = (Vec::new(), [0; 4_096]);
        loop {
            let count = stream.read(&mut piece)?;
            answer.extend_from_slice(&piece[..count]);
            if let Some(sample) = Self::parse(&answer)? {
                return Ok(sample);
            }
            if count == 0 || answer.len() > ANSWER_BYTES_MAX {
                return Err("the answer has no end".into());
            }
        }
    }

    /// Nothing, while bytes are missing.
    fn parse(answer: &[u8]) -> Result<Option<Self>, String> {
        let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
        let (head, body) = answer.split_at(end + 4);
        let text = String::from_utf8_lossy(head);
        if !is_success(head) {
            return Err(format!("not a success: {}", text.lines().next().unwrap_or_default()));
        }
        let mut fields = text.lines().filter_map(|line| line.split_once(':'));
        let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|(_, value)| value.trim().parse::<usize>().ok());
        let length = length.ok_or("an answer without a length")?;
        if body.len() < length {
            return Ok(None);
        }
        Ok(Some(Self { head_bytes: head.len(), body: body[..length].to_vec() }))
    }

    /// The length of a whole answer.
    pub(crate) fn bytes(&self) -> usize {
        self.head_bytes + self.body.len()
    }

    fn has_body_of(&self, answer: &[u8]) -> bool {
        answer.get(self.head_bytes..) == Some(&self.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_body_is() {
        let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc";
        let sample = Sample::parse(whole).unwrap().unwrap();
        assert_eq!((sample.bytes(), sample.body.as_slice()), (whole.len(), &b"abc"[..]));
        assert!(is_success(whole) && sample.has_body_of(whole));
        assert!(!sample.has_body_of(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabd"));
        for count in 0..whole.len() {
            assert_eq!(Sample::parse(&whole[..count]), Ok(None));
        }
    }

    #[test]
    fn what_is_no_success_or_has_no_length_is_refused() {
        assert!(Sample::parse(b"HTTP/1.1 404 Not Found\r\n\r\n").unwrap_err().contains("404"));
        assert!(Sample::parse(b"HTTP/1.1 200 OK\r\n\r\n").unwrap_err().contains("length"));
    }
}
