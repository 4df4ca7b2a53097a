//! Alerts: each one has its page in `docs/runbooks`, which the documentation lists, and tests in which it fires and does
//! not fire. The files are read as text, line by line.

use std::collections::BTreeSet;

use super::{Problem, Texts};

const RULES: &str = "deploy/monitoring/forewarn.rules.yml";
const TESTS: &str = "deploy/monitoring/forewarn.rules.test.yml";
const DIRECTORY: &str = "docs/runbooks/";

/// Documents that list every page, and the path to the pages from there.
const LISTS: [(&str, &str); 2] = [("docs/README.md", "runbooks/"), ("docs/guides/serve.md", "../runbooks/")];

/// Headings of every page.
const HEADINGS: [&str; 4] =
    ["\n## Meaning\n", "\n## Diagnosis\n", "\n## Remedy\n", "\n## When to ignore it\n"];

struct Alert<'a> {
    place: usize,
    name: &'a str,
    /// File name of its page.
    page: Option<&'a str>,
}

pub(super) fn check(texts: &Texts) -> Vec<Problem> {
    let text = |path: &str| texts.get(path).map(String::as_str).unwrap_or_default();
    let alerts = alerts(text(RULES));
    let mut problems = Vec::new();
    for alert in &alerts {
        let mut report = |message: String| problems.push(Problem::new(RULES, alert.place, message));
        if !is_tested(text(TESTS), alert.name) {
            report(format!("no test in which {} fires, or none in which it does not", alert.name));
        }
        let Some(page) = alert.page else {
            report(format!("{} has no runbook_url below runbooks/", alert.name));
            continue;
        };
        let path = format!("{DIRECTORY}{page}");
        let Some(runbook) = texts.get(&path) else {
            report(format!("{} has no page: {path}", alert.name));
            continue;
        };
        if !runbook.starts_with(&format!("# {}\n", alert.name)) {
            problems.push(Problem::new(
                &path,
                0,
                format!("the title is not the name of its alert: {}", alert.name),
            ));
        }
        let missing = HEADINGS.iter().filter(|heading| !runbook.contains(**heading));
        problems
            .extend(missing.map(|heading| Problem::new(&path, 0, format!("no heading: {}", heading.trim()))));
        let unlisted =
            LISTS.iter().filter(|(list, below)| !text(list).contains(&format!("]({below}{page})")));
        problems.extend(unlisted.map(|(list, _)| Problem::new(list, 0, format!("does not list {path}"))));
    }
    let pages: BTreeSet<_> = alerts.iter().filter_map(|alert| alert.page).collect();
    let idle =
        texts.keys().filter(|path| path.strip_prefix(DIRECTORY).is_some_and(|page| !pages.contains(page)));
    problems.extend(idle.map(|path| Problem::new(path, 0, "no alert has this page")));
    problems
}

fn alerts(rules: &str) -> Vec<Alert<'_>> {
    let mut alerts = Vec::<Alert<'_>>::new();
    for (place, line) in rules.lines().enumerate() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("- alert: ") {
            alerts.push(Alert { place, name, page: None });
        } else if let (Some(page), Some(alert)) =
            (line.strip_prefix("runbook_url: runbooks/"), alerts.last_mut())
        {
            alert.page = Some(page);
        }
    }
    alerts
}

/// Returns true if a test expects that the alert fires, and one that it does not.
fn is_tested(tests: &str, name: &str) -> bool {
    let lines: Vec<_> = tests.lines().map(str::trim).collect();
    let expects = |wanted: &str| {
        lines.windows(2).any(|pair| pair[0].strip_prefix("alertname: ") == Some(name) && pair[1] == wanted)
    };
    expects("exp_alerts:") && expects("exp_alerts: []")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Texts {
        let page = format!("# Down\n{}", HEADINGS.concat());
        let tests = "  alertname: Down\n  exp_alerts: []\n  alertname: Down\n  exp_alerts:\n    - x\n";
        let rules = "  - alert: Down\n    annotations:\n      runbook_url: runbooks/down.md\n";
        let files = [
            (RULES, rules),
            (TESTS, tests),
            ("docs/runbooks/down.md", &page),
            ("docs/README.md", "[Down](runbooks/down.md)"),
            ("docs/guides/serve.md", "[Down](../runbooks/down.md)"),
        ];
        files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect()
    }

    fn problems_with(path: &str, text: &str) -> Vec<String> {
        let mut texts = texts();
        texts.insert(path.to_owned(), text.to_owned());
        check(&texts).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_alert_with_a_page_and_tests_is_good() {
        assert!(check(&texts()).is_empty());
    }

    #[test]
    fn an_alert_needs_a_page() {
        let problems = problems_with(RULES, "- alert: Down\n  runbook_url: runbooks/up.md\n");
        assert_eq!(problems[0], format!("{RULES}:1: Down has no page: docs/runbooks/up.md"));
        assert_eq!(problems[1], "docs/runbooks/down.md:1: no alert has this page");
        let problems = problems_with(RULES, "- alert: Down\n");
        assert_eq!(problems[0], format!("{RULES}:1: Down has no runbook_url below runbooks/"));
    }

    #[test]
    fn a_page_has_its_title_its_headings_and_a_place_in_the_lists() {
        let problems = problems_with("docs/runbooks/down.md", "# Up\n");
        assert_eq!(problems[0], "docs/runbooks/down.md:1: the title is not the name of its alert: Down");
        assert_eq!(problems.len(), 1 + HEADINGS.len());
        let problems = problems_with("docs/README.md", "");
        assert_eq!(problems, ["docs/README.md:1: does not list docs/runbooks/down.md"]);
    }

    #[test]
    fn an_alert_fires_in_a_test_and_does_not_in_another() {
        for tests in ["", "alertname: Down\nexp_alerts:\n", "alertname: Down\nexp_alerts: []\n"] {
            assert_eq!(problems_with(TESTS, tests).len(), 1, "{tests}");
        }
    }
}
