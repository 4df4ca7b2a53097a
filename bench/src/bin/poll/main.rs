//! Machines that poll: puts requests to an endpoint as fast as it answers them, and prints one line of JSON.
//!
//! One thread, sockets that never block, a closed loop: each connection has one request under way, and sends the next
//! when it has the answer. It does little else, because it shares the machine with what it measures: an answer must be a
//! success of the right length, and only a sample of them is compared byte for byte.
//!
//! ```text
//! poll --at 127.0.0.1:8080 --connections 64 --mode keep-alive --milliseconds 2000
//! ```

mod arguments;
mod load;
mod sample;

use std::error::Error;
use std::process::ExitCode;

use forewarn_bench::program;

use arguments::{Arguments, Mode};
use load::{Load, Measured};
use sample::{Sample, Samples};

fn main() -> ExitCode {
    program::run(Arguments::parse(std::env::args().skip(1)), |arguments| run(&arguments))
}

fn run(arguments: &Arguments) -> Result<String, Box<dyn Error>> {
    let take = |mode| Sample::take(arguments.at, &arguments.request(mode));
    let samples = Samples { kept: take(Mode::KeepAlive)?, closed: take(Mode::PerRequest)? };
    let busy_before = busy_nanoseconds()?;
    let measured = Load::new(arguments, &samples)?.run()?;
    let busy = busy_nanoseconds()?.saturating_sub(busy_before);
    Ok(to_json(&measured, samples.of(arguments.mode).bytes(), busy))
}

/// The time that this thread, the only one, has been on a processor.
fn busy_nanoseconds() -> Result<u64, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let first = text.split_ascii_whitespace().next().unwrap_or_default();
    first.parse().map_err(|_| format!("not a time on the processor: {first:?}").into())
}

/// One line: what `cargo xtask bench metadata` reads.
fn to_json(measured: &Measured, answer_bytes: usize, busy: u64) -> String {
    let Measured { answers, time, latency } = measured;
    let (p50, p99) = (latency.percentile(50), latency.percentile(99));
    format!(
        "{{\"answers\":{answers},\"nanoseconds\":{},\"p50_nanoseconds\":{p50},\"p99_nanoseconds\":{p99},\
         \"answer_bytes\":{answer_bytes},\"busy_nanoseconds\":{busy}}}",
        time.as_nanos()
    )
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    const SUCCESS: &str = "HTTP/1.1 200 OK";
    const KEPT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    const REQUESTS_MAX: u32 = 5;

    /// Answers the requests of a connection, up to its last one.
    fn answer(stream: &TcpStream, status: &str) -> std::io::Result<()> {
        let mut lines = BufReader::new(stream).lines();
        let mut left = REQUESTS_MAX;
        while let Some(line) = lines.next().transpose()? {
            match line.as_str() {
                "Connection: close" => left = 1,
                "" => {
                    let last = if left == 1 { "Connection: close\r\n" } else { "" };
                    let answer = format!("{status}\r\nContent-Length: 2\r\n{last}\r\n{{}}");
                    (&mut &*stream).write_all(answer.as_bytes())?;
                    left -= 1;
                    if left == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn server(status: &'static str) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || answer(&stream, status));
            }
        });
        at
    }

    fn arguments(at: SocketAddr, mode: Mode) -> Arguments {
        Arguments { at, mode, connections: 3, milliseconds: 100, target: "/metadata".to_owned() }
    }

    #[test]
    fn answers_are_counted_in_both_modes() {
        let at = server(SUCCESS);
        for (mode, more) in [(Mode::KeepAlive, 0), (Mode::PerRequest, "Connection: close\r\n".len())] {
            let line = run(&arguments(at, mode)).unwrap();
            assert!(line.starts_with("{\"answers\":") && !line.starts_with("{\"answers\":0,"), "{line}");
            assert!(line.contains(&format!("\"answer_bytes\":{},", KEPT.len() + more)), "{line}");
        }
    }

    #[test]
    fn an_answer_that_is_no_success_is_no_answer() {
        let at = server("HTTP/1.1 429 Too Many Requests");
        let problem = run(&arguments(at, Mode::KeepAlive)).unwrap_err().to_string();
        assert!(problem.contains("429"), "{problem}");
    }
}
