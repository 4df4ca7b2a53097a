//! Reports of checks: printed in the format that was asked for, with the number of findings as the error.

use anyhow::{Result, bail};
use forewarn_cli_support::table::Width;
use serde_json::Value;

use crate::operator::{GlobalOptions, OutputFormat, names, print, print_data, visible};

/// Prints a report: its object, or its table.
pub(crate) fn print_report(
    options: &GlobalOptions,
    json: &Value,
    table: impl FnOnce(Width) -> String,
) -> Result<()> {
    match options.output() {
        OutputFormat::Data(format) => print_data(format, json, names),
        OutputFormat::Text(width) => print(&visible(&table(width))),
    }
}

/// Fails if something was found; `found` words the error from the number, such as `2 findings`.
pub(crate) fn fail_if_any(count: usize, noun: &str, found: impl FnOnce(&str) -> String) -> Result<()> {
    match count {
        0 => Ok(()),
        1 => bail!(found(&format!("1 {noun}"))),
        several => bail!(found(&format!("{several} {noun}s"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_has_the_number_of_findings() {
        let error =
            |count| fail_if_any(count, "finding", |found| format!("bad: {found}")).map_err(|e| e.to_string());
        assert_eq!(error(0), Ok(()));
        assert_eq!(error(1), Err("bad: 1 finding".to_owned()));
        assert_eq!(error(2), Err("bad: 2 findings".to_owned()));
    }
}
