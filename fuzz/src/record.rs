//! Records of the journal: read or refused, kept as they were read, and found only where they were put.

use forewarn_store::{record_from_content, record_from_stored, record_to_stored};

/// A place in the journal.
const NUMBER: u64 = 7;

pub(crate) fn examine(bytes: &[u8]) -> String {
    // Whatever has no checksum of ours is no record, and is told so.
    assert!(record_from_stored(NUMBER, bytes).is_err(), "bytes from anywhere are taken for what was kept");
    let record = match record_from_content(bytes) {
        Ok(record) => record,
        Err(malformed) => return malformed.to_string(),
    };
    let stored = record_to_stored(NUMBER, &record);
    assert_eq!(record_from_stored(NUMBER, &stored).as_ref(), Ok(&record), "read otherwise than written");
    assert!(record_from_stored(NUMBER + 1, &stored).is_err(), "a record that is taken for another one");
    "a record".to_owned()
}
