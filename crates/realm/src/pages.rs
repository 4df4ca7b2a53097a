//! Reads of many keys at one revision, in pages of about a mebibyte.

use forewarn_ownership::Revision;

use crate::engine::{EngineError, EngineRefusal, KeySpan, KeyValue, ReadContent, ReadRequest};
use crate::realm::Realm;

/// Bytes of a page, about.
const PAGE_BYTES: usize = 1 << 20;

/// Keys of the first page, and of any page.
const FIRST_KEYS: u32 = 16;
const KEYS_MAX: u32 = 1_000;

/// A read of keys that goes on page by page.
#[derive(Debug)]
pub(crate) struct Pages {
    keys: Option<KeySpan>,
    revision: Option<Revision>,
    content: ReadContent,
    limit: u32,
}

impl Pages {
    /// Keys and values at a revision.
    pub(crate) fn new(keys: KeySpan, revision: Revision) -> Self {
        Self::values(keys, Some(revision))
    }

    /// Keys and values at a revision, or at the newest.
    pub(crate) fn values(keys: KeySpan, revision: Option<Revision>) -> Self {
        Self { keys: Some(keys), revision, content: ReadContent::Values, limit: FIRST_KEYS }
    }

    /// Keys at the newest revision.
    pub(crate) fn keys_only(keys: KeySpan) -> Self {
        Self { keys: Some(keys), revision: None, content: ReadContent::Keys, limit: KEYS_MAX }
    }

    /// The next page. None after the last one.
    pub(crate) async fn next(&mut self, realm: &Realm) -> Result<Option<Vec<KeyValue>>, EngineError> {
        let Some(keys) = &self.keys else { return Ok(None) };
        loop {
            let request = ReadRequest {
                keys: keys.clone(),
                revision: self.revision,
                limit: Some(self.limit),
                content: self.content,
            };
            match realm.read(&request).await {
                Err(EngineError::Refused { refusal: EngineRefusal::TooLarge, .. }) if self.limit > 1 => {
                    self.limit = (self.limit / 8).max(1);
                }
                Err(error) => return Err(error),
                Ok(page) => {
                    let rest = page.entries.last().filter(|_| page.has_more);
                    self.keys = rest.map(|last| keys.after(&last.key));
                    self.limit = next_limit(&page.entries).unwrap_or(self.limit);
                    return Ok(Some(page.entries));
                }
            }
        }
    }
}

/// Keys of the next page, if they are like those of this one.
fn next_limit(entries: &[KeyValue]) -> Option<u32> {
    let bytes: usize = entries.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
    let one = bytes.checked_div(entries.len())?.max(1);
    u32::try_from(PAGE_BYTES / one).ok().map(|keys| keys.clamp(1, KEYS_MAX))
}
