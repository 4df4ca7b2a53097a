//! Every file of the corpus, and everything that is too large to be one, on a stable compiler.

#![cfg(test)]

use std::collections::BTreeSet;
use std::fmt::Write;

use forewarn_fuzz::{Target, corpus, large};

/// What becomes of each file, one line for each.
fn outcomes(target: Target) -> String {
    let mut text = String::new();
    for input in corpus::files(target) {
        writeln!(text, "{}: {}", input.name, target.examine(&input.bytes)).unwrap();
    }
    text
}

fn examine_large(target: Target) -> String {
    let mut text = String::new();
    for input in large::inputs(target) {
        let outcome = target.examine(&input.bytes);
        let shown: String = outcome.chars().take(100).collect();
        writeln!(text, "{}: {shown}", input.name).unwrap();
    }
    text
}

/// promise: M5
#[test]
fn requests_are_answered_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::Request));
}

/// promise: M5
#[test]
fn start_requests_are_read_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::StartRequests));
}

/// promise: M5
#[test]
fn documents_are_read_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::Document));
}

/// promise: M5, C4
#[test]
fn fleets_are_read_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::Fleet));
}

/// promise: M5
#[test]
fn stories_are_read_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::Story));
}

/// promise: M5
#[test]
fn records_are_read_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::Record));
}

#[test]
fn templates_are_read_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::Template));
}

/// promise: C3
#[test]
fn control_requests_are_read_as_they_were() {
    insta::assert_snapshot!(outcomes(Target::ControlRequest));
}

/// promise: M5
#[test]
fn every_start_request_of_the_corpus_is_answered_by_the_front() {
    for input in corpus::files(Target::StartRequests) {
        let outcome = Target::Request.examine(&corpus::approval(&input.bytes));
        assert!(["200", "400"].contains(&outcome.as_str()), "{}: {outcome}", input.name);
    }
}

/// promise: M5
#[test]
fn what_is_too_large_is_refused_and_does_no_harm() {
    let all: String =
        Target::ALL.map(|target| format!("# {}\n{}\n", target.name(), examine_large(target))).concat();
    insta::assert_snapshot!(all);
}

/// promise: M5
#[test]
fn every_class_of_hostile_requests_has_files() {
    let classes = |target| -> BTreeSet<_> {
        let class = |name: &str| name.split('-').next().unwrap_or_default().to_owned();
        corpus::files(target).iter().map(|input| class(&input.name)).collect()
    };
    let expected = ["framing", "header", "path", "plain", "query", "smuggling"];
    // What fuzzing has added by itself has a name of forty hexadecimal digits.
    let found: BTreeSet<_> = classes(Target::Request).into_iter().filter(|class| class.len() != 40).collect();
    assert_eq!(found, expected.map(str::to_owned).into());
    assert!(
        classes(Target::StartRequests)
            .is_superset(&["depth", "event", "incarnation", "key"].map(str::to_owned).into())
    );
}
