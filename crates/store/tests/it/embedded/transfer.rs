//! Copies of a running journal and exports, and their import.

#![allow(clippy::unwrap_used, reason = "a test may be blunt")]

use std::fs;
use std::sync::mpsc;

use forewarn_lifecycle::Seed;
use forewarn_store::{CopyError, OpenError, Options, check, export, import};
use tempfile::tempdir;

use super::{CLUSTER, host, open, options, with_hosts};

/// promise: D5
#[test]
fn a_copy_of_a_running_journal_is_whole_and_can_be_imported() {
    let directory = tempdir().unwrap();
    let (journal, _) = open(directory.path());
    journal.append(CLUSTER, &(0..3_000).map(host).collect::<Vec<_>>(), &[]).unwrap();
    let file = directory.path().join("copy");
    let (tell, told) = mpsc::channel();
    let also = tell.clone();
    journal.copy_then(&file, move |result| tell.send(result).unwrap());
    journal.copy_then(&directory.path().join("other"), move |result| also.send(result).unwrap());
    // Life goes on meanwhile.
    for number in 3_000..3_200 {
        journal.append(CLUSTER, &[host(number)], &[]).unwrap();
    }
    let results: Vec<_> = told.iter().take(2).collect();
    let busy = results.iter().filter(|result| matches!(result, Err(CopyError::Busy))).count();
    assert!(results.iter().filter(|result| result.is_ok()).count() + busy == 2 && busy <= 1, "{results:?}");
    assert!(file.exists());
    let (tell, told) = mpsc::channel();
    journal.copy_then(&file, move |result| tell.send(result).unwrap());
    assert!(matches!(told.recv().unwrap(), Err(CopyError::Exists(_))));
    let to = tempdir().unwrap();
    import(&file, to.path(), &Options { seed: Seed([8; 16]), ..options(50) }).unwrap();
    let found = check(to.path()).unwrap();
    assert!((3_000..=3_200).contains(&found.hosts), "{found:?}");
    let problem = import(&file, to.path(), &options(50)).unwrap_err();
    assert!(matches!(problem, OpenError::Exists(_)), "{problem}");
    drop(journal);
    assert!(matches!(import(&file, directory.path(), &options(50)), Err(OpenError::Exists(_))));
}

/// promise: D4
#[test]
fn a_damaged_export_is_refused() {
    let (directory, _) = with_hosts(3);
    let mut bytes = Vec::new();
    export(directory.path(), &mut bytes).unwrap();
    let file = directory.path().join("export");
    let refused = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let to = tempdir().unwrap();
        let problem = import(&file, to.path(), &options(50)).unwrap_err();
        assert!(matches!(problem, OpenError::Damaged { .. } | OpenError::Foreign(_)), "{problem}");
        assert!(!to.path().join("journal.db").exists());
    };
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        refused(&damaged);
        refused(&bytes[..place]);
    }
    refused(&[&bytes[..], b"x"].concat());
}
