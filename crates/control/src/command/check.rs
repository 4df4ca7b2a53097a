//! What texts of an operator may be that are neither names nor read by the rules: tags, and where machines are told to be.
//!
//! They come back in tables, log lines and documents. A line feed or an escape sequence there would let whoever wrote it
//! write lines of somebody else's.

use std::collections::BTreeMap;

use crate::command::entry::Site;

/// A text with a character that moves a cursor instead of being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a control character in {what}: {text:?}\n  hint: leave out line feeds, tabs and escape sequences")]
pub struct ControlCharacter {
    /// Where it is.
    what: &'static str,
    /// The text, or how it begins.
    text: String,
}

/// Characters of a wrong text that are shown.
const SHOWN_CHARS_MAX: usize = 100;

/// Tags can be read.
pub(crate) fn tags(tags: &BTreeMap<String, String>) -> Result<(), ControlCharacter> {
    tags.iter().try_for_each(|(name, value)| {
        readable("the name of a tag", name)?;
        readable("the value of a tag", value)
    })
}

/// What machines are told of where they are can be read.
pub(crate) fn site(site: &Site) -> Result<(), ControlCharacter> {
    let Site { location, subscription, resource_group } = site;
    readable("the location", location)?;
    readable("the subscription", subscription)?;
    readable("the resource group", resource_group)
}

fn readable(what: &'static str, text: &str) -> Result<(), ControlCharacter> {
    if text.chars().any(char::is_control) {
        return Err(ControlCharacter { what, text: text.chars().take(SHOWN_CHARS_MAX).collect() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_operators_stay_on_their_line() {
        let tagged = |name: &str, value: &str| tags(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert_eq!(tagged("größe", "10 m² – ja"), Ok(()));
        for (name, value) in [("a\n", ""), ("a", "\u{1b}[2J"), ("a", "\u{85}"), ("a", "x\0")] {
            assert!(tagged(name, value).is_err(), "{name:?} {value:?}");
        }
        assert_eq!(
            tagged("a", "b\tc").unwrap_err().to_string(),
            "a control character in the value of a tag: \"b\\tc\"\n  \
             hint: leave out line feeds, tabs and escape sequences"
        );
    }

    #[test]
    fn so_do_all_parts_of_a_site() {
        assert_eq!(site(&Site::default()), Ok(()));
        let wrong = || "a\rb".to_owned();
        for wrong in [
            Site { location: wrong(), ..Site::default() },
            Site { subscription: wrong(), ..Site::default() },
            Site { resource_group: wrong(), ..Site::default() },
        ] {
            assert!(site(&wrong).is_err(), "{wrong:?}");
        }
    }
}
