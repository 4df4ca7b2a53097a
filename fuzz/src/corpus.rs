//! The corpus: small files, one for each thing that somebody may try.

use std::fs;
use std::path::PathBuf;

use crate::Target;

/// An input, with a name that says what it is about.
#[derive(Clone, Debug)]
pub struct Input {
    /// The name.
    pub name: String,
    /// What is sent.
    pub bytes: Vec<u8>,
}

/// The files of a target, by name.
///
/// # Panics
/// When they cannot be read.
#[must_use]
pub fn files(target: Target) -> Vec<Input> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name());
    let entries = fs::read_dir(&directory).expect("a directory for each target");
    let input = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        Input { name, bytes: fs::read(entry.path()).expect("a file that can be read") }
    };
    let mut files: Vec<_> = entries.map(|entry| input(entry.expect("an entry"))).collect();
    files.sort_by(|one, other| one.name.cmp(&other.name));
    files
}

/// A request that approves with this body.
#[must_use]
pub fn approval(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: 169.254.169.254\r\n\
         Metadata: true\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Examines the files that the command line names: how what fuzzing has found is looked at without it.
///
/// # Errors
/// When one of them cannot be read.
pub fn examine_files(target: Target) -> std::io::Result<()> {
    for file in std::env::args_os().skip(1) {
        println!("{}", target.examine(&fs::read(file)?));
    }
    Ok(())
}
