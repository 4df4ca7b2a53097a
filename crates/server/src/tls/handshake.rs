//! TLS handshakes. A client that speaks plain HTTP gets an error in plain HTTP.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// First byte of TLS: a record that is a handshake.
const HANDSHAKE_RECORD: u8 = 22;

/// Bytes that are read of a client without TLS before the connection is closed.
const DRAINED_BYTES_MAX: u64 = 64 * 1_024;

/// Response to a client without TLS.
const TLS_REQUIRED: &str = r#"{"title":"Bad Request","status":400,"detail":"this port requires TLS\n  hint: https:// instead of http://"}"#;

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

/// Sends an error in plain HTTP, and reads the request: closing with unread bytes would lose the response.
async fn refuse(stream: &mut TcpStream) -> io::Result<()> {
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{TLS_REQUIRED}",
        TLS_REQUIRED.len(),
    );
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(DRAINED_BYTES_MAX), &mut tokio::io::sink()).await?;
    Ok(())
}
