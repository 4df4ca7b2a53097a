//! The published formats of Scheduled Events: every byte of them exists here, and only here.
//!
//! The server renders with this crate, the agent and the command line read with it, so the two sides cannot diverge. No
//! I/O, no HTTP, no clock: bytes in, values out, and back. Foreign input is either parsed or rejected with a reason;
//! nothing panics, and all input has a limit on its length and its depth.
//!
//! ```text
//!   events ──▶ Document ──render(Edition)──▶ bytes ──read_document──▶ ReadDocument
//!                                              │
//!   Vec<EventId> ◀──parse_start_requests── bytes ◀──render_start_requests── ids to approve
//! ```
//!
//! A rejected request is a [`RequestError`], which has its status and its body. The metadata of a machine is an
//! [`Instance`], rendered for an [`InstanceVersion`].
//!
//! ```
//! use forewarn_imds::*;
//! use forewarn_types::*;
//! use std::sync::Arc;
//!
//! let id = EventId::parse("28512af7-c957-4500-9bc4-842d6fb531e4").unwrap();
//! let announcement = Announcement {
//!     id,
//!     kind: EventKind::Freeze,
//!     source: EventSource::Platform,
//!     reason: Reason::LiveMigration,
//!     duration_seconds: 5,
//!     resources: [Name::new("web_0").unwrap()].into(),
//! };
//! let phase = Phase::Scheduled { not_before: Timestamp::from_millis(1_516_828_844_000), approval: None };
//! let event = Event { announcement: Arc::new(announcement), maintenance: MaintenanceId(1), phase };
//! let document = Document { incarnation: 2, events: vec![event], naming: Naming::Machines };
//!
//! assert_eq!(
//!     document.render(Edition::V2017_08_01),
//!     concat!(
//!         r#"{"DocumentIncarnation":2,"Events":[{"EventId":"28512AF7-C957-4500-9BC4-842D6FB531E4","#,
//!         r#""EventStatus":"Scheduled","EventType":"Freeze","ResourceType":"VirtualMachine","#,
//!         r#""Resources":["web_0"],"NotBefore":"Wed, 24 Jan 2018 21:20:44 GMT"}]}"#,
//!     )
//! );
//!
//! let body = document.render(Edition::newest());
//! let Reading::Document(read) = read_document(body.as_bytes())? else { unreachable!() };
//! assert_eq!(read.events[0].duration_seconds, Some(5));
//!
//! let approval = render_start_requests(&[read.events[0].id]);
//! assert_eq!(parse_start_requests(approval.as_bytes()), Ok(vec![id]));
//! # Ok::<_, Unreadable>(())
//! ```

#![warn(missing_docs)]

mod date;
mod document;
mod edition;
mod identity_token;
mod instance;
mod instance_version;
mod json;
mod read;
mod request_error;
mod start_request;
mod versions;
pub mod words;

pub use date::{parse_date, parse_iso, print_date};
pub use document::{Document, Naming};
pub use edition::Edition;
pub use identity_token::{TokenHolder, unsigned_token};
pub use instance::{Format, Instance, Interface, OsType, ScaleSetMembership, USUAL_SIZE, computer_name};
pub use instance_version::{InstanceVersion, versions_body};
pub use json::{DEPTH_MAX, EVENT_ID_CHARS_MAX, is_deeper_than};
pub use read::{
    DOCUMENT_BYTES_MAX, DOCUMENT_EVENTS_MAX, MalformedEvent, ReadDocument, ReadEvent, Reading, Unreadable,
    read_document,
};
pub use request_error::{Methods, RequestError, UnwantedHeader};
pub use start_request::{BODY_BYTES_MAX, BadStartRequest, parse_start_requests, render_start_requests};
pub use versions::VersionList;
pub use words::{Status, Word};
