//! Requests: whatever comes, the answers are whole, few, no fault of ours, and the same however the bytes arrive.

use std::cell::OnceCell;

use forewarn_metadata::fuzzing::Script;

use crate::answers::{self, Answer};
use crate::endpoint::MemoryEndpoint;

/// Every status that the endpoint may answer to one machine with a healthy server behind it.
const STATUSES: [u16; 9] = [200, 304, 400, 403, 404, 405, 413, 414, 431];

/// Requests of one connection.
const ANSWERS_MAX: usize = 1_000;

/// Bytes of a whole input that is also sent byte by byte.
const BYTEWISE_BYTES_MAX: usize = 4 * 1024;

/// Bytes of a piece otherwise.
const PIECE_BYTES: usize = 1_021;

thread_local! {
    static ENDPOINT: OnceCell<MemoryEndpoint> = const { OnceCell::new() };
}

pub(crate) fn examine(bytes: &[u8]) -> String {
    let whole = answers(vec![bytes.to_vec()]);
    check(&whole, bytes);
    let size = if bytes.len() <= BYTEWISE_BYTES_MAX { 1 } else { PIECE_BYTES };
    let pieces = answers(bytes.chunks(size).map(<[u8]>::to_vec).collect());
    // Which of two limits is reached first may depend on how much came at once; that one is reached may not.
    let outcome = |answers: &[Answer]| answers.iter().map(|answer| kind(answer.status)).collect::<Vec<_>>();
    assert_eq!(outcome(&whole), outcome(&pieces), "the same bytes in pieces have other answers");
    let statuses: Vec<_> = whole.iter().map(|answer| answer.status.to_string()).collect();
    let ends = whole.last().is_some_and(|answer| answer.closes);
    format!("{}{}", statuses.join(" "), if ends { " closed" } else { "" })
}

fn answers(pieces: Vec<Vec<u8>>) -> Vec<Answer> {
    let bytes =
        ENDPOINT.with(|endpoint| endpoint.get_or_init(MemoryEndpoint::new).answer(Script::new(pieces)));
    answers::read(&bytes).unwrap_or_else(|wrong| unreadable(&wrong, &bytes))
}

#[expect(clippy::panic, reason = "that is how an examination says that something does not hold")]
fn unreadable(wrong: &str, bytes: &[u8]) -> Vec<Answer> {
    panic!("{wrong} in {:?}", String::from_utf8_lossy(bytes))
}

fn check(answers: &[Answer], sent: &[u8]) {
    assert!(answers.len() <= ANSWERS_MAX, "more answers than one connection may have: {}", answers.len());
    let heads = sent.windows(2).filter(|two| *two == b"\r\n").count();
    assert!(answers.len() <= heads + 1, "more answers than lines");
    for (number, answer) in answers.iter().enumerate() {
        assert!(STATUSES.contains(&answer.status), "a status that there is not: {}", answer.status);
        assert!(!answer.closes || number + 1 == answers.len(), "an answer after the last one");
    }
}

/// 400, 414 and 431 are all refusals of a head. What one of two requests does may change what the other is told.
fn kind(status: u16) -> u16 {
    match status {
        304 => 200,
        414 | 431 => 400,
        other => other,
    }
}
