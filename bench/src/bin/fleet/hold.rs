//! Connections that are held until standard input ends: streams of audit entries, idle connections of the operator
//! API, or long polls.
//!
//! Prints a line when all of them are open. Long polls are preceded by a first poll of each machine: after that the
//! program prints a line, and waits for one.

use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use forewarn_bench::LoadResult;
use forewarn_bench::blocks::{MACHINES_PER_BLOCK, SINGLE};
use forewarn_bench::http::request;
use forewarn_bench::load::PATIENCE;
use mio::{Events, Interest, Poll, Token};

use crate::arguments::{Arguments, HeldKind};
use crate::{connect, machine};

/// Threads that poll first.
const ENROLLERS: u32 = 32;
const EVENTS_AT_ONCE: usize = 1_024;
const READ_BYTES: usize = 64 * 1_024;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
const WAITING: &str = "forewarn_metadata_waiting_requests ";

/// Holds the connections to the end of standard input.
pub(crate) fn hold(arguments: &Arguments) -> LoadResult<String> {
    let held = match arguments.kind {
        HeldKind::Watch => (0..arguments.count).map(|_| watch(arguments)).collect::<LoadResult<Vec<_>>>()?,
        HeldKind::Idle => (0..arguments.count).map(|_| idle(arguments)).collect::<LoadResult<Vec<_>>>()?,
        HeldKind::Poll => long_polls(arguments)?,
    };
    println!("{{\"held\":{}}}", held.len());
    // The end of standard input ends the program, whatever the connections do.
    std::thread::spawn(|| {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).ok();
        std::process::exit(0);
    });
    read_on(held)
}

fn watch(arguments: &Arguments) -> LoadResult<TcpStream> {
    let mut stream = connect(arguments, "")?.into_stream();
    stream.write_all(&request("GET", "/v1/watch", &arguments.token, ""))?;
    let mut seen = Vec::new();
    while !seen.windows(9).any(|nine| nine == b"listening") {
        let mut piece = [0; 512];
        let count = stream.read(&mut piece)?;
        seen.extend_from_slice(&piece[..count]);
        if count == 0 {
            return Err(format!("no stream: {}", String::from_utf8_lossy(&seen)).into());
        }
    }
    Ok(stream)
}

fn idle(arguments: &Arguments) -> LoadResult<TcpStream> {
    let mut connection = connect(arguments, &arguments.token)?;
    connection.send("GET", "/v1/server", "")?;
    Ok(connection.into_stream())
}

/// Long polls, spread evenly over the single machines.
fn long_polls(arguments: &Arguments) -> LoadResult<Vec<TcpStream>> {
    let machines = (arguments.machines / MACHINES_PER_BLOCK * SINGLE).min(arguments.count);
    let incarnations = enrol(arguments, machines)?;
    println!("{{\"enrolled\":{machines}}}");
    std::io::stdin().lock().read_line(&mut String::new())?;
    let mut held = Vec::new();
    for number in 0..arguments.count {
        let machine = number % machines;
        let mut stream = machine::connect(machine, arguments.metadata)?.into_stream();
        stream.write_all(&machine::poll_request(Some(&incarnations[machine as usize])))?;
        held.push(stream);
    }
    let begin = Instant::now();
    while waiting(arguments)? < arguments.count {
        if begin.elapsed() > PATIENCE {
            return Err(format!("only {} of the long polls wait", waiting(arguments)?).into());
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    Ok(held)
}

/// The incarnations of the documents of so many machines.
fn enrol(arguments: &Arguments, machines: u32) -> LoadResult<Vec<String>> {
    let share = machines.div_ceil(ENROLLERS);
    let enrol_share = |first: u32| {
        let numbers = (first..machines).take(share as usize);
        numbers
            .map(|number| machine::poll(&mut machine::connect(number, arguments.metadata)?))
            .collect::<LoadResult<Vec<_>>>()
    };
    std::thread::scope(|scope| {
        let firsts = (0..machines).step_by(share as usize);
        let threads: Vec<_> = firsts.map(|first| scope.spawn(move || enrol_share(first))).collect();
        let mut incarnations = Vec::new();
        for thread in threads {
            let mut enrolled = thread.join().map_err(|_| "a client panicked")??;
            incarnations.append(&mut enrolled);
        }
        Ok(incarnations)
    })
}

/// Long polls that wait, as the server counts them.
fn waiting(arguments: &Arguments) -> LoadResult<u32> {
    let metrics = connect(arguments, &arguments.token)?.send("GET", "/metrics", "")?;
    let count = metrics.lines().find_map(|line| line.strip_prefix(WAITING));
    let count = count.ok_or("no such metric: forewarn_metadata_waiting_requests")?;
    Ok(count.trim().parse()?)
}

/// Reads everything that arrives, and forgets it.
fn read_on(streams: Vec<TcpStream>) -> LoadResult<String> {
    let (mut poll, mut events) = (Poll::new()?, Events::with_capacity(EVENTS_AT_ONCE));
    let (mut held, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
    for (place, stream) in streams.into_iter().enumerate() {
        stream.set_nonblocking(true)?;
        let mut stream = mio::net::TcpStream::from_std(stream);
        poll.registry().register(&mut stream, Token(place), Interest::READABLE)?;
        held.push(stream);
    }
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            let Token(place) = event.token();
            loop {
                match held[place].read(&mut buffer) {
                    Ok(0) => return Err("the server has closed a connection".into()),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
    }
}
