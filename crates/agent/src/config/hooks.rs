//! Hooks from the settings file and from hook directories.
//!
//! An executable in `scheduled.d` is a hook of that phase. `10-drain` runs before `20-stop`; a name without a number
//! has order 50. Files that are not executable, and leftovers of editors and package managers, are skipped with a note.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use forewarn_agent_core::{Condition, Hook, Mine, Phase};
use forewarn_types::{Span, show_duration};
use toml::Spanned;

use super::HOOK_LIMIT_MAX;
use super::errors::ConfigReport;
use super::file::HookTable;
use crate::hooks::{CommandWork, Work};

/// Limit of hooks, and of files in a hook directory.
const HOOKS_MAX: usize = 256;

/// Limit of the length of a hook name.
const NAME_CHARS_MAX: usize = 64;

/// The default order of a hook.
const ORDER: u32 = 50;

const RETRIES_MAX: u32 = 100;

/// Undo starts when no event of this machine is pending. Events of other machines have no such moment.
const UNDONE_FOR_OTHERS: &str = "only hooks for events of this machine can be undone\n  \
    hint: leave out `mine`; for events of other machines, a command without `undo` or a webhook";

/// The hooks that were read so far.
pub(super) struct HookCollector {
    limit: Duration,
    hooks: Vec<Hook>,
    works: BTreeMap<String, Work>,
    notes: Vec<String>,
}

impl HookCollector {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, hooks: Vec::new(), works: BTreeMap::new(), notes: Vec::new() }
    }

    pub(super) fn into_parts(self) -> (Vec<Hook>, BTreeMap<String, Work>, Vec<String>) {
        (self.hooks, self.works, self.notes)
    }

    /// Reads the hooks of the settings file.
    pub(super) fn add_from_file(&mut self, tables: Vec<Spanned<HookTable>>, report: &mut ConfigReport<'_>) {
        if tables.len() > HOOKS_MAX {
            report.anywhere(format!("too many hooks: {}\n  hint: at most {HOOKS_MAX}", tables.len()));
            return;
        }
        for table in tables {
            let span = table.span();
            if let Err(errors) = self.take(table.into_inner()) {
                errors.into_iter().for_each(|what| report.at(&span, what));
            }
        }
    }

    fn take(&mut self, table: HookTable) -> Result<(), Vec<String>> {
        let mut errors = Vec::new();
        let name = table.name.clone().unwrap_or_default();
        if !is_name(&name) {
            errors.push(
                "invalid hook name: use letters, digits, '.', '_' and '-'\n  hint: name = \"stop-web\""
                    .to_owned(),
            );
        } else if self.works.contains_key(&name) {
            errors.push(format!("duplicate hook name: {name}"));
        }
        let phase = table.phase.unwrap_or(Phase::Scheduled);
        if phase != Phase::Scheduled && table.even_late {
            errors.push(format!("{name}: even_late is only valid for the phase \"scheduled\""));
        }
        if phase != Phase::Scheduled && table.undo.is_some() {
            errors.push(format!(
                "{name}: undo is only valid for the phase \"scheduled\"\n  hint: add a separate hook with phase = \"undo\""
            ));
        }
        if table.retries > RETRIES_MAX {
            errors.push(format!("{name}: retries is at most {RETRIES_MAX}"));
        }
        let limit = table.limit.map_or(self.limit, |Span(limit)| limit);
        if limit.is_zero() || limit > HOOK_LIMIT_MAX {
            errors.push(format!("{name}: limit must be between 1s and {}", show_duration(HOOK_LIMIT_MAX)));
        }
        let (when, order, retries, even_late) =
            (table.when.clone(), table.order.unwrap_or(ORDER), table.retries, table.even_late);
        let work = work(table).and_then(|work| work.check().map(|()| work));
        let undoes = phase == Phase::Scheduled && work.as_ref().is_ok_and(Work::undoes);
        if undoes && when.mine != Mine::Yes {
            errors.push(format!("{name}: {UNDONE_FOR_OTHERS}"));
        }
        match work {
            Ok(work) if errors.is_empty() => {
                self.hooks.push(Hook {
                    name: name.clone(),
                    phase,
                    when,
                    order,
                    limit,
                    retries,
                    undoes,
                    even_late,
                });
                self.works.insert(name, work);
                return Ok(());
            }
            Ok(_) => {}
            Err(error) => errors.push(format!("{name}: {error}")),
        }
        Err(errors)
    }

    /// Reads the hooks in the directories, one for each phase. Missing directories are valid, unless the path is
    /// configured.
    pub(super) fn add_from_directories(
        &mut self,
        parent: &Path,
        is_named: bool,
        report: &mut ConfigReport<'_>,
    ) {
        if is_named && !parent.is_dir() {
            report.in_file(parent, "hook directory not found");
            return;
        }
        for phase in Phase::ALL {
            let directory = parent.join(format!("{}.d", phase.as_str()));
            let mut names = match entries(&directory) {
                Ok(names) => names,
                Err(error) => {
                    report.in_file(&directory, error);
                    continue;
                }
            };
            names.sort();
            for name in names {
                match self.script(phase, &directory, &name) {
                    Ok(None) => {}
                    Ok(Some(note)) => self.notes.push(format!("{}: {note}", directory.join(&name).display())),
                    Err(error) => report.in_file(&directory.join(&name), error),
                }
            }
        }
        if self.hooks.len() > HOOKS_MAX {
            report.in_file(
                parent,
                format!("too many hooks: {}\n  hint: at most {HOOKS_MAX}", self.hooks.len()),
            );
        }
    }

    /// Reads one file of a hook directory. Returns a note if it is skipped.
    fn script(&mut self, phase: Phase, directory: &Path, name: &str) -> Result<Option<String>, String> {
        if name.starts_with('.') || name == "README" {
            return Ok(None);
        }
        if !is_name(name) || is_leftover(name) {
            return Ok(Some("skipped: not a hook name".to_owned()));
        }
        let path = directory.join(name);
        let about = fs::metadata(&path).map_err(|error| error.to_string())?;
        let mode = about.permissions().mode();
        if !about.is_file() {
            return Ok(Some("skipped: not a regular file".to_owned()));
        }
        if mode & 0o111 == 0 {
            return Ok(Some(format!("skipped: not executable\n  hint: chmod +x {}", path.display())));
        }
        if mode & 0o002 != 0 {
            return Err(format!("hook is world-writable\n  hint: chmod o-w {}", path.display()));
        }
        // Programs are started by absolute path, but the directory may be relative.
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        let path = path.to_str().ok_or("path is not UTF-8")?.to_owned();
        let full = format!("{}.d/{name}", phase.as_str());
        let work = Work::Command(CommandWork { command: vec![path], undo: None });
        work.check()?;
        self.hooks.push(Hook {
            name: full.clone(),
            phase,
            when: Condition::default(),
            order: order(name),
            limit: self.limit,
            retries: 0,
            undoes: false,
            even_late: false,
        });
        self.works.insert(full, work);
        Ok(None)
    }
}

/// The work of a hook. Exactly one kind must be configured.
fn work(table: HookTable) -> Result<Work, String> {
    let HookTable { command, undo, systemd, webhook, kubernetes, touch, signal, wait, .. } = table;
    let is_lost = undo.is_some() && command.is_none();
    let command = command.map(|command| Work::Command(CommandWork { command, undo }));
    let all = [
        command,
        systemd.map(Work::Systemd),
        webhook.map(Work::Webhook),
        kubernetes.map(Work::Kubernetes),
        touch.map(Work::Touch),
        signal.map(Work::Signal),
        wait.map(Work::Wait),
    ];
    let mut works: Vec<Work> = all.into_iter().flatten().collect();
    if is_lost {
        return Err("undo is only valid with command: other work undoes itself".to_owned());
    }
    match works.pop() {
        Some(work) if works.is_empty() => Ok(work),
        Some(_) => Err("a hook has more than one kind of work\n  hint: split it into two hooks".to_owned()),
        None => Err("a hook has no work\n  \
                     hint: command, systemd, webhook, touch, signal, kubernetes or wait"
            .to_owned()),
    }
}

fn entries(directory: &Path) -> Result<Vec<String>, String> {
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("cannot read: {error}")),
    };
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|error| format!("cannot read: {error}"))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
        if names.len() > HOOKS_MAX {
            return Err(format!("too many files\n  hint: at most {HOOKS_MAX}"));
        }
    }
    Ok(names)
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=NAME_CHARS_MAX).contains(&name.len()) && name.chars().all(is_plain)
}

/// True for files that editors and package managers leave behind.
fn is_leftover(name: &str) -> bool {
    let ends =
        [".bak", ".orig", ".rej", ".swp", ".dpkg-old", ".dpkg-new", ".dpkg-dist", ".rpmsave", ".rpmnew"];
    ends.iter().any(|end| name.ends_with(end))
}

/// The number before the first `-`.
fn order(name: &str) -> u32 {
    let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
    number.unwrap_or(ORDER)
}
