//! Instructions and allocations of a poll of the real server, as valgrind counts them.
//!
//! Time has no part in it, so a limit can be close. Instructions are counted only in the function that serves a
//! connection: the rest of the process does other things, too. Allocations are counted everywhere. Two runs that differ
//! in the number of polls give the cost of one.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::hostile::find_address;
use super::metadata::forewarn::ADDRESSES;
use super::metadata::server::Start;
use crate::steps::Outcome;

/// The function that serves the requests of a connection to the metadata endpoint.
const SERVING: &str =
    "--toggle-collect=forewarn_metadata::connection::Connection<C,S>::serve_requests::{{closure}}";
const COUNTS: &str = "counts";
const POLL: &[u8] = b"GET /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: localhost\r\n\
                      Metadata: true\r\n\r\n";
/// Polls of the first run, and of the second.
const FEW: u32 = 100;
const MANY: u32 = 600;
const STOP_TIME_MAX: Duration = Duration::from_secs(60);
const READ_TIME_MAX: Duration = Duration::from_secs(60);
/// Functions of the C library that allocate.
const ALLOCATORS: [&str; 5] = ["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];

/// Limit of one poll on a connection that has polled before, in the build of the tests, which is not optimized: a
/// fifth more than it has.
const INSTRUCTIONS_MAX: u64 = 16_500;
/// In hundredths. A poll allocates nothing; the rest of the process, whose calls are counted, too, does now and then.
const ALLOCATIONS_MAX: u64 = 10;

/// Counts of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PollCounts {
    instructions: u64,
    allocations: u64,
}

/// Counts the polls of a server, and compares them with their limits.
pub(crate) fn check(program: &Path) -> Result<Outcome> {
    let (few, many) = (count(program, FEW)?, count(program, MANY)?);
    let polls = u64::from(MANY - FEW);
    let instructions = many.instructions.saturating_sub(few.instructions) / polls;
    let allocations = many.allocations.saturating_sub(few.allocations) * 100 / polls;
    eprintln!(
        "a poll: {instructions} instructions (at most {INSTRUCTIONS_MAX}), {}.{:02} allocations",
        allocations / 100,
        allocations % 100
    );
    ensure!(instructions > 0, "the counted function was not found: {SERVING}");
    if instructions > INSTRUCTIONS_MAX || allocations > ALLOCATIONS_MAX {
        let why =
            format!("a poll has {instructions} instructions and {allocations} hundredths of an allocation");
        return Ok(Outcome::Failed(why));
    }
    Ok(Outcome::Passed)
}

/// Runs a server under valgrind, and polls it on one connection.
fn count(program: &Path, polls: u32) -> Result<PollCounts> {
    let counts = tempfile::tempdir().context("no temporary directory")?;
    let directory = tempfile::tempdir().context("no temporary directory")?;
    let file = counts.path().join(COUNTS);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", SERVING]).arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(program).args(["dev", "--metadata-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
    command.args(["--arm-listen", "off", "--metadata-threads", "1", "--seed", "7"]);
    command.arg("--addresses-file").arg(directory.path().join(ADDRESSES));
    let start = Start { name: "valgrind", command, stop: None, directory };
    let server = start.run(|directory| find_address(directory, "metadata"))?;
    poll(server.at(), polls)?;
    server.terminate(STOP_TIME_MAX)?;
    parse(&std::fs::read_to_string(file).context("valgrind has written no counts")?)
}

fn poll(at: SocketAddr, polls: u32) -> Result<()> {
    let stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(READ_TIME_MAX))?;
    stream.set_nodelay(true)?;
    let mut responses = BufReader::new(&stream);
    for _ in 0..polls {
        (&mut &stream).write_all(POLL)?;
        read_response(&mut responses)?;
    }
    Ok(())
}

fn read_response(responses: &mut impl BufRead) -> Result<()> {
    let (mut length, mut line) = (0, String::new());
    responses.read_line(&mut line)?;
    ensure!(line.starts_with("HTTP/1.1 200"), "not a document: {line}");
    while line != "\r\n" {
        line.clear();
        ensure!(responses.read_line(&mut line)? > 0, "closed within a response");
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
    }
    let mut body = responses.take(length);
    std::io::copy(&mut body, &mut std::io::sink())?;
    Ok(())
}

/// Reads a file of callgrind: the instructions in all, and the calls of functions that allocate.
///
/// A function has a number, and its name only where the number appears first: `cfn=(7) malloc`, later `cfn=(7)`. The
/// number of calls is in the next line that begins with `calls=`.
fn parse(text: &str) -> Result<PollCounts> {
    let (mut names, mut callee, mut allocations) = (BTreeMap::new(), None, 0);
    let mut instructions = None;
    for line in text.lines() {
        if let Some(total) = line.strip_prefix("totals: ") {
            instructions = Some(total.trim().parse()?);
        } else if let Some(function) = line.strip_prefix("fn=") {
            note_name(&mut names, function);
        } else if let Some(function) = line.strip_prefix("cfn=") {
            callee = Some(note_name(&mut names, function));
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let count: u64 = calls.split_ascii_whitespace().next().unwrap_or_default().parse()?;
            let name = callee.take().and_then(|number| names.get(number));
            allocations += name.filter(|name| ALLOCATORS.contains(name)).map_or(0, |_| count);
        }
    }
    Ok(PollCounts { instructions: instructions.context("no total")?, allocations })
}

/// The number of a function; its name is kept, if it is there.
fn note_name<'a>(names: &mut BTreeMap<&'a str, &'a str>, function: &'a str) -> &'a str {
    match function.split_once(' ') {
        Some((number, name)) => {
            names.insert(number, name);
            number
        }
        None => function,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_allocators_are_counted() {
        let text = "fn=(1) a\n5 10\ncfn=(2) malloc\ncalls=3 7\n5 90\ncfn=(3) free\ncalls=4 7\n5 9\nfn=(3)\n\
                    cfn=(2)\ncalls=2 1\n5 1\ntotals: 120\n";
        assert_eq!(parse(text).unwrap(), PollCounts { instructions: 120, allocations: 5 });
        assert!(parse("fn=(1) a\n").is_err());
    }

    #[test]
    fn a_response_is_read_to_its_end() {
        let mut two = &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 404 No\r\n\r\n"[..];
        read_response(&mut two).unwrap();
        assert!(read_response(&mut two).is_err_and(|error| error.to_string().contains("404")));
    }
}
