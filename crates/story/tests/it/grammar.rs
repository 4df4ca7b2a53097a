//! The grammar of the reference has every word of the parser.

use std::collections::BTreeSet;

use forewarn_story::language_words;

fn grammar() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/stories.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("```ebnf\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Words in quotes.
fn words(grammar: &str) -> BTreeSet<&str> {
    grammar.split('"').skip(1).step_by(2).collect()
}

/// promise: X1
#[test]
fn the_grammar_has_every_word_of_the_parser() {
    let grammar = grammar();
    let (known, documented) = (language_words().collect::<BTreeSet<_>>(), words(&grammar));
    assert!(known.len() > 70);
    let missing: Vec<_> = known.iter().filter(|word| !documented.contains(**word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// promise: X1
#[test]
fn the_grammar_defines_every_name_that_it_uses() {
    let grammar = grammar();
    let bare: String = grammar.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let is_part = |character: char| character.is_ascii_alphabetic();
    let names: BTreeSet<_> = bare.split(|c| !is_part(c)).filter(|name| !name.is_empty()).collect();
    let defined: BTreeSet<_> =
        grammar.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name.trim()).collect();
    let terminals = BTreeSet::from(["Name", "Word", "Time", "Number", "Text"]);
    let undefined: Vec<_> = names.difference(&defined).filter(|name| !terminals.contains(**name)).collect();
    assert!(undefined.is_empty(), "{undefined:?}");
}

/// promise: X1
#[test]
fn every_example_of_the_reference_is_a_story() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/stories.md");
    let page = std::fs::read_to_string(path).unwrap();
    let examples: Vec<_> =
        page.split("```text\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let played = forewarn_story::parse(example).and_then(|story| forewarn_story::run(&story));
        assert!(played.is_ok(), "{example}\n{played:?}");
        assert_eq!(forewarn_story::format(example).as_deref(), Ok(example));
    }
}
