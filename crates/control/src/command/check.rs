//! Validation of texts from operators that are neither names nor known to the rules: tags and sites.
//!
//! They appear in tables, log lines and documents. A line feed or an escape sequence would let their author forge
//! lines there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::command::entry::Site;

/// A text with a control character.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("a control character in {what}: {text:?}\n  hint: leave out line feeds, tabs and escape sequences")]
pub struct ControlCharacterError {
    what: Cow<'static, str>,
    /// The beginning of the text.
    text: String,
}

/// Characters of an invalid text that are shown.
const SHOWN_CHARS_MAX: usize = 100;

pub(crate) fn tags(tags: &BTreeMap<String, String>) -> Result<(), ControlCharacterError> {
    tags.iter().try_for_each(|(name, value)| {
        readable("the name of a tag", name)?;
        readable("the value of a tag", value)
    })
}

pub(crate) fn site(site: &Site) -> Result<(), ControlCharacterError> {
    let Site { location, subscription, resource_group } = site;
    readable("the location", location)?;
    readable("the subscription", subscription)?;
    readable("the resource group", resource_group)
}

fn readable(what: &'static str, text: &str) -> Result<(), ControlCharacterError> {
    if text.chars().any(char::is_control) {
        return Err(ControlCharacterError {
            what: what.into(),
            text: text.chars().take(SHOWN_CHARS_MAX).collect(),
        });
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
