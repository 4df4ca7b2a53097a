//! Backup of the store while the server runs.

use std::io::Read;
use std::path::PathBuf;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::IntoResponse;
use tokio_stream::wrappers::ReceiverStream;

use super::context::OperatorRequest;
use super::problem::ApiProblem;
use super::while_valid::{WhileValid, revoked};

/// Size of a chunk, and number of chunks that are buffered for a slow reader.
const CHUNK_BYTES: usize = 64 * 1024;
const CHUNKS_WAITING_MAX: usize = 4;

/// A temporary copy of the journal; dropping it deletes the file.
struct TemporaryCopy(PathBuf);

impl Drop for TemporaryCopy {
    fn drop(&mut self) {
        // The file may not exist.
        drop(std::fs::remove_file(&self.0));
    }
}

/// Copies the journal beside itself, sends the copy, and removes it.
pub(super) async fn backup(request: OperatorRequest) -> Result<impl IntoResponse, ApiProblem> {
    let api = &request.api;
    let Some(directory) = &api.data_dir else {
        return Err(ApiProblem::conflict("no backup: the store is in memory\n  hint: --data-dir"));
    };
    let copy = TemporaryCopy(directory.join("backup.tmp"));
    api.control.back_up(copy.0.clone()).await.map_err(|problem| ApiProblem::conflict(problem.to_string()))?;
    let file =
        std::fs::File::open(&copy.0).map_err(|problem| ApiProblem::unavailable(problem.to_string()))?;
    let (chunks, stream) = tokio::sync::mpsc::channel(CHUNKS_WAITING_MAX);
    tokio::task::spawn_blocking(move || {
        send(file, &chunks);
        drop(copy);
    });
    let stream = WhileValid::new(&request, ReceiverStream::new(stream)).or_error(Err(revoked()));
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], Body::from_stream(stream)))
}

/// Sends the file. A read error breaks the response off, so that no client takes a part for the whole.
fn send(mut file: std::fs::File, chunks: &tokio::sync::mpsc::Sender<std::io::Result<Bytes>>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let read = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
        let is_last = matches!(read, Ok(0) | Err(_));
        let chunk = read.map(|_| Bytes::from(chunk));
        if matches!(&chunk, Ok(bytes) if bytes.is_empty()) || chunks.blocking_send(chunk).is_err() || is_last
        {
            return;
        }
    }
}
