//! Parsing of programs that are machines.

use super::name;
use crate::backend::Program;
use crate::error::StoryError;
use crate::line_reader::LineReader;
use crate::statement::StatementKind;

/// Parses `run "COMMAND" as web_0`, or `run command as web_0`.
pub(super) fn run(line: &mut LineReader<'_>) -> Result<StatementKind, StoryError> {
    let program = match line.take_if("command") {
        Some(_) => Program::Given,
        None => Program::Shell(line.need_text("a command in quotation marks, or `command`")?),
    };
    line.need_word("as")?;
    Ok(StatementKind::Run { program, machine: name(line, "a machine")? })
}
