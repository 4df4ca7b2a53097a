//! Hooks from the settings file and from hook directories.
//!
//! An executable in `scheduled.d` is a hook of that phase. `10-drain` runs before `20-stop`; a name without a number
//! has order 50. Files that are not executable, and leftovers of editors and package managers, are skipped with a note.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use forewarn_agent_core::{Condition, Hook, Mine, Phase};
use forewarn_types::{Span, show_duration};
use toml::Spanned;

use super::errors::ConfigReport;
use super::file::HookTable;
use super::{HOOK_LIMIT_MAX, HOOK_LIMIT_MIN};
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
    /// Names of all hooks of the settings file, also of those with errors.
    names: BTreeSet<String>,
    hooks: Vec<Hook>,
    works: BTreeMap<String, Work>,
    notes: Vec<String>,
}

impl HookCollector {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, names: BTreeSet::new(), hooks: Vec::new(), works: BTreeMap::new(), notes: Vec::new() }
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
            let errors = self.take(&span, table.into_inner(), report);
            errors.into_iter().for_each(|error| report.at(&span, error));
        }
    }

    /// Takes a hook of the settings file, or returns all errors in it.
    fn take(&mut self, span: &Range<usize>, table: HookTable, report: &ConfigReport<'_>) -> Vec<String> {
        let is_lost = |key: &str| report.may_have_lost(Some(span), key);
        let mut errors = Vec::new();
        let name = table.name.clone().unwrap_or_default();
        let is_name_lost = table.name.is_none() && is_lost("name");
        if is_name(&name) {
            if !self.names.insert(name.clone()) {
                errors.push(format!("duplicate hook name: {name}"));
            }
        } else if !is_name_lost {
            errors.push(
                "invalid hook name: use letters, digits, '.', '_' and '-'\n  hint: name = \"stop-web\""
                    .to_owned(),
            );
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
        if table.limit.is_some() && !(HOOK_LIMIT_MIN..=HOOK_LIMIT_MAX).contains(&limit) {
            errors.push(format!("{name}: limit must be between 1s and {}", show_duration(HOOK_LIMIT_MAX)));
        }
        let (when, order, retries, even_late) =
            (table.when.clone(), table.order.unwrap_or(ORDER), table.retries, table.even_late);
        let (works, work_errors) = works(table, is_lost);
        errors.extend(work_errors.into_iter().map(|error| format!("{name}: {error}")));
        let undoes = phase == Phase::Scheduled && works.iter().any(Work::undoes);
        if undoes && when.mine != Mine::Yes && !is_lost("phase") {
            errors.push(format!("{name}: {UNDONE_FOR_OTHERS}"));
        }
        if let ([work], []) = (&works[..], &errors[..]) {
            let notes = work.notes().into_iter().map(|note| format!("hook {name}: {note}"));
            self.notes.extend(notes);
            self.works.insert(name.clone(), work.clone());
            self.hooks.push(Hook { name, phase, when, order, limit, retries, undoes, even_late });
        }
        errors
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
            // A relative path depends on the working directory, so the message has the absolute one.
            let parent = std::path::absolute(parent).unwrap_or_else(|_| parent.to_owned());
            report.in_file(&parent, "hook directory not found");
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
        if let Some(error) = work.errors().into_iter().next() {
            return Err(error);
        }
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

/// The work of a hook, and all errors in it. Exactly one kind must be configured.
fn works(table: HookTable, is_lost: impl Fn(&str) -> bool) -> (Vec<Work>, Vec<String>) {
    let HookTable { command, undo, systemd, webhook, kubernetes, touch, signal, wait, .. } = table;
    let mut errors = Vec::new();
    if undo.is_some() && command.is_none() && !is_lost("command") {
        errors.push("undo is only valid with command: other work undoes itself".to_owned());
    }
    let kinds = [
        ("command", command.map(|command| Work::Command(CommandWork { command, undo }))),
        ("systemd", systemd.map(Work::Systemd)),
        ("webhook", webhook.map(Work::Webhook)),
        ("kubernetes", kubernetes.map(Work::Kubernetes)),
        ("touch", touch.map(Work::Touch)),
        ("signal", signal.map(Work::Signal)),
        ("wait", wait.map(Work::Wait)),
    ];
    let has_lost_work = kinds.iter().any(|(key, work)| work.is_none() && is_lost(key));
    let mut works = Vec::new();
    for (key, work) in kinds {
        let Some(work) = work else { continue };
        if !is_lost(key) {
            errors.extend(work.errors());
        }
        works.push(work);
    }
    if works.len() > 1 {
        errors.push("a hook has more than one kind of work\n  hint: split it into two hooks".to_owned());
    }
    if works.is_empty() && !has_lost_work {
        errors.push(
            "a hook has no work\n  hint: command, systemd, webhook, touch, signal, kubernetes or wait"
                .to_owned(),
        );
    }
    (works, errors)
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
