//! Verifies an audit log as a stream: only one line is in memory.

use anyhow::{Result, bail};
use forewarn_control::{AuditEntry, Chain, ENTRY_BYTES_MAX};

/// Bytes of a line: an entry, its hash, and the newline.
const LINE_BYTES_MAX: usize = ENTRY_BYTES_MAX + 1_024;

/// Checks that each line is an entry whose hash follows from the previous entry.
#[derive(Debug, Default)]
pub(super) struct Verifier {
    rest: Vec<u8>,
    /// Number of complete lines.
    lines: u64,
    /// None before the first entry.
    chain: Option<Chain>,
    first: u64,
}

/// The result of a verification.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VerifiedLog {
    pub(super) entries: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) hash: String,
}

impl Verifier {
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<()> {
        let mut lines = piece.split_inclusive(|byte| *byte == b'\n');
        for part in &mut lines {
            self.rest.extend_from_slice(part);
            if self.rest.len() > LINE_BYTES_MAX {
                bail!("line {} is too long for an entry: more than {LINE_BYTES_MAX} bytes", self.lines + 1);
            }
            if self.rest.ends_with(b"\n") {
                self.rest.pop();
                let line = std::mem::take(&mut self.rest);
                self.line(&line)?;
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &[u8]) -> Result<()> {
        self.lines += 1;
        let number = self.lines;
        let entry: AuditEntry = match serde_json::from_slice(line) {
            Ok(entry) => entry,
            Err(error) => bail!("line {number} is not an audit log entry: {error}"),
        };
        if entry.to_line().as_bytes() != line {
            bail!("line {number}: audit log entry {} has been reformatted", entry.number);
        }
        let verified = match &mut self.chain {
            Some(chain) => chain.verify(&entry),
            None => {
                self.first = entry.number;
                let begun = if entry.number == 1 {
                    let mut chain = Chain::default();
                    chain.verify(&entry).map(|()| chain)
                } else {
                    Chain::at(&entry)
                };
                begun.map(|chain| self.chain = Some(chain))
            }
        };
        if let Err(broken) = verified {
            bail!("line {number}: {broken}");
        }
        Ok(())
    }

    /// Checks that the log does not end within a line.
    pub(super) fn finish(self) -> Result<VerifiedLog> {
        if !self.rest.is_empty() {
            bail!("line {} is incomplete: the export was interrupted", self.lines + 1);
        }
        let chain = self.chain.unwrap_or_default();
        let hash = chain.hash_in_hex();
        Ok(VerifiedLog { entries: self.lines, first: self.first, last: chain.number, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_control::NewAuditEntry;

    fn lines(count: usize) -> Vec<String> {
        let mut chain = Chain::default();
        let entry = |number| NewAuditEntry { text: format!("thing {number}"), ..NewAuditEntry::default() };
        (0..count).map(|number| chain.seal(entry(number)).to_line() + "\n").collect()
    }

    fn verified(text: &str) -> Result<VerifiedLog> {
        let mut verifier = Verifier::default();
        // The pieces do not match the lines.
        text.as_bytes().chunks(7).try_for_each(|piece| verifier.take(piece))?;
        verifier.finish()
    }

    /// promise: C5
    #[test]
    fn a_complete_log_and_a_part_of_one_are_verified() {
        let lines = lines(5);
        let whole = verified(&lines.concat()).unwrap();
        assert_eq!((whole.entries, whole.first, whole.last), (5, 1, 5));
        let part = verified(&lines[2..].concat()).unwrap();
        assert_eq!((part.entries, part.first, part.last), (3, 3, 5));
        assert_eq!(part.hash, whole.hash);
        assert_eq!(verified("").unwrap().entries, 0);
    }

    /// promise: C5
    #[test]
    fn the_first_broken_link_is_named_with_its_line() {
        let lines = lines(5);
        let wrong = |text: &str| verified(text).unwrap_err().to_string();
        let changed = lines.concat().replace("thing 2", "thing 9");
        assert!(wrong(&changed).starts_with("line 3: audit entry 3, or the one before it"));
        let gap = [&lines[..2], &lines[3..]].concat().concat();
        assert!(wrong(&gap).starts_with("line 3: audit entry 3 is missing"));
        let first = lines.concat().replace("thing 0", "thing 9");
        assert!(wrong(&first).starts_with("line 1: audit entry 1"));
        let spaced = lines.concat().replacen("\"text\":\"thing 1\"", "\"text\": \"thing 1\"", 1);
        assert_eq!(wrong(&spaced), "line 2: audit log entry 2 has been reformatted");
        assert!(wrong("{}\n").starts_with("line 1 is not an audit log entry"));
        let cut = lines.concat();
        assert!(wrong(&cut[..cut.len() - 9]).starts_with("line 5 is incomplete"));
    }
}
