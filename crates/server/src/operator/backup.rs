//! A copy of everything, taken while the server runs.

use std::io::Read;
use std::path::PathBuf;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::IntoResponse;
use tokio_stream::wrappers::ReceiverStream;

use super::fault::Fault;
use super::visit::Visit;
use super::while_valid::{WhileValid, revoked};

/// Bytes that are sent at once, and how many such pieces may wait for a slow reader.
const PIECE_BYTES: usize = 64 * 1024;
const PIECES_WAITING_MAX: usize = 4;

/// The copy, which goes with whoever holds this.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        // If it was never made, there is nothing to remove.
        drop(std::fs::remove_file(&self.0));
    }
}

/// Copies the journal beside itself, sends the copy, and removes it.
pub(super) async fn backup(visit: Visit) -> Result<impl IntoResponse, Fault> {
    let api = &visit.api;
    let Some(directory) = &api.data_dir else {
        return Err(Fault::conflict(
            "there is nothing to copy: everything is kept in memory\n  hint: --data-dir",
        ));
    };
    let copy = Copy(directory.join("backup.tmp"));
    api.engine.copy(copy.0.clone()).await.map_err(|problem| Fault::conflict(problem.to_string()))?;
    let file = std::fs::File::open(&copy.0).map_err(|problem| Fault::unavailable(problem.to_string()))?;
    let (pieces, stream) = tokio::sync::mpsc::channel(PIECES_WAITING_MAX);
    tokio::task::spawn_blocking(move || {
        send(file, &pieces);
        drop(copy);
    });
    let stream = WhileValid::new(&visit, ReceiverStream::new(stream)).or_error(Err(revoked()));
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], Body::from_stream(stream)))
}

/// A reader that hangs up, or a disk that fails, breaks the answer off: nobody takes half a copy for a whole one.
fn send(mut file: std::fs::File, pieces: &tokio::sync::mpsc::Sender<std::io::Result<Bytes>>) {
    loop {
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        let read = file.by_ref().take(PIECE_BYTES as u64).read_to_end(&mut piece);
        let is_last = matches!(read, Ok(0) | Err(_));
        let piece = read.map(|_| Bytes::from(piece));
        if matches!(&piece, Ok(bytes) if bytes.is_empty()) || pieces.blocking_send(piece).is_err() || is_last
        {
            return;
        }
    }
}
