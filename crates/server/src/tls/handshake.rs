//! TLS handshakes. A client that speaks plain HTTP is told so, in plain HTTP.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// First byte of TLS: a record that is a handshake.
const HANDSHAKE_RECORD: u8 = 22;

/// Bytes of a client that does not speak TLS that are read before the connection is closed.
const DRAINED_BYTES_MAX: u64 = 64 * 1_024;

/// Answer to a client that does not speak TLS.
const SPEAK_TLS: &str = r#"{"title":"Bad Request","status":400,"detail":"this port speaks TLS\n  hint: https:// instead of http://"}"#;

/// Does the handshake of a connection. The caller limits its time.
pub(crate) async fn shake_hands(
    mut stream: TcpStream,
    acceptor: TlsAcceptor,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0; 1];
    if stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE_RECORD {
        refuse(&mut stream).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    acceptor.accept(stream).await
}

/// Answers in the language of the caller, and reads what it has sent: closing over unread bytes would lose the answer.
async fn refuse(stream: &mut TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{SPEAK_TLS}",
        SPEAK_TLS.len(),
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(DRAINED_BYTES_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}
