//! Documents, as an agent reads them: within their limits, with times that can be written again.

use forewarn_imds::{
    DOCUMENT_BYTES_MAX, DOCUMENT_EVENTS_MAX, Reading, parse_date, print_date, read_document,
};
use forewarn_lifecycle::{EventId, Timestamp};

pub(crate) fn examine(bytes: &[u8]) -> String {
    match read_document(bytes) {
        Ok(Reading::NoNews) => "no news".to_owned(),
        Ok(Reading::Document(document)) => {
            assert!(bytes.len() <= DOCUMENT_BYTES_MAX, "a document that is too long");
            let malformed = document.malformed.len();
            assert!(
                document.events.len() + malformed <= DOCUMENT_EVENTS_MAX,
                "a document with too many events"
            );
            for event in &document.events {
                let text = event.id.to_string();
                assert_eq!(EventId::parse(&text), Some(event.id));
                if let Some(time) = event.not_before {
                    let date = print_date(time);
                    let read = parse_date(&date).map(Timestamp::seconds);
                    assert_eq!(read, Some(time.seconds()), "a time that cannot be written: {date}");
                }
            }
            let count = document.events.len();
            match document.malformed.first() {
                Some(event) => {
                    let (incarnation, problem) = (document.incarnation, &event.error);
                    format!("incarnation {incarnation}, {count} events, {malformed} malformed: {problem}")
                }
                None => format!("incarnation {}, {count} events", document.incarnation),
            }
        }
        Err(problem) => problem.to_string(),
    }
}
