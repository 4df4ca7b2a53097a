//! Parsing of faults: `next 3 polls of web_0 answer 500`.

use forewarn_types::{FAULT_REQUESTS_MAX, FaultAnswer, FaultedRequest, NotAFault};

use super::{choice, name};
use crate::error::StoryError;
use crate::line_reader::LineReader;
use crate::statement::InjectedFault;

/// Reads the rest of `next poll of web_0 answer 500` or `next 3 approvals of web_0 answer hang`.
pub(super) fn fault(line: &mut LineReader<'_>) -> Result<InjectedFault, StoryError> {
    let is_number = line.peek().is_some_and(|word| word.text.starts_with(|c: char| c.is_ascii_digit()));
    let next = if is_number { count(line)? } else { 1 };
    let words = match next {
        1 => ["poll", "approval", "request"],
        _ => ["polls", "approvals", "requests"],
    };
    let request = match choice(line, &words)? {
        "poll" | "polls" => FaultedRequest::Poll,
        "approval" | "approvals" => FaultedRequest::Approve,
        _ => FaultedRequest::Any,
    };
    line.need_word("of")?;
    let machine = name(line, "a machine")?;
    line.need_word("answer")?;
    let word = line.need("an answer, such as 500 or slow=2s")?;
    let answer: FaultAnswer =
        word.text.parse().map_err(|wrong: NotAFault| line.error_at(word, wrong.to_string()))?;
    let fault = InjectedFault { machine, request, next, answer };
    let wrong = |bad: forewarn_control::BadFault| line.error_at(word, bad.to_string());
    fault.of("").check().map_err(wrong)?;
    Ok(fault)
}

fn count(line: &mut LineReader<'_>) -> Result<u32, StoryError> {
    let word = line.need("a number")?;
    let wrong = || line.error_at(word, format!("not a number from 1 to {FAULT_REQUESTS_MAX}"));
    let count: u32 = word.text.parse().map_err(|_| wrong())?;
    if (1..=FAULT_REQUESTS_MAX).contains(&count) { Ok(count) } else { Err(wrong()) }
}
