//! What a source may say in the log: the macros of `tracing`, read as text.

/// A line of the log, as far as the source tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LogLine {
    /// `error`, `warn`, `info` or `debug`.
    pub(super) level: &'static str,
    /// What it says, up to where something is put in.
    pub(super) message: String,
    /// What it says besides, by name.
    pub(super) fields: Vec<String>,
}

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Every line that a source may say.
pub(super) fn log_lines(code: &str) -> Vec<LogLine> {
    let mut lines = Vec::new();
    for level in LEVELS {
        for after in code.split(&format!("tracing::{level}!(")).skip(1) {
            let parts = arguments(after);
            let message = parts.iter().find_map(|part| part.strip_prefix('"'));
            let message = message.and_then(|text| text.split(['"', '{']).next()).unwrap_or_default();
            let fields = parts.iter().filter(|part| !part.starts_with('"')).filter_map(|part| name(part));
            lines.push(LogLine { level, message: message.trim().to_owned(), fields: fields.collect() });
        }
    }
    lines
}

/// The name of a field: of `%error`, `?step`, `tries`, `path = %self.path`.
fn name(part: &str) -> Option<String> {
    let name = part.split('=').next()?.trim().trim_start_matches(['%', '?']).trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| name.to_owned())
}

/// What stands between the commas of a call, up to its end.
fn arguments(text: &str) -> Vec<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut depth, mut in_text, mut escaped) = (0_u32, false, false);
    for c in text.chars() {
        if in_text {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            part.push(c);
            continue;
        }
        match c {
            ')' | ']' | '}' if depth == 0 => break,
            ',' if depth == 0 => {
                parts.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '"' => in_text = true,
            _ => {}
        }
        part.push(c);
    }
    parts.push(part.trim().to_owned());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_with_its_fields() {
        let code = "tracing::warn!(\n    %tenant,\n    path = %self.path(a, b),\n    text = format!(\"a, \\\"b\"),\n    \"said to {text}\"\n);\n\
                    x => tracing::info!(\"told to stop\"),";
        let line = |level, message: &str, fields: &[&str]| LogLine {
            level,
            message: message.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        let expected =
            [line("warn", "said to", &["tenant", "path", "text"]), line("info", "told to stop", &[])];
        assert_eq!(log_lines(code), expected);
    }
}
