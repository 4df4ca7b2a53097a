//! `forewarn verdict`: were the events of a running server approved before they started?

use anyhow::{Result, ensure};
use forewarn_cli_support::output::names_in;
use forewarn_control::{AuditEntry, AuditPage};
use forewarn_verdict::{Observations, VerdictRules, count_words, event_histories, judge};
use serde_json::json;

use super::session::{Session, escaped, print, print_data};
use super::{OutputFormat, visible};

pub(super) const EXAMPLES: &str = "\
Examples:
  forewarn verdict
  forewarn verdict --output json";

/// Entries of a page: the maximum of the server.
const PAGE_ITEMS: u64 = 1_000;

pub(super) fn run(session: &Session) -> Result<()> {
    // Polls leave no entry: every announced event counts as read.
    let verdict =
        judge(event_histories(&entries(session)?), &Observations::default(), VerdictRules::default());
    let (sentences, conclusion) = (verdict.sentences(), verdict.conclusion());
    match session.output() {
        OutputFormat::Data(format) => {
            let verdict = json!({
                "passed": verdict.passed(),
                "conclusion": conclusion,
                "failures": verdict.failures,
                "sentences": sentences,
                "events": verdict.events,
            });
            print_data(format, &verdict, |verdict| names_in(&verdict["events"], "id"))?;
        }
        OutputFormat::Text(_) => {
            let lines = sentences.into_iter().chain([conclusion]);
            print(&visible(&lines.map(|line| line + "\n").collect::<String>()))?;
        }
    }
    ensure!(verdict.passed(), "the verdict has {}", count_words(verdict.failures.len(), "failure"));
    Ok(())
}

/// The audit log, oldest first.
fn entries(session: &Session) -> Result<Vec<AuditEntry>> {
    let (mut all, mut after) = (Vec::new(), String::new());
    loop {
        let page: AuditPage = session.get(&format!("/v1/audit?order=oldest&limit={PAGE_ITEMS}{after}"))?;
        all.extend(page.items);
        match page.next {
            Some(next) => after = format!("&after={}", escaped(&next)),
            None => return Ok(all),
        }
    }
}
