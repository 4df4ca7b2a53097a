//! Checks of start requests.

use crate::check::{Check, Need, Severity};

pub(crate) const APPROVAL_NEEDS_HEADER: Check = Check {
    id: "approval-needs-header",
    severity: Severity::Required,
    need: Need::Approval,
    title: "A start request without `Metadata: true` is refused with 400",
    reason: "Documented since 2017-08-01.",
};

pub(crate) const APPROVAL_MALFORMED: Check = Check {
    id: "approval-malformed",
    severity: Severity::Required,
    need: Need::Approval,
    title: "A start request that is not JSON, or has no list, is refused with 400",
    reason: "A client must notice that it approved nothing.",
};

pub(crate) const APPROVAL_EMPTY_LIST: Check = Check {
    id: "approval-empty-list",
    severity: Severity::Advice,
    need: Need::Approval,
    title: "A start request without events is refused with 400",
    reason: "It approves nothing.",
};

pub(crate) const APPROVAL_BAD_ID: Check = Check {
    id: "approval-bad-id",
    severity: Severity::Relied,
    need: Need::Approval,
    title: "An `EventId` that is not a GUID is refused with 400",
    reason: "A client must notice that it approved nothing.",
};

pub(crate) const APPROVAL_UNKNOWN_EVENT: Check = Check {
    id: "approval-unknown-event",
    severity: Severity::Advice,
    need: Need::Approval,
    title: "The approval of an unknown event is refused with 400",
    reason: "A client must notice that it approved nothing.",
};

pub(crate) const APPROVAL_TOO_LONG: Check = Check {
    id: "approval-too-long",
    severity: Severity::Advice,
    need: Need::Approval,
    title: "A start request of a megabyte is refused",
    reason: "A machine must not fill the memory of its host.",
};

pub(crate) const APPROVAL_ALL_OR_NOTHING: Check = Check {
    id: "approval-all-or-nothing",
    severity: Severity::Advice,
    need: Need::ApprovedEvent,
    title: "A start request with an unknown event approves none of its events",
    reason: "A client that is refused must know what it has approved.",
};

pub(crate) const APPROVAL_ACCEPTED: Check = Check {
    id: "approval-accepted",
    severity: Severity::Required,
    need: Need::ApprovedEvent,
    title: "The approval of a visible event is answered with 200",
    reason: "Documented.",
};

pub(crate) const APPROVAL_EMPTY_BODY: Check = Check {
    id: "approval-empty-body",
    severity: Severity::Advice,
    need: Need::ApprovedEvent,
    title: "The response to an approval has no body",
    reason: "Documented clients read none.",
};

pub(crate) const APPROVAL_STARTS: Check = Check {
    id: "approval-starts",
    severity: Severity::Required,
    need: Need::ApprovedEvent,
    title: "An approved event starts",
    reason: "Documented: approval hastens the event.",
};

pub(crate) const APPROVAL_REPEATED: Check = Check {
    id: "approval-repeated",
    severity: Severity::Required,
    need: Need::ApprovedEvent,
    title: "The repeated approval of an event is answered with 200",
    reason: "Documented; clients go on approving until the event is gone.",
};

pub(crate) const APPROVAL_ANY_CASE: Check = Check {
    id: "approval-any-case",
    severity: Severity::Relied,
    need: Need::ApprovedEvent,
    title: "An `EventId` in lower case is accepted",
    reason: "Clients parse and print GUIDs.",
};

pub(crate) const APPROVAL_ANY_CONTENT_TYPE: Check = Check {
    id: "approval-any-content-type",
    severity: Severity::Relied,
    need: Need::ApprovedEvent,
    title: "The `Content-Type` of a start request does not matter",
    reason: "curl and the samples send that of a form.",
};

pub(crate) const APPROVAL_ANY_INCARNATION: Check = Check {
    id: "approval-any-incarnation",
    severity: Severity::Relied,
    need: Need::ApprovedEvent,
    title: "`DocumentIncarnation` in a start request is ignored, as a number, a text or null",
    reason: "Samples send it in all these forms.",
};

pub(crate) const APPROVAL_ANY_EDITION: Check = Check {
    id: "approval-any-edition",
    severity: Severity::Relied,
    need: Need::ApprovedEvent,
    title: "The edition of a start request does not matter",
    reason: "Clients poll and approve with different editions.",
};

pub(crate) const APPROVAL_SEVERAL: Check = Check {
    id: "approval-several",
    severity: Severity::Required,
    need: Need::TwoEvents,
    title: "One start request approves several events",
    reason: "Documented: `StartRequests` is a list.",
};
