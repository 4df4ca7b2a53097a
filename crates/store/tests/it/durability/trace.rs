//! What a program asks of the disk, as strace sees it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One thing that was asked, in the order in which it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A file was opened; if it was not there it is now.
    Open {
        path: PathBuf,
        truncate: bool,
    },
    Write {
        path: PathBuf,
        offset: usize,
        data: Vec<u8>,
    },
    Truncate {
        path: PathBuf,
        length: usize,
    },
    Sync {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    /// The program has said that everything up to that number is durable.
    Ack(u64),
}

const CALLS: &str = "trace=openat,open,creat,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,sync_file_range,ftruncate,\
                     truncate,fallocate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,copy_file_range";

/// Runs a program to its end, and gives what it asked of files in that directory, and what it has written to `acks`.
pub(crate) fn trace(program: &Command, directory: &Path, acks: &Path) -> Vec<Step> {
    let output = directory.with_extension("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-xx", "-s", "16777216", "-e", CALLS, "-o"]).arg(&output);
    strace.arg(program.get_program()).args(program.get_args());
    let set = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    strace.envs(set).stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let ended = strace.output().expect("strace is there");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let text = std::fs::read_to_string(&output).unwrap();
    std::fs::remove_file(&output).unwrap();
    let mut unfinished = BTreeMap::new();
    text.lines()
        .filter_map(|line| whole_line(line, &mut unfinished))
        .filter_map(|line| step(&line, directory, acks))
        .collect()
}

/// A call that another thread interrupted is told in two lines; it counts when it is over.
fn whole_line(line: &str, unfinished: &mut BTreeMap<String, String>) -> Option<String> {
    let (process, rest) = line.split_once(' ')?;
    let rest = rest.trim_start();
    if let Some(begin) = rest.strip_suffix("<unfinished ...>") {
        unfinished.insert(process.to_owned(), begin.trim_end().to_owned());
        return None;
    }
    if let Some(end) = rest.strip_prefix("<... ") {
        let begin = unfinished.remove(process)?;
        return Some(format!("{begin}{}", end.split_once("resumed>")?.1));
    }
    Some(rest.to_owned())
}

fn step(line: &str, directory: &Path, acks: &Path) -> Option<Step> {
    // What is not a call that has ended is the end of a thread.
    let (call, result) = line.rsplit_once(" = ")?;
    let (name, arguments) = call.trim_end().strip_suffix(')').and_then(|call| call.split_once('(')).unwrap();
    if result.starts_with('-') {
        return None;
    }
    let words: Vec<_> = arguments.split(", ").collect();
    let path = |word: &str| text_in(word).map(PathBuf::from).filter(|path| path.starts_with(directory));
    match name {
        "openat" | "open" => {
            // The name as the system knows it is in the result.
            let opened = path(result)?;
            let truncate = arguments.contains("O_TRUNC");
            (arguments.contains("O_CREAT")).then_some(Step::Open { path: opened, truncate })
        }
        "write" if text_in(words[0]).map(PathBuf::from).as_deref() == Some(acks) => {
            let text = String::from_utf8(bytes_in(words[1])?).ok()?;
            Some(Step::Ack(text.trim().parse().ok()?))
        }
        "pwrite64" => {
            let path = path(words[0])?;
            Some(Step::Write { path, offset: words[3].parse().ok()?, data: bytes_in(words[1])? })
        }
        "fsync" | "fdatasync" => Some(Step::Sync { path: path(words[0])? }),
        "ftruncate" => Some(Step::Truncate { path: path(words[0])?, length: words[1].parse().ok()? }),
        "rename" => Some(Step::Rename { from: path(words[0])?, to: path(words[1])? }),
        "unlink" => Some(Step::Remove { path: path(words[0])? }),
        _ => {
            let ours = words.iter().any(|word| path(word).is_some());
            assert!(
                !ours
                    || name == "mkdir"
                    || name == "write" && text_in(words[0]).is_some_and(|path| path.ends_with("lock")),
                "the disk does not know this call: {name}"
            );
            None
        }
    }
}

/// What stands between quotes or angle brackets, where everything is in hexadecimal.
fn bytes_in(word: &str) -> Option<Vec<u8>> {
    let begin = word.find(['"', '<'])?;
    let inner = &word[begin + 1..];
    let inner = &inner[..inner.find(['"', '>'])?];
    if !inner.starts_with("\\x") {
        return Some(inner.as_bytes().to_vec());
    }
    inner.split("\\x").skip(1).map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
}

fn text_in(word: &str) -> Option<String> {
    String::from_utf8(bytes_in(word)?).ok()
}
