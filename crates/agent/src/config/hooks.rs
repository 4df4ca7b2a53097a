//! Hooks: those of the file, and those that lie in directories.
//!
//! A script in `scheduled.d` is a hook of that phase; `10-drain` runs before `20-stop`, and what has no number is a 50. What is not
//! to be run, and what a package manager or an editor has left behind, is passed over, and that is told.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use forewarn_agent_core::{Condition, Hook, Mine, Phase};
use forewarn_types::{Span, show_duration};
use toml::Spanned;

use super::HOOK_LIMIT_MAX;
use super::file::HookTable;
use super::problem::Report;
use crate::hands::{CommandWork, Work};

/// Hooks of an agent, and files in a directory of hooks.
const HOOKS_MAX: usize = 256;

/// Characters of the name of a hook.
const NAME_CHARS_MAX: usize = 64;

/// The order of a hook that has none.
const ORDER: u32 = 50;

/// How often a hook is tried again at most.
const RETRIES_MAX: u32 = 100;

/// This machine is drained, and brought back, for its own events only: nobody would know when to undo what was done for others.
const UNDONE_FOR_OTHERS: &str = "only what is done for events of this machine is undone\n  \
    hint: leave out `mine`; for events of other machines, a command without `undo` or a webhook";

/// Hooks as they are found.
pub(super) struct Found {
    limit: Duration,
    hooks: Vec<Hook>,
    works: BTreeMap<String, Work>,
    notes: Vec<String>,
}

impl Found {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, hooks: Vec::new(), works: BTreeMap::new(), notes: Vec::new() }
    }

    pub(super) fn into_parts(self) -> (Vec<Hook>, BTreeMap<String, Work>, Vec<String>) {
        (self.hooks, self.works, self.notes)
    }

    /// The hooks of the file.
    pub(super) fn of_file(&mut self, tables: Vec<Spanned<HookTable>>, report: &mut Report<'_>) {
        if tables.len() > HOOKS_MAX {
            report.anywhere(format!("there are {} hooks\n  hint: at most {HOOKS_MAX}", tables.len()));
            return;
        }
        for table in tables {
            let span = table.span();
            if let Err(problems) = self.take(table.into_inner()) {
                problems.into_iter().for_each(|what| report.at(&span, what));
            }
        }
    }

    fn take(&mut self, table: HookTable) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let name = table.name.clone().unwrap_or_default();
        if !is_name(&name) {
            problems.push(
                "a hook has a name of letters, digits, '.', '_' and '-'\n  hint: name = \"stop-web\""
                    .to_owned(),
            );
        } else if self.works.contains_key(&name) {
            problems.push(format!("there are two hooks of this name: {name}"));
        }
        let phase = table.phase.unwrap_or(Phase::Scheduled);
        if phase != Phase::Scheduled && table.even_late {
            problems.push(format!("{name}: even_late is for hooks of the phase \"scheduled\""));
        }
        if phase != Phase::Scheduled && table.undo.is_some() {
            problems.push(format!(
                "{name}: only hooks of the phase \"scheduled\" have an undo\n  hint: a hook of its own with phase = \"undo\""
            ));
        }
        if table.retries > RETRIES_MAX {
            problems.push(format!("{name}: at most {RETRIES_MAX} retries"));
        }
        let limit = table.limit.map_or(self.limit, |Span(limit)| limit);
        if limit.is_zero() || limit > HOOK_LIMIT_MAX {
            problems.push(format!("{name}: limit is from 1s to {}", show_duration(HOOK_LIMIT_MAX)));
        }
        let (when, order, retries, even_late) =
            (table.when.clone(), table.order.unwrap_or(ORDER), table.retries, table.even_late);
        let work = work(table).and_then(|work| work.check().map(|()| work));
        let undoes = phase == Phase::Scheduled && work.as_ref().is_ok_and(Work::undoes);
        if undoes && when.mine != Mine::Yes {
            problems.push(format!("{name}: {UNDONE_FOR_OTHERS}"));
        }
        match work {
            Ok(work) if problems.is_empty() => {
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
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
        Err(problems)
    }

    /// The hooks in the directories, one for each phase. That there are none is fine, unless the place was named.
    pub(super) fn of_directories(&mut self, place: &Path, is_named: bool, report: &mut Report<'_>) {
        if is_named && !place.is_dir() {
            report.of_file(place, "there is no such directory, and hooks should be in it");
            return;
        }
        for phase in Phase::ALL {
            let directory = place.join(format!("{}.d", phase.as_str()));
            let mut names = match entries(&directory) {
                Ok(names) => names,
                Err(problem) => {
                    report.of_file(&directory, problem);
                    continue;
                }
            };
            names.sort();
            for name in names {
                match self.script(phase, &directory, &name) {
                    Ok(None) => {}
                    Ok(Some(odd)) => self.notes.push(format!("{}: {odd}", directory.join(&name).display())),
                    Err(problem) => report.of_file(&directory.join(&name), problem),
                }
            }
        }
        if self.hooks.len() > HOOKS_MAX {
            report.of_file(
                place,
                format!("there are {} hooks in all\n  hint: at most {HOOKS_MAX}", self.hooks.len()),
            );
        }
    }

    /// One file of a directory; what is odd about it, if it is no hook.
    fn script(&mut self, phase: Phase, directory: &Path, name: &str) -> Result<Option<String>, String> {
        if name.starts_with('.') || name == "README" {
            return Ok(None);
        }
        if !is_name(name) || is_leftover(name) {
            return Ok(Some("passed over, for its name".to_owned()));
        }
        let path = directory.join(name);
        let about = fs::metadata(&path).map_err(|problem| problem.to_string())?;
        let mode = about.permissions().mode();
        if !about.is_file() {
            return Ok(Some("passed over: it is not a file".to_owned()));
        }
        if mode & 0o111 == 0 {
            return Ok(Some(format!("passed over: nobody may run it\n  hint: chmod +x {}", path.display())));
        }
        if mode & 0o002 != 0 {
            return Err(format!("everybody may change it\n  hint: chmod o-w {}", path.display()));
        }
        // Programs are started by their whole path; a directory may be named from here.
        let path = std::path::absolute(path).map_err(|problem| problem.to_string())?;
        let path = path.to_str().ok_or("its path is not UTF-8")?.to_owned();
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

/// What a hook does: exactly one thing.
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
        return Err("undo goes with a command: other work undoes itself".to_owned());
    }
    match works.pop() {
        Some(work) if works.is_empty() => Ok(work),
        Some(_) => Err("a hook does one thing\n  hint: make two hooks of it".to_owned()),
        None => Err("a hook does something\n  \
                     hint: command, systemd, webhook, touch, signal, kubernetes or wait"
            .to_owned()),
    }
}

fn entries(directory: &Path) -> Result<Vec<String>, String> {
    let listing = match fs::read_dir(directory) {
        Ok(listing) => listing,
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(problem) => return Err(format!("cannot be read: {problem}")),
    };
    let mut names = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|problem| format!("cannot be read: {problem}"))?;
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

/// What editors and package managers leave behind.
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
