//! Single machines of the fleet as clients of the metadata endpoint, each from its own address.

use std::net::{SocketAddr, TcpStream};

use forewarn_bench::LoadResult;
use forewarn_bench::blocks;
use forewarn_bench::http::Connection;
use forewarn_bench::load::PATIENCE;
use socket2::{Domain, Socket, Type};

const TARGET: &str = "/metadata/scheduledevents?api-version=2020-07-01";

/// A connection of a single machine, counted over all blocks.
pub(crate) fn connect(machine: u32, endpoint: SocketAddr) -> LoadResult<Connection<TcpStream>> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((blocks::single_address(machine), 0)).into())?;
    socket.connect(&endpoint.into())?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(Connection::new(stream, ""))
}

/// A request for the document. With a known incarnation, it waits for another one.
pub(crate) fn poll_request(known: Option<&str>) -> Vec<u8> {
    let wait = known.map(|incarnation| format!("&wait=60s&incarnation={incarnation}"));
    let wait = wait.unwrap_or_default();
    format!("GET {TARGET}{wait} HTTP/1.1\r\nHost: localhost\r\nMetadata: true\r\n\r\n").into_bytes()
}

/// Polls once. Returns the incarnation of the document.
pub(crate) fn poll(connection: &mut Connection<TcpStream>) -> LoadResult<String> {
    let document = connection.exchange(&poll_request(None))?;
    let rest = document.split_once("\"DocumentIncarnation\":").map(|(_, rest)| rest.trim_start());
    let rest = rest.ok_or_else(|| format!("not a document: {document}"))?;
    Ok(rest.chars().take_while(char::is_ascii_digit).collect())
}

/// Approves an event.
pub(crate) fn approve(connection: &mut Connection<TcpStream>, event: &str) -> LoadResult<()> {
    let body = format!("{{\"StartRequests\":[{{\"EventId\":\"{event}\"}}]}}");
    let request = format!(
        "POST {TARGET} HTTP/1.1\r\nHost: localhost\r\nMetadata: true\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.exchange(request.as_bytes()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_poll_names_the_known_incarnation() {
        let text = String::from_utf8(poll_request(Some("7"))).unwrap();
        assert!(text.contains("api-version=2020-07-01&wait=60s&incarnation=7 HTTP/1.1\r\n"), "{text}");
        assert!(!String::from_utf8(poll_request(None)).unwrap().contains("wait"));
    }
}
