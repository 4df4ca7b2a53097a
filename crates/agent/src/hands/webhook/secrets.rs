//! Secrets in files: read when they are needed, and only from files that not everybody can read.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use forewarn_client::http::HeaderMap;

use super::header_of;
use crate::hands::aside;
use crate::os;

/// Bytes of a file with secrets.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// Headers of one webhook.
const HEADERS_MAX: usize = 50;

/// Whether it can be the file of a setting.
pub(super) fn check_path(name: &str, path: &Path) -> Result<(), String> {
    if path.is_absolute() { Ok(()) } else { Err(format!("`{name}` is not a whole path: {}", path.display())) }
}

/// Headers, if all of them are.
pub(super) fn headers<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in all {
        let (name, value) = header_of(name.trim(), value.trim())?;
        headers.insert(name, value);
        if headers.len() > HEADERS_MAX {
            return Err(format!("there are more than {HEADERS_MAX} headers"));
        }
    }
    Ok(headers)
}

/// The headers in a file. Empty lines and those that begin with `#` say nothing.
pub(super) async fn header_file(path: PathBuf) -> Result<HeaderMap, String> {
    aside(move || {
        let text = read(&path)?;
        let lines = text.lines().map(str::trim).enumerate();
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let pairs = lines.map(|(place, line)| line.split_once(':').ok_or(place + 1));
        let pairs: Result<Vec<_>, usize> = pairs.collect();
        let pairs = pairs.map_err(|line| {
            format!("{}: line {line} is no header\n  hint: Authorization: Bearer …", path.display())
        })?;
        headers(pairs.into_iter())
    })
    .await
}

/// The first line of a file.
pub(super) async fn first_line(path: PathBuf) -> Result<String, String> {
    aside(move || Ok(read(&path)?.lines().next().unwrap_or_default().trim().to_owned())).await
}

fn read(path: &Path) -> Result<String, String> {
    let told = |problem: &dyn std::fmt::Display| format!("{}: {problem}", path.display());
    let file = File::open(path).map_err(|problem| told(&problem))?;
    let metadata = file.metadata().map_err(|problem| told(&problem))?;
    if os::is_open_to_all(&metadata) {
        let path = path.display();
        return Err(format!("{path}: everybody can read it, so it is no secret\n  hint: chmod o= {path}"));
    }
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|problem| told(&problem))?;
    Ok(text)
}
