//! Secrets in files, read on every use and only if they are not world-readable.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use forewarn_client::http::HeaderMap;

use super::header_of;
use crate::hooks::run_blocking;
use crate::os;

/// Size limit of a file.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Limit of headers of one webhook.
const HEADERS_MAX: usize = 50;

/// Checks and collects headers.
pub(super) fn headers<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        let (name, value) = header_of(name.trim(), value.trim())?;
        headers.insert(name, value);
        if headers.len() > HEADERS_MAX {
            return Err(format!("more than {HEADERS_MAX} headers"));
        }
    }
    Ok(headers)
}

/// The headers in a file. Empty lines and lines that begin with `#` are ignored.
pub(super) async fn header_file(path: PathBuf) -> Result<HeaderMap, String> {
    run_blocking(move || {
        let text = read(&path)?;
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let pairs = lines.map(|(index, line)| line.split_once(':').ok_or(index + 1));
        let pairs: Result<Vec<_>, usize> = pairs.collect();
        let pairs = pairs.map_err(|line| {
            format!("{}: line {line} is not a header\n  hint: Authorization: Bearer …", path.display())
        })?;
        headers(pairs.into_iter())
    })
    .await
}

/// The first line of a file.
pub(super) async fn first_line(path: PathBuf) -> Result<String, String> {
    run_blocking(move || Ok(read(&path)?.lines().next().unwrap_or_default().trim().to_owned())).await
}

fn read(path: &Path) -> Result<String, String> {
    let describe = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| describe(&error))?;
    let metadata = file.metadata().map_err(|error| describe(&error))?;
    if os::is_world_readable(&metadata) {
        let path = path.display();
        return Err(format!("{path}: secret file is world-readable\n  hint: chmod o= {path}"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| describe(&error))?;
    Ok(text)
}
