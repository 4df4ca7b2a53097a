//! The reference against the code: `docs/reference` documents every setting, metric and log message.
//!
//! The code is read as text: settings are the fields of types that deny unknown fields, metrics are registered by name,
//! log messages are macros of `tracing`. Only the programs know their commands and options: tests of `crates/forewarn`
//! and `crates/agent` compare them with `cli.md` and `agent.md`.

use std::collections::BTreeSet;

use super::log_lines::{LogLine, log_lines};
use super::{Problem, Texts};

const SETTINGS: &str = "docs/reference/configuration.md";
const METRICS: &str = "docs/reference/metrics.md";
const LOG: &str = "docs/reference/log.md";

/// The reference of the agent, except its log.
const AGENT: &str = "docs/reference/agent.md";

/// The section that says for every setting if a change needs a restart.
const RESTART_HEADING: &str = "## Without a restart";

/// Directories with metrics.
const METRICS_SOURCES: [&str; 2] = ["crates/metadata/src/", "crates/server/src/"];

/// The directory with settings.
const SETTINGS_SOURCE: &str = "crates/forewarn/src/server/config/";

/// The sources of settings and metrics of the agent.
const AGENT_SETTINGS_SOURCES: [&str; 3] =
    ["crates/agent/src/config/file.rs", "crates/agent/src/hooks/", "crates/agent-core/src/condition.rs"];
const AGENT_METRICS_SOURCE: &str = "crates/agent/src/metrics.rs";

/// Calls with the name of a metric.
const REGISTERING: [&str; 3] = ["register(", "family(registry,", "gauges("];

/// Keys of every line of a JSON log: no field may have their names.
const OWN_KEYS: [&str; 4] = ["timestamp", "level", "message", "target"];

/// Prefixes of metric names.
const METRIC_PREFIXES: [&str; 2] = ["forewarn_", "forewarn_metadata_"];
const AGENT_METRIC_PREFIXES: [&str; 1] = ["forewarn_agent_"];

pub(super) fn check(texts: &Texts) -> Vec<Problem> {
    let sources: Vec<_> =
        texts.iter().filter(|(path, _)| path.contains("/src/") && path.starts_with("crates/")).collect();
    let mut problems = Vec::new();
    for (path, text) in &sources {
        let code = before_tests(text);
        if path.starts_with(SETTINGS_SOURCE) {
            let missing = |name: &&str| !is_setting_documented(texts, name);
            problems.extend(settings(code).filter(missing).map(|name| {
                let place =
                    format!("a setting of {path} is not in the table below {RESTART_HEADING:?}: {name}");
                Problem::new(SETTINGS, 0, place)
            }));
        }
        if METRICS_SOURCES.iter().any(|source| path.starts_with(source)) {
            problems.extend(undocumented_metrics(texts, METRICS, &METRIC_PREFIXES, path, code));
        }
        if *path == AGENT_METRICS_SOURCE {
            problems.extend(undocumented_metrics(texts, AGENT, &AGENT_METRIC_PREFIXES, path, code));
        }
        if AGENT_SETTINGS_SOURCES.iter().any(|source| path.starts_with(source)) {
            let words = code_words(texts.get(AGENT).map(String::as_str).unwrap_or_default());
            let missing = settings(code).filter(|name| !words.contains(name));
            problems.extend(missing.map(|name| {
                Problem::new(AGENT, 0, format!("a setting of {path} is not documented: {name}"))
            }));
        }
        let lines = log_lines(code).into_iter().filter_map(|line| undocumented(texts, &line));
        problems.extend(lines.map(|what| Problem::new(LOG, 0, format!("{what} ({path})"))));
    }
    problems
}

fn before_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// The words of a document in code spans.
fn code_words(document: &str) -> BTreeSet<&str> {
    let spans = document.split('`').skip(1).step_by(2);
    spans.flat_map(|span| span.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')).collect()
}

fn is_setting_documented(texts: &Texts, name: &str) -> bool {
    let document = texts.get(SETTINGS).map(String::as_str).unwrap_or_default();
    let section = document.split(RESTART_HEADING).nth(1).unwrap_or_default();
    code_words(section.split("\n## ").next().unwrap_or_default()).contains(name)
}

/// The metrics of a source that are missing in a document.
fn undocumented_metrics(
    texts: &Texts,
    document: &str,
    prefixes: &[&str],
    path: &str,
    code: &str,
) -> Vec<Problem> {
    let words = code_words(texts.get(document).map(String::as_str).unwrap_or_default());
    let is_documented = |name: &str| {
        prefixes.iter().any(|prefix| {
            let full = format!("{prefix}{name}");
            words.contains(full.as_str()) || words.contains(format!("{full}_total").as_str())
        })
    };
    let missing = metrics(code).filter(|name| !is_documented(name));
    missing
        .map(|name| Problem::new(document, 0, format!("a metric of {path} is not documented: {name}")))
        .collect()
}

/// The missing part of a log message: its row, its level there, or one of its fields.
fn undocumented(texts: &Texts, line: &LogLine) -> Option<String> {
    let document = texts.get(LOG).map(String::as_str).unwrap_or_default();
    let LogLine { level, message, fields, .. } = line;
    if let Some(field) = fields.iter().find(|field| OWN_KEYS.contains(&field.as_str())) {
        return Some(format!("a field has the name of a key of every line: {field}, of {level}: {message}"));
    }
    let rows: Vec<_> = document.lines().filter(|row| row.starts_with('|') && row.contains(message)).collect();
    if rows.is_empty() {
        return Some(format!("a log message is not documented: {level}: {message}"));
    }
    let has = |row: &&str, word: &str| code_words(row).contains(word);
    if !rows.iter().any(|row| has(row, level)) {
        return Some(format!("a log message is documented with another level: {level}: {message}"));
    }
    let missing = fields.iter().find(|field| !rows.iter().any(|row| has(row, field)))?;
    Some(format!("a field of a log message is not documented: {missing}, of {level}: {message}"))
}

/// The names of settings in a source.
fn settings(code: &str) -> impl Iterator<Item = &str> {
    let types = code.split("deny_unknown_fields").skip(1);
    types.flat_map(|rest| {
        // From the attribute to the end of the type, at the start of a line.
        let body = rest.split("\n}").next().unwrap_or_default();
        let body = body.split_once('{').map_or("", |(_, body)| body);
        let lines =
            body.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.starts_with('#'));
        lines.flat_map(|line| line.split(['{', ',']).filter_map(field))
    })
}

/// The name in `pub(super) name: Type`.
fn field(text: &str) -> Option<&str> {
    let name = text.trim().split_once(": ")?.0.rsplit(' ').next()?;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')).then_some(name)
}

/// The names of metrics in a source, without their prefix.
fn metrics(code: &str) -> impl Iterator<Item = &str> {
    REGISTERING.iter().flat_map(move |call| {
        let after = code.split(call).skip(1);
        after.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> (String, String) {
        (path.to_owned(), text.to_owned())
    }

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files.iter().map(|(path, text)| file(path, text)).collect();
        check(&texts).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_setting_is_documented() {
        let source = "#[serde(deny_unknown_fields)]\npub(super) struct Api {\n    /// A: b\n    pub(super) socket: Option<P>,\n    \
                      listen: X,\n}\nstruct Other {\n    not: X,\n}\n#[serde(tag = \"kind\", deny_unknown_fields)]\nenum Hands {\n    \
                      Program { program: P, time_limit: S },\n}\n";
        assert_eq!(settings(source).collect::<Vec<_>>(), ["socket", "listen", "program", "time_limit"]);
        let path = "crates/forewarn/src/server/config/mod.rs";
        let documented =
            "`listen`\n## Without a restart\n| `api.socket` | `program`, `time_limit` |\n## More\n`listen`\n";
        let found = problems(&[(path, source), (SETTINGS, documented)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].ends_with("is not in the table below \"## Without a restart\": listen"),
            "{found:?}"
        );
    }

    #[test]
    fn every_metric_is_documented() {
        let source = "registry.register(\n    \"held\", \"x\", y);\nlet a = family(registry, \"limited\", \"x\");\ngauges(\"hosts\")";
        let documented = "`forewarn_metadata_limited_total`, `forewarn_held`";
        let found = problems(&[("crates/server/src/a.rs", source), (METRICS, documented)]);
        assert_eq!(
            found,
            ["docs/reference/metrics.md:1: a metric of crates/server/src/a.rs is not documented: hosts"]
        );
    }

    #[test]
    fn settings_and_metrics_of_the_agent_are_documented() {
        let file = "#[serde(deny_unknown_fields)]\nstruct A {\n    poll: X,\n    spare: X,\n}\n";
        let numbers = "registry.register(\"polls\", \"x\", y);\nregistry.register(\"drained\", \"x\", y);";
        let documented = "`poll`, `forewarn_agent_polls_total`";
        let found = problems(&[
            (AGENT_SETTINGS_SOURCES[0], file),
            (AGENT_METRICS_SOURCE, numbers),
            (AGENT, documented),
        ]);
        assert_eq!(
            found,
            [
                "docs/reference/agent.md:1: a setting of crates/agent/src/config/file.rs is not documented: spare",
                "docs/reference/agent.md:1: a metric of crates/agent/src/metrics.rs is not documented: drained",
            ]
        );
    }

    #[test]
    fn every_log_message_is_documented_with_its_fields() {
        let source = "tracing::warn!(%error, tries = 1, \"it failed\");";
        let of = |log: &str| problems(&[("crates/server/src/a.rs", source), (LOG, log)]);
        assert!(of("| `warn` | it failed | `error`, `tries` |").is_empty());
        assert!(of("")[0].contains("a log message is not documented: warn: it failed"));
        assert!(of("| `info` | it failed | `error`, `tries` |")[0].contains("documented with another level"));
        assert!(
            of("| `warn` | it failed | `error` |")[0]
                .contains("a field of a log message is not documented: tries")
        );
    }

    #[test]
    fn no_field_has_the_name_of_a_key_of_every_line() {
        let source = "tracing::warn!(message, \"it failed\");";
        let found =
            problems(&[("crates/server/src/a.rs", source), (LOG, "| `warn` | it failed | `message` |")]);
        assert!(found[0].contains("a field has the name of a key of every line: message"), "{found:?}");
    }

    #[test]
    fn log_messages_of_tests_need_no_documentation() {
        let source = "//! A.\n#[cfg(test)]\nmod tests {\n    tracing::warn!(\"never\");\n}\n";
        assert!(problems(&[("crates/server/src/a.rs", source)]).is_empty());
    }
}
