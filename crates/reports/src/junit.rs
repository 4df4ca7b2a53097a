//! JUnit XML.

use std::fmt::Write as _;

use crate::{CaseOutcome, Suite};

/// The suite as a JUnit test suite.
#[must_use]
pub fn junit(suite: &Suite) -> String {
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" \
         errors=\"0\" skipped=\"{}\">\n",
        escape_xml(&suite.name),
        suite.cases.len(),
        suite.failed(),
        suite.skipped(),
    );
    for case in &suite.cases {
        let time = case.duration.map(|time| format!(" time=\"{:.3}\"", time.as_secs_f64()));
        let case_start = format!(
            "<testcase classname=\"{}\" name=\"{}\"{}",
            escape_xml(&case.class),
            escape_xml(&case.name),
            time.unwrap_or_default()
        );
        let line = match &case.outcome {
            CaseOutcome::Passed => format!("{case_start}/>"),
            CaseOutcome::Failed { message, details } => {
                let (message, details) = (escape_xml(message), escape_lines(details));
                format!("{case_start}><failure message=\"{message}\">{details}</failure></testcase>")
            }
            CaseOutcome::Skipped { message } => {
                format!("{case_start}><skipped message=\"{}\"/></testcase>", escape_xml(message))
            }
        };
        // Writing to a text cannot fail.
        writeln!(text, "  {line}").ok();
    }
    text.push_str("</testsuite>\n");
    text
}

/// Text inside an XML attribute, or on one line of an element. Characters that XML cannot contain become `?`.
#[must_use]
pub fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(' '),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push('?'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Text inside an XML element, which keeps its lines.
fn escape_lines(text: &str) -> String {
    text.lines().map(escape_xml).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::Case;

    #[test]
    fn a_suite_is_well_formed_and_counts_its_cases() {
        let failed =
            CaseOutcome::Failed { message: "\"a\" < b\u{1}".to_owned(), details: "1\n<2>".to_owned() };
        let skipped = CaseOutcome::Skipped { message: "no & yes".to_owned() };
        let slow =
            Case { duration: Some(Duration::from_millis(1_500)), ..Case::new("c", "x", CaseOutcome::Passed) };
        let cases = vec![slow, Case::new("c", "y", failed), Case::new("c", "z", skipped)];
        let expected = "\
<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<testsuite name=\"s\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\">
  <testcase classname=\"c\" name=\"x\" time=\"1.500\"/>
  <testcase classname=\"c\" name=\"y\"><failure message=\"&quot;a&quot; &lt; b?\">1
&lt;2&gt;</failure></testcase>
  <testcase classname=\"c\" name=\"z\"><skipped message=\"no &amp; yes\"/></testcase>
</testsuite>
";
        assert_eq!(junit(&Suite { name: "s".to_owned(), cases }), expected);
    }
}
