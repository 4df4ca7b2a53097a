//! Log messages of a source: the macros of `tracing`, read as text.

/// A log message, as far as the source shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogLine {
    /// The line of its macro, counted from 1.
    pub(crate) number: usize,
    /// `error`, `warn`, `info` or `debug`.
    pub(crate) level: &'static str,
    /// The message, up to the first placeholder.
    pub(crate) message: String,
    /// The names of its fields.
    pub(crate) fields: Vec<String>,
}

const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// All log messages of a source.
pub(crate) fn log_lines(code: &str) -> Vec<LogLine> {
    let mut lines = Vec::new();
    for level in LEVELS {
        let call = format!("tracing::{level}!(");
        for (start, _) in code.match_indices(&call) {
            let number = code[..start].matches('\n').count() + 1;
            let after = &code[start + call.len()..];
            let parts = arguments(after);
            let message = parts.iter().find_map(|part| part.strip_prefix('"'));
            let message = message.and_then(|text| text.split(['"', '{']).next()).unwrap_or_default();
            let fields = parts.iter().filter(|part| !part.starts_with('"')).filter_map(|part| name(part));
            lines.push(LogLine {
                number,
                level,
                message: message.trim().to_owned(),
                fields: fields.collect(),
            });
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

/// The arguments of a call, up to its end.
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
                    x => tracing::info!(\"stopping\"),";
        let line = |number, level, message: &str, fields: &[&str]| LogLine {
            number,
            level,
            message: message.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        };
        let expected =
            [line(1, "warn", "said to", &["tenant", "path", "text"]), line(7, "info", "stopping", &[])];
        assert_eq!(log_lines(code), expected);
    }
}
