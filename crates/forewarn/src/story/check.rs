//! `forewarn story check`: stories are read, their names and times are checked, and they are not run.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use forewarn_story::{NeedKind, Story, StoryError, StoryNeed};
use serde_json::{Value, json};

use super::{StoryFiles, read};
use crate::operator::{GlobalOptions, TestReportFormat, names, print, print_data, visible};

#[derive(Args)]
pub(crate) struct StoryCheckArgs {
    #[command(flatten)]
    files: StoryFiles,
}

pub(super) fn command(arguments: &StoryCheckArgs, options: &GlobalOptions) -> Result<()> {
    let StoryCheckArgs { files: StoryFiles { files } } = arguments;
    let (mut items, mut failed) = (Vec::new(), 0);
    for file in files {
        let name = file.display();
        match (check(file)?, options.report()) {
            (Ok(story), TestReportFormat::Text | TestReportFormat::Junit) => {
                print(&visible(&format!("{name}: {}\n", sentences(&story))))?;
            }
            (Ok(story), TestReportFormat::Data(_)) => items.push(value(&name.to_string(), &story)),
            (Err(error), format) => {
                failed += 1;
                eprintln!("forewarn: {}", visible(&format!("{name}: {error}")));
                if matches!(format, TestReportFormat::Data(_)) {
                    let (name, message) = (name.to_string(), error.message.lines().next());
                    items.push(
                        json!({ "name": name, "passed": false, "line": error.line, "message": message }),
                    );
                }
            }
        }
    }
    if let TestReportFormat::Data(format) = options.report() {
        print_data(format, &json!({ "stories": items }), names)?;
    }
    match failed {
        0 => Ok(()),
        failed => bail!("{failed} of {} stories are invalid", files.len()),
    }
}

fn check(file: &Path) -> Result<Result<Story, StoryError>> {
    let story = forewarn_story::parse(&read(file)?);
    Ok(story.and_then(|story| story.check().map(|()| story)))
}

fn sentences(story: &Story) -> String {
    let count = story.statement_count();
    let mut text = format!("{count} {}", if count == 1 { "statement" } else { "statements" });
    let needs = story.needs();
    if needs.iter().all(|need| need.kind != NeedKind::Rules) {
        text.push_str("; runs in the rules and on a server");
    }
    for StoryNeed { line, statement, kind } in &needs {
        // Writing to a text cannot fail.
        write!(text, "\n  line {line} {}: {statement}", need_words(*kind)).ok();
    }
    text
}

fn need_words(kind: NeedKind) -> &'static str {
    match kind {
        NeedKind::Rules => "runs only in the rules",
        NeedKind::Program => "starts a program under `forewarn test`, and simulates it elsewhere",
        NeedKind::GivenCommand => "starts the command of `forewarn test`, and simulates it elsewhere",
    }
}

fn value(name: &str, story: &Story) -> Value {
    let need = |StoryNeed { line, statement, kind }: StoryNeed| {
        let kind = match kind {
            NeedKind::Rules => "rules",
            NeedKind::Program => "program",
            NeedKind::GivenCommand => "given_command",
        };
        json!({ "line": line, "statement": statement, "kind": kind })
    };
    let needs: Vec<_> = story.needs().into_iter().map(need).collect();
    let live = story.check_live().is_ok();
    json!({ "name": name, "passed": true, "statements": story.statement_count(), "live": live, "needs": needs })
}
