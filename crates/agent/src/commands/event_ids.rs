//! Event ids on the command line: complete, or at least their first four characters.

use anyhow::{Result, bail};
use forewarn_types::EventId;

/// Minimum length of an id prefix.
const ID_CHARS_MIN: usize = 4;

/// Finds the event that an id or a prefix names. A complete id need not be known. `listing` is the command that lists
/// the known events.
pub(super) fn resolve_id(known: &[EventId], text: &str, listing: &str) -> Result<EventId> {
    if let Some(id) = EventId::parse(text) {
        return Ok(id);
    }
    let start = text.to_ascii_uppercase();
    let found: Vec<_> = known.iter().filter(|id| id.to_string().starts_with(&start)).collect();
    match found[..] {
        _ if text.len() < ID_CHARS_MIN => {
            bail!("an id prefix has at least {ID_CHARS_MIN} characters: {text}\n  hint: {listing}")
        }
        [id] => Ok(*id),
        [] => bail!("event not found: {text}\n  hint: {listing}"),
        [..] => bail!("{} events begin with {text}: use a longer prefix", found.len()),
    }
}
