//! The needs of a story: statements that not every backend supports.

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
