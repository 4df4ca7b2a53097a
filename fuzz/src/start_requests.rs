//! Start requests: read and written as they were, within their limits, or refused with a reason.

use forewarn_imds::{BODY_BYTES_MAX, parse_start_requests, render_start_requests};
use forewarn_lifecycle::limits::IDS_PER_APPROVAL_MAX;

pub(crate) fn examine(bytes: &[u8]) -> String {
    match parse_start_requests(bytes) {
        Ok(ids) => {
            assert!(bytes.len() <= BODY_BYTES_MAX, "a body that is too long");
            assert!((1..=IDS_PER_APPROVAL_MAX).contains(&ids.len()), "a wrong number of ids: {}", ids.len());
            let body = render_start_requests(&ids);
            assert_eq!(
                parse_start_requests(body.as_bytes()).as_ref(),
                Ok(&ids),
                "read otherwise than written"
            );
            format!("{} to start", ids.len())
        }
        Err(reason) => reason.to_string(),
    }
}
