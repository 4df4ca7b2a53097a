//! The file of results: each benchmark replaces its own section and leaves the others alone.

use std::path::Path;

use anyhow::{Context, Result};

const RESULTS: &str = "bench/RESULTS.md";

/// Writes the section of that name.
pub(super) fn save(root: &Path, name: &str, section: &str) -> Result<()> {
    let file = root.join(RESULTS);
    let document = std::fs::read_to_string(&file).with_context(|| format!("cannot read: {RESULTS}"))?;
    let document = replace_section(&document, name, section)?;
    std::fs::write(&file, document).with_context(|| format!("cannot write: {RESULTS}"))
}

/// The document with another text between the markers of that name.
fn replace_section(document: &str, name: &str, section: &str) -> Result<String> {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let parts = document.split_once(&begin).and_then(|(head, rest)| Some((head, rest.split_once(&end)?.1)));
    let (head, tail) = parts.with_context(|| format!("no markers for the results: {begin} … {end}"))?;
    Ok(format!("{head}{begin}\n{section}\n{end}{tail}"))
}

/// Processor and number of cores.
pub(super) fn machine() -> String {
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let model = processor_model(&information).unwrap_or("unknown");
    format!("{model}, {cores} cores")
}

fn processor_model(information: &str) -> Option<&str> {
    let line = information.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, model)| model.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_between_their_own_markers() {
        let other = "<!-- other:begin -->\nkept\n<!-- other:end -->\n";
        let document = format!("{other}a\n<!-- core:begin -->\nold\n<!-- core:end -->\nb\n");
        let replaced = replace_section(&document, "core", "new").unwrap();
        assert_eq!(replaced, format!("{other}a\n<!-- core:begin -->\nnew\n<!-- core:end -->\nb\n"));
        assert_eq!(replace_section(&replaced, "core", "new").unwrap(), replaced);
        assert!(replace_section(&document, "gone", "new").is_err());
    }

    #[test]
    fn a_processor_has_a_name() {
        assert_eq!(processor_model("x: 1\nmodel name\t: A B\n"), Some("A B"));
        assert_eq!(processor_model("x: 1\n"), None);
    }
}
