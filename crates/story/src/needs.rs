//! The needs of a story: statements that not every backend supports.

use std::collections::BTreeSet;

use forewarn_control::NamedCommand;

use crate::backend::{NOT_ON_A_SERVER, Program};
use crate::error::StoryError;
use crate::statement::{Statement, StatementKind, Story};

/// Something that a statement needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryNeed {
    /// The line of the first statement that needs it, from 1.
    pub line: usize,
    /// The statement, with its words one space apart.
    pub statement: String,
    /// The need.
    pub kind: NeedKind,
}

/// A kind of need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NeedKind {
    /// Only the rules support the statement.
    Rules,
    /// `forewarn test` starts the program; elsewhere it is simulated.
    Program,
    /// `forewarn test` starts the command that it is given; elsewhere it is simulated.
    GivenCommand,
}

impl Story {
    /// The number of statements, after repetitions.
    #[must_use]
    pub fn statement_count(&self) -> usize {
        self.statements.len()
    }

    /// Everything that the story needs besides a backend, each once, in the order of the lines.
    #[must_use]
    pub fn needs(&self) -> Vec<StoryNeed> {
        let mut needs: Vec<StoryNeed> = Vec::new();
        for statement in &self.statements {
            if let Some(kind) = need_of(&statement.kind) {
                let need =
                    StoryNeed { line: statement.location.line, statement: statement.location.plain(), kind };
                if needs.iter().all(|known| known.kind != kind) {
                    needs.push(need);
                }
            }
        }
        needs
    }

    /// The machine that the given command is: that of `run command`, or else the first machine of the story. None if
    /// the command is several machines, or if there is none.
    #[must_use]
    pub fn command_machine(&self) -> Option<String> {
        let mut given = BTreeSet::new();
        for statement in &self.statements {
            if let StatementKind::Run { program: Program::Given, machine } = &statement.kind {
                given.insert(machine.as_str());
            }
        }
        match given.len() {
            0 => self.statements.iter().find_map(|statement| first_machine(&statement.kind)),
            1 => given.first().map(|name| (*name).to_owned()),
            _ => None,
        }
    }

    /// The number of statements that start a program.
    #[must_use]
    pub fn program_count(&self) -> usize {
        let is_program =
            |kind: &StatementKind| matches!(need_of(kind), Some(NeedKind::Program | NeedKind::GivenCommand));
        self.statements.iter().filter(|statement| is_program(&statement.kind)).count()
    }

    /// Checks that the story can run on a live server.
    ///
    /// # Errors
    /// Points at the first unsupported statement: a step of the wall clock, a crash, or fencing.
    pub fn check_live(&self) -> Result<(), StoryError> {
        let is_unsupported = |statement: &&Statement| need_of(&statement.kind) == Some(NeedKind::Rules);
        let first = self.statements.iter().find(is_unsupported);
        first.map_or(Ok(()), |statement| Err(statement.location.error_on_line(NOT_ON_A_SERVER)))
    }
}

/// The first machine that a statement makes.
fn first_machine(kind: &StatementKind) -> Option<String> {
    let StatementKind::Perform(operation) = kind else { return None };
    let (commands, _) = operation.commands();
    let command = commands.first()?;
    if let NamedCommand::AdmitVm(vm) = command {
        Some(vm.name.clone())
    } else if let NamedCommand::AdmitMachine { tenant, machine } = command {
        Some(format!("{tenant}/{}", machine.name))
    } else if let NamedCommand::AdmitInstance { scale_set, .. } = command {
        Some(format!("{scale_set}/{scale_set}_0"))
    } else {
        None
    }
}

fn need_of(kind: &StatementKind) -> Option<NeedKind> {
    match kind {
        StatementKind::StepClock(_) | StatementKind::Crash | StatementKind::Fencing(_) => {
            Some(NeedKind::Rules)
        }
        StatementKind::Run { program: Program::Shell(_), .. } => Some(NeedKind::Program),
        StatementKind::Run { program: Program::Given, .. } => Some(NeedKind::GivenCommand),
        StatementKind::Perform(_)
        | StatementKind::Refused(_)
        | StatementKind::Attempt(_)
        | StatementKind::Poll(_)
        | StatementKind::Inject(_)
        | StatementKind::Advance(_)
        | StatementKind::Expect(_)
        | StatementKind::Await { .. } => None,
    }
}
