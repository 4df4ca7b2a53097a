//! Reads a body from a growing buffer: by its length, or chunk by chunk.
//!
//! Chunks are parsed strictly: no extensions, no trailers, CRLF only.

use forewarn_imds::{BODY_BYTES_MAX, RequestError};

use crate::request::Body;

/// Maximum number of hexadecimal digits in a chunk size.
const SIZE_DIGITS_MAX: usize = 8;

/// A body that is being received.
#[derive(Debug)]
pub(crate) struct Collector {
    taken: Vec<u8>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Remaining bytes of a body with a length.
    Rest(usize),
    Size,
    /// Remaining bytes of a chunk.
    Chunk(usize),
    /// CRLF after a chunk.
    ChunkEnd,
    /// CRLF after the last, empty chunk.
    LastEnd,
}

impl Collector {
    /// Starts a body.
    ///
    /// # Errors
    /// Fails if the announced length exceeds the limit.
    pub(crate) fn new(body: Body) -> Result<Self, RequestError> {
        let stage = match body {
            Body::Bytes(bytes) => {
                let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= BODY_BYTES_MAX);
                Stage::Rest(bytes.ok_or(RequestError::BodyTooLarge)?)
            }
            Body::Chunked => Stage::Size,
        };
        Ok(Self { taken: Vec::new(), stage })
    }

    /// Takes the bytes of the body from the start of the buffer. Returns the body once it is complete.
    ///
    /// # Errors
    /// Fails if the body exceeds the limit, or its chunks are malformed.
    pub(crate) fn take(&mut self, input: &mut Vec<u8>) -> Result<Option<Vec<u8>>, RequestError> {
        let mut at = 0;
        let outcome = loop {
            match self.step(&input[at..]) {
                Ok(Step::Used(bytes)) => at += bytes,
                Ok(Step::Done(bytes)) => {
                    at += bytes;
                    break Ok(Some(std::mem::take(&mut self.taken)));
                }
                Ok(Step::Waits) => break Ok(None),
                Err(problem) => break Err(problem),
            }
        };
        input.drain(..at);
        outcome
    }

    fn step(&mut self, input: &[u8]) -> Result<Step, RequestError> {
        match self.stage {
            Stage::Rest(left) => Ok(match self.copy(input, left) {
                (used, 0) => Step::Done(used),
                (0, _) => Step::Waits,
                (used, left) => self.goes_on(used, Stage::Rest(left)),
            }),
            Stage::Size => self.size(input),
            Stage::Chunk(left) => Ok(match self.copy(input, left) {
                (used, 0) => self.goes_on(used, Stage::ChunkEnd),
                (0, _) => Step::Waits,
                (used, left) => self.goes_on(used, Stage::Chunk(left)),
            }),
            Stage::ChunkEnd if line_ends(input)? => Ok(self.goes_on(2, Stage::Size)),
            Stage::LastEnd if line_ends(input)? => Ok(Step::Done(2)),
            Stage::ChunkEnd | Stage::LastEnd => Ok(Step::Waits),
        }
    }

    fn goes_on(&mut self, used: usize, stage: Stage) -> Step {
        self.stage = stage;
        Step::Used(used)
    }

    /// Copies the available bytes. Returns the number of bytes copied and the number still missing.
    fn copy(&mut self, input: &[u8], left: usize) -> (usize, usize) {
        let used = left.min(input.len());
        self.taken.extend_from_slice(&input[..used]);
        (used, left - used)
    }

    fn size(&mut self, input: &[u8]) -> Result<Step, RequestError> {
        let digits = input.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        if digits > SIZE_DIGITS_MAX || (digits == 0 && !input.is_empty()) {
            return Err(RequestError::Malformed);
        }
        if !line_ends(&input[digits..])? {
            return Ok(Step::Waits);
        }
        let text = str::from_utf8(&input[..digits]).map_err(|_| RequestError::Malformed)?;
        let size = usize::from_str_radix(text, 16).map_err(|_| RequestError::Malformed)?;
        if size > BODY_BYTES_MAX - self.taken.len() {
            return Err(RequestError::BodyTooLarge);
        }
        Ok(self.goes_on(digits + 2, if size == 0 { Stage::LastEnd } else { Stage::Chunk(size) }))
    }
}

enum Step {
    Used(usize),
    Done(usize),
    Waits,
}

/// Returns true at the end of a line, false if more bytes are needed to tell.
fn line_ends(input: &[u8]) -> Result<bool, RequestError> {
    match input {
        [b'\r', b'\n', ..] => Ok(true),
        [] | [b'\r'] => Ok(false),
        [..] => Err(RequestError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(body: Body, pieces: &[&[u8]]) -> (Result<Option<Vec<u8>>, RequestError>, Vec<u8>) {
        let mut collector = match Collector::new(body) {
            Ok(collector) => collector,
            Err(problem) => return (Err(problem), Vec::new()),
        };
        let mut input = Vec::new();
        let mut outcome = Ok(None);
        for piece in pieces {
            input.extend_from_slice(piece);
            if outcome == Ok(None) {
                outcome = collector.take(&mut input);
            }
        }
        (outcome, input)
    }

    const CHUNKS: &[u8] = b"3\r\nabc\r\n00A\r\n0123456789\r\n0\r\n\r\nGET";

    #[test]
    fn chunks_are_joined_at_every_split() {
        for size in 1..CHUNKS.len() {
            let pieces: Vec<_> = CHUNKS.chunks(size).collect();
            let (body, left) = collect(Body::Chunked, &pieces);
            assert_eq!(body, Ok(Some(b"abc0123456789".to_vec())));
            assert_eq!(left, b"GET");
        }
    }

    #[test]
    fn a_length_takes_that_much_and_leaves_the_rest() {
        assert_eq!(collect(Body::Bytes(3), &[b"a", b"bcd"]), (Ok(Some(b"abc".to_vec())), b"d".to_vec()));
        assert_eq!(collect(Body::NONE, &[b"x"]), (Ok(Some(Vec::new())), b"x".to_vec()));
        assert_eq!(collect(Body::Bytes(3), &[b"ab"]).0, Ok(None));
    }

    #[test]
    fn chunks_that_could_be_read_in_two_ways_are_refused() {
        let wrong: [&[u8]; 12] = [
            b"\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b"0x1\r\n",
            b" 1\r\n",
            b"1 \r\n",
            b"1;a=b\r\n",
            b"1\na\n",
            b"1\r\nab",
            b"000000001\r\n",
            b"0\r\nHost: x\r\n\r\n",
            b"g\r\n",
        ];
        for chunks in wrong {
            assert_eq!(collect(Body::Chunked, &[chunks]).0, Err(RequestError::Malformed), "{chunks:?}");
        }
    }

    #[test]
    fn bodies_of_both_forms_have_a_limit() {
        let max = u64::try_from(BODY_BYTES_MAX).expect("a small number");
        assert_eq!(collect(Body::Bytes(max), &[b"a"]).0, Ok(None));
        assert_eq!(collect(Body::Bytes(max + 1), &[]).0, Err(RequestError::BodyTooLarge));
        assert_eq!(collect(Body::Bytes(u64::MAX), &[]).0, Err(RequestError::BodyTooLarge));
        assert_eq!(collect(Body::Chunked, &[b"20000\r\na"]).0, Ok(None));
        assert_eq!(collect(Body::Chunked, &[b"20001\r\n"]).0, Err(RequestError::BodyTooLarge));
        assert_eq!(collect(Body::Chunked, &[b"1\r\na\r\n20000\r\n"]).0, Err(RequestError::BodyTooLarge));
    }
}
