//! Output of programs: if there are several, each line begins with the name of its machine.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread::JoinHandle;

/// Bytes of a line; a longer one is broken.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The destination of the standard output of programs. Standard error is always passed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramOutput {
    /// Standard output.
    Out,
    /// Standard error: standard output has a document of its own.
    Error,
}

/// The beginning of each line that a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputLabels {
    /// None: a single program prints by itself.
    Absent,
    /// The name of its machine.
    Machines,
}

/// Copies the output of a program until it ends.
pub(super) fn copy_lines(
    machine: &str,
    from: impl Read + Send + 'static,
    to: ProgramOutput,
) -> io::Result<JoinHandle<()>> {
    let label = format!("{machine} | ");
    std::thread::Builder::new().name("output".to_owned()).spawn(move || {
        // A program whose output nobody reads goes on: that is no matter of the test.
        match to {
            ProgramOutput::Out => copy(&label, from, io::stdout()).ok(),
            ProgramOutput::Error => copy(&label, from, io::stderr()).ok(),
        };
    })
}

fn copy(label: &str, from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        // One write for each line: lines of several programs do not mix.
        let mut line = label.as_bytes().to_vec();
        if from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        to.write_all(&line)?;
        to.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_label_and_an_end() {
        let copied = |text: &str| {
            let mut out = Vec::new();
            copy("a | ", text.as_bytes(), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(copied("one\n\ntwo"), "a | one\na | \na | two\n");
        assert_eq!(copied(""), "");
        let long = "x".repeat(64 * 1024 + 1);
        assert_eq!(copied(&long).lines().map(str::len).collect::<Vec<_>>(), [64 * 1024 + 4, 5]);
    }
}
