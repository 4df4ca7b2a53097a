//! Lines of audit entries: complete, or known to be incomplete.

use std::collections::VecDeque;

use forewarn_control::Stream;
use forewarn_http_client::Bytes;
use forewarn_peers::{AUDIT_LINE_BYTES_MAX, AuditLines, AuditQuery, ChunksBroken, PeerError};

use crate::support::{Realm, TestServer};

type Chunk = Result<Bytes, ChunksBroken>;

/// Two servers: the second one has these chunks.
async fn servers(chunks: impl IntoIterator<Item = Chunk>) -> (TestServer, TestServer) {
    let realm = Realm::new();
    let (a, b) = (realm.server("a").await, realm.server("b").await);
    *b.handler.chunks.lock().unwrap() = Some(VecDeque::from_iter(chunks));
    (a, b)
}

async fn lines(a: &TestServer, b: &TestServer) -> Result<AuditLines, PeerError> {
    a.client(b).audit(&AuditQuery { stream: Stream::Shared, after: 7 }).await
}

/// All lines, and the error after them.
async fn read(mut lines: AuditLines) -> (Vec<String>, Result<(), PeerError>) {
    let mut all = Vec::new();
    loop {
        match lines.next().await {
            Ok(Some(line)) => all.push(String::from_utf8(line.to_vec()).unwrap()),
            Ok(None) => return (all, Ok(())),
            Err(error) => return (all, Err(error)),
        }
    }
}

fn chunk(text: &str) -> Chunk {
    Ok(Bytes::copy_from_slice(text.as_bytes()))
}

#[tokio::test]
async fn lines_arrive_whatever_their_chunks_are() {
    let numbered =
        |from: usize, to: usize| (from..to).map(|number| format!("{{\"n\":{number}}}\n")).collect::<String>();
    let long = format!("{}\n", "x".repeat(AUDIT_LINE_BYTES_MAX));
    let chunks = [numbered(0, 3), String::new(), numbered(3, 50_000), long.clone(), "\n".to_owned()];
    let (a, b) = servers(chunks.iter().map(|text| chunk(text))).await;
    let (found, end) = read(lines(&a, &b).await.unwrap()).await;
    assert_eq!(end, Ok(()));
    let expected = chunks.concat();
    assert_eq!(found.len(), 50_002);
    assert!(found.iter().map(String::as_str).eq(expected.lines()));
    let (a, b) = servers([]).await;
    assert_eq!(read(lines(&a, &b).await.unwrap()).await, (Vec::new(), Ok(())));
}

#[tokio::test]
async fn lines_that_end_early_are_incomplete() {
    let (a, b) = servers([chunk("one\n"), Err(ChunksBroken)]).await;
    let (found, end) = read(lines(&a, &b).await.unwrap()).await;
    assert!(found.len() <= 1 && matches!(end, Err(PeerError::BrokenOff(_))), "{found:?} {end:?}");
    let (a, b) = servers([chunk("one\ntw")]).await;
    let (found, end) = read(lines(&a, &b).await.unwrap()).await;
    assert_eq!(found, ["one"]);
    assert_eq!(end, Err(PeerError::InvalidAnswer("the last line has no end".to_owned())));
    let (a, b) = servers([chunk(&"x".repeat(AUDIT_LINE_BYTES_MAX + 1))]).await;
    let (found, end) = read(lines(&a, &b).await.unwrap()).await;
    assert_eq!((found.len(), end), (0, Err(PeerError::InvalidAnswer("a line is too long".to_owned()))));
}

#[tokio::test]
async fn a_server_without_entries_says_so() {
    let (a, b) = servers([]).await;
    b.handler.chunks.lock().unwrap().take();
    let error = lines(&a, &b).await.unwrap_err();
    assert_eq!(error, PeerError::Rejected { status: 503, reason: "no entries of shared".to_owned() });
}
