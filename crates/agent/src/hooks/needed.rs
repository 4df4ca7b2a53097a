//! Files that work needs and that are missing now. They are notes, not errors: a file may come before the next event.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Work;

impl Work {
    /// A note for each file that is missing or, as a program, not executable.
    pub(crate) fn notes(&self) -> Vec<String> {
        let notes = match self {
            Self::Command(work) => {
                let undo = work.undo.iter().flatten().next();
                let programs = work.command.first().into_iter().chain(undo);
                programs.map(|program| note_program(Path::new(program))).collect()
            }
            Self::Systemd(work) => vec![note_program(&work.systemctl)],
            Self::Webhook(work) => {
                let files =
                    [("url_file", &work.url_file), ("headers_file", &work.headers_file), ("ca", &work.ca)];
                files.map(|(key, file)| note_file(key, file.as_deref()?)).into()
            }
            Self::Touch(work) => vec![work.path.parent().and_then(|parent| note_file("directory", parent))],
            Self::Signal(work) => {
                let systemctl = work.unit.as_ref().map(|_| work.systemctl.as_path());
                [systemctl, work.program.as_deref()].map(|program| note_program(program?)).into()
            }
            Self::Kubernetes(work) => {
                vec![note_file("token_file", &work.token_file), note_file("ca_file", &work.ca_file)]
            }
            Self::Wait(_) => Vec::new(),
        };
        notes.into_iter().flatten().collect()
    }
}

fn note_file(key: &str, path: &Path) -> Option<String> {
    let is_missing = fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    is_missing.then(|| format!("{key} not found: {}", path.display()))
}

fn note_program(path: &Path) -> Option<String> {
    note_file("program", path).or_else(|| {
        let about = fs::metadata(path).ok()?;
        let is_program = about.is_file() && about.permissions().mode() & 0o111 != 0;
        (!is_program).then(|| format!("program is not executable: {}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{CommandWork, Work};

    #[test]
    fn programs_and_files_that_are_missing_are_noted() {
        let directory = tempfile::tempdir().unwrap();
        let plain = directory.path().join("plain");
        std::fs::write(&plain, "").unwrap();
        let plain = plain.to_str().unwrap().to_owned();
        let command = |command: &str, undo: &str| {
            let undo = Some(vec![undo.to_owned()]);
            Work::Command(CommandWork { command: vec![command.to_owned(), "/nowhere".to_owned()], undo })
        };
        assert_eq!(command("/bin/sh", "/bin/sh").notes(), [""; 0]);
        let notes = command("/no/such/program", &plain).notes();
        let expected =
            ["program not found: /no/such/program".to_owned(), format!("program is not executable: {plain}")];
        assert_eq!(notes, expected);
        let others = [
            (
                "webhook = { url_file = '/nowhere/url', ca = '/nowhere/ca' }",
                "url_file not found: /nowhere/url",
            ),
            ("touch = { path = '/nowhere/mark' }", "directory not found: /nowhere"),
            (
                "signal = { unit = 'x', send = 'TERM', systemctl = '/nowhere/s' }",
                "program not found: /nowhere/s",
            ),
            ("systemd = { stop = ['x'], systemctl = '/nowhere/s' }", "program not found: /nowhere/s"),
            ("kubernetes = { token_file = '/nowhere/t' }", "token_file not found: /nowhere/t"),
        ];
        for (text, note) in others {
            let table: toml::Table = toml::from_str(text).unwrap();
            let (kind, value) = table.into_iter().next().unwrap();
            let work = match kind.as_str() {
                "webhook" => Work::Webhook(value.try_into().unwrap()),
                "touch" => Work::Touch(value.try_into().unwrap()),
                "signal" => Work::Signal(value.try_into().unwrap()),
                "systemd" => Work::Systemd(value.try_into().unwrap()),
                _ => Work::Kubernetes(value.try_into().unwrap()),
            };
            assert_eq!(work.notes().first().map(String::as_str), Some(note), "{text}");
        }
    }
}
