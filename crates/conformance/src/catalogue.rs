//! The checks: what each one promises, and why.

use crate::check::{Check, Need, Severity};

/// Every check, in the order of reports.
pub const CHECKS: &[Check] = &[
    METADATA_HEADER_REQUIRED,
    METADATA_HEADER_ERROR,
    METADATA_HEADER_CASE,
    METADATA_HEADER_FIRST,
    PREVIEW_WITHOUT_HEADER,
    EDITIONS_SERVED,
    VERSION_REQUIRED,
    VERSION_UNKNOWN,
    VERSION_ERROR,
    PARAMETER_TWICE,
    FORWARDED_REFUSED,
    PROXY_HEADERS_REFUSED,
    HOST_NAME_REFUSED,
    PATH_UNKNOWN,
    PATH_OUTSIDE,
    PATH_CASE,
    PATH_ENCODED,
    PATH_SLASH,
    METHOD_REFUSED,
    HEAD_REFUSED,
    CONTENT_TYPE,
    SERVER_NAMES_IMDS,
    DATE_PRESENT,
    ETAG_MATCHED,
    ERROR_JSON,
    DOCUMENT_KEYS,
    DOCUMENT_COMPACT,
    INCARNATION_NUMBER,
    INCARNATION_OF_ALL_EDITIONS,
    INCARNATION_UNCHANGED,
    INCARNATION_GROWS,
    EVENT_KEYS,
    EVENT_FIELDS_OF_EDITION,
    EVENT_TYPES_OF_EDITION,
    EVENT_ID,
    EVENT_ID_STABLE,
    EVENT_STATUS,
    EVENT_TYPE,
    RESOURCE_TYPE,
    RESOURCES,
    RESOURCES_UNDERSCORE,
    NOT_BEFORE_FORMAT,
    NOT_BEFORE_EMPTY,
    NOT_BEFORE_FIXED,
    DESCRIPTION,
    EVENT_SOURCE,
    DURATION,
    FREEZE_ANNOUNCED,
    REBOOT_ANNOUNCED,
    REDEPLOY_ANNOUNCED,
    PREEMPT_ANNOUNCED,
    TERMINATE_ANNOUNCED,
    MINIMUM_NOTICE,
    NO_EARLY_START,
    APPROVAL_NEEDS_HEADER,
    APPROVAL_MALFORMED,
    APPROVAL_EMPTY_LIST,
    APPROVAL_BAD_ID,
    APPROVAL_UNKNOWN_EVENT,
    APPROVAL_TOO_LONG,
    APPROVAL_ALL_OR_NOTHING,
    APPROVAL_ACCEPTED,
    APPROVAL_EMPTY_BODY,
    APPROVAL_STARTS,
    APPROVAL_REPEATED,
    APPROVAL_ANY_CASE,
    APPROVAL_ANY_CONTENT_TYPE,
    APPROVAL_ANY_INCARNATION,
    APPROVAL_ANY_EDITION,
    APPROVAL_SEVERAL,
    EVENT_ENDS,
];

pub(crate) const METADATA_HEADER_REQUIRED: Check = Check {
    id: "metadata-header-required",
    severity: Severity::Required,
    need: Need::Requests,
    title: "A request without `Metadata: true` is refused with 400",
    reason: "Documented since 2017-08-01: the header keeps requests that were redirected by a browser or a proxy away.",
};
pub(crate) const METADATA_HEADER_ERROR: Check = Check {
    id: "metadata-header-error",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "The refusal of a missing header has the known body",
    reason: "Seen on real machines; published clients compare it.",
};
pub(crate) const METADATA_HEADER_CASE: Check = Check {
    id: "metadata-header-case",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "`Metadata: True` is accepted",
    reason: "The Azure Linux agent sends it in this spelling.",
};
pub(crate) const METADATA_HEADER_FIRST: Check = Check {
    id: "metadata-header-first",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "`GET /` without the header is refused with 400",
    reason: "A published client recognizes the service by this response.",
};
pub(crate) const PREVIEW_WITHOUT_HEADER: Check = Check {
    id: "preview-without-header",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "Edition 2017-03-01 needs no `Metadata` header",
    reason: "A sample of that time sends start requests without it. An operator may refuse the edition.",
};
pub(crate) const EDITIONS_SERVED: Check = Check {
    id: "editions-served",
    severity: Severity::Required,
    need: Need::Requests,
    title: "All seven editions are served",
    reason: "Documented: clients name the edition that they were written for.",
};
pub(crate) const VERSION_REQUIRED: Check = Check {
    id: "version-required",
    severity: Severity::Required,
    need: Need::Requests,
    title: "A request without `api-version` is refused with 400",
    reason: "Documented.",
};
pub(crate) const VERSION_UNKNOWN: Check = Check {
    id: "version-unknown",
    severity: Severity::Required,
    need: Need::Requests,
    title: "Unknown values of `api-version` are refused with 400, `latest` too",
    reason: "Documented: a client must not get a format that it does not know.",
};
pub(crate) const VERSION_ERROR: Check = Check {
    id: "version-error",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "The refusal of a version lists the newest versions",
    reason: "Seen on real machines; clients choose their version from it.",
};
pub(crate) const PARAMETER_TWICE: Check = Check {
    id: "parameter-twice",
    severity: Severity::Required,
    need: Need::Requests,
    title: "A query parameter that is given twice is refused with 400",
    reason: "Documented.",
};
pub(crate) const FORWARDED_REFUSED: Check = Check {
    id: "forwarded-refused",
    severity: Severity::Required,
    need: Need::Requests,
    title: "A request with `X-Forwarded-For` is refused with 400",
    reason: "Documented: it came through a proxy, so the caller is not the virtual machine.",
};
pub(crate) const PROXY_HEADERS_REFUSED: Check = Check {
    id: "proxy-headers-refused",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "Requests with `Forwarded`, `Via`, `X-Real-IP`, `Origin` or `Sec-Fetch-Site` are refused",
    reason: "They come from proxies and browsers.",
};
pub(crate) const HOST_NAME_REFUSED: Check = Check {
    id: "host-name-refused",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "A request for a public host name is refused",
    reason: "DNS rebinding makes a browser send such requests, and the `Metadata` header does not stop it.",
};
pub(crate) const PATH_UNKNOWN: Check = Check {
    id: "path-unknown",
    severity: Severity::Required,
    need: Need::Requests,
    title: "An unknown path below `/metadata` is refused with 404",
    reason: "Documented.",
};
pub(crate) const PATH_OUTSIDE: Check = Check {
    id: "path-outside",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "A path outside `/metadata` is refused with 404",
    reason: "Nothing else is served at this address.",
};
pub(crate) const PATH_CASE: Check = Check {
    id: "path-case",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "`/metadata/scheduledEvents` is accepted",
    reason: "A library of Microsoft spells it like this.",
};
pub(crate) const PATH_ENCODED: Check = Check {
    id: "path-encoded",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "A percent-encoded `?` in the path is accepted",
    reason: "Seen in production: some clients encode the whole target.",
};
pub(crate) const PATH_SLASH: Check = Check {
    id: "path-slash",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "A trailing slash is accepted",
    reason: "Clients join URLs carelessly.",
};
pub(crate) const METHOD_REFUSED: Check = Check {
    id: "method-refused",
    severity: Severity::Required,
    need: Need::Requests,
    title: "Methods other than GET and POST are refused with 405 and `Allow`",
    reason: "Documented.",
};
pub(crate) const HEAD_REFUSED: Check = Check {
    id: "head-refused",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "HEAD is refused with 405, without a body",
    reason: "It would have to count as a poll, and shows nothing.",
};
pub(crate) const CONTENT_TYPE: Check = Check {
    id: "content-type",
    severity: Severity::Required,
    need: Need::Requests,
    title: "A document is `application/json; charset=utf-8`",
    reason: "Documented; PowerShell and SDKs parse by it.",
};
pub(crate) const SERVER_NAMES_IMDS: Check = Check {
    id: "server-names-imds",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "The `Server` header field contains `IMDS`",
    reason: "A client of Microsoft recognizes the service by it.",
};
pub(crate) const DATE_PRESENT: Check = Check {
    id: "date-present",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "A response has a `Date`",
    reason: "Clients compute the time that is left from it if their own clock is wrong.",
};
pub(crate) const ETAG_MATCHED: Check = Check {
    id: "etag-matched",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "A request with the `ETag` of the document in `If-None-Match` is answered with 304",
    reason: "It saves the body of most polls.",
};
pub(crate) const ERROR_JSON: Check = Check {
    id: "error-json",
    severity: Severity::Required,
    need: Need::Requests,
    title: "The body of an error is a JSON object with `error`",
    reason: "Seen on real machines.",
};
pub(crate) const DOCUMENT_KEYS: Check = Check {
    id: "document-keys",
    severity: Severity::Required,
    need: Need::Requests,
    title: "A document has `DocumentIncarnation` and `Events`, in this order",
    reason: "Documented; shell scripts cut it apart by position.",
};
pub(crate) const DOCUMENT_COMPACT: Check = Check {
    id: "document-compact",
    severity: Severity::Relied,
    need: Need::Requests,
    title: "A document is compact JSON",
    reason: "Seen on real machines; shell scripts search it for texts such as `\"EventStatus\":\"Scheduled\"`.",
};
pub(crate) const INCARNATION_NUMBER: Check = Check {
    id: "incarnation-number",
    severity: Severity::Required,
    need: Need::Requests,
    title: "`DocumentIncarnation` is a whole number from 1 on",
    reason: "Documented; a sample of Microsoft begins with `If-None-Match: 0`.",
};
pub(crate) const INCARNATION_OF_ALL_EDITIONS: Check = Check {
    id: "incarnation-of-all-editions",
    severity: Severity::Advice,
    need: Need::Requests,
    title: "All editions have the same `DocumentIncarnation`",
    reason: "A client may change its edition without missing a change.",
};
pub(crate) const INCARNATION_UNCHANGED: Check = Check {
    id: "incarnation-unchanged",
    severity: Severity::Required,
    need: Need::Requests,
    title: "Equal incarnations mean equal documents",
    reason: "Documented: clients skip a document whose number they know.",
};
pub(crate) const INCARNATION_GROWS: Check = Check {
    id: "incarnation-grows",
    severity: Severity::Required,
    need: Need::Cause,
    title: "The incarnation grows by one for each event that appears, starts or ends",
    reason: "Seen on real machines; clients compare numbers.",
};
pub(crate) const EVENT_KEYS: Check = Check {
    id: "event-keys",
    severity: Severity::Required,
    need: Need::Event,
    title: "The members of an event have their names and their order",
    reason: "Seen on real machines.",
};
pub(crate) const EVENT_FIELDS_OF_EDITION: Check = Check {
    id: "event-fields-of-edition",
    severity: Severity::Required,
    need: Need::Event,
    title: "Older editions lack the members that came later",
    reason: "Documented: `Description` 2019-04-01, `EventSource` 2019-08-01, `DurationInSeconds` 2020-07-01.",
};
pub(crate) const EVENT_TYPES_OF_EDITION: Check = Check {
    id: "event-types-of-edition",
    severity: Severity::Required,
    need: Need::Event,
    title: "Older editions lack the types that came later",
    reason: "Documented: `Preempt` 2017-11-01, `Terminate` 2019-01-01.",
};
pub(crate) const EVENT_ID: Check = Check {
    id: "event-id",
    severity: Severity::Required,
    need: Need::Event,
    title: "An `EventId` is a GUID in upper case",
    reason: "Seen on real machines.",
};
pub(crate) const EVENT_ID_STABLE: Check = Check {
    id: "event-id-stable",
    severity: Severity::Required,
    need: Need::Event,
    title: "The `EventId` of an event never changes",
    reason: "Documented: clients remember the events that they have handled.",
};
pub(crate) const EVENT_STATUS: Check = Check {
    id: "event-status",
    severity: Severity::Required,
    need: Need::Event,
    title: "`EventStatus` is `Scheduled` or `Started`",
    reason: "Documented: an event that has ended is gone.",
};
pub(crate) const EVENT_TYPE: Check = Check {
    id: "event-type",
    severity: Severity::Required,
    need: Need::Event,
    title: "`EventType` is one of the five types",
    reason: "Documented.",
};
pub(crate) const RESOURCE_TYPE: Check = Check {
    id: "resource-type",
    severity: Severity::Required,
    need: Need::Event,
    title: "`ResourceType` is `VirtualMachine`",
    reason: "Documented.",
};
pub(crate) const RESOURCES: Check = Check {
    id: "resources",
    severity: Severity::Required,
    need: Need::Event,
    title: "`Resources` is a list of names, and not empty",
    reason: "Documented: a machine looks for its own name there.",
};
pub(crate) const RESOURCES_UNDERSCORE: Check = Check {
    id: "resources-underscore",
    severity: Severity::Required,
    need: Need::Event,
    title: "Edition 2017-03-01 has a leading `_` in names of machines, later ones do not",
    reason: "Documented.",
};
pub(crate) const NOT_BEFORE_FORMAT: Check = Check {
    id: "not-before-format",
    severity: Severity::Required,
    need: Need::Event,
    title: "`NotBefore` of a scheduled event is a date such as `Mon, 19 Sep 2016 18:29:47 GMT`",
    reason: "Seen on real machines, in every edition.",
};
pub(crate) const NOT_BEFORE_EMPTY: Check = Check {
    id: "not-before-empty",
    severity: Severity::Required,
    need: Need::StartedEvent,
    title: "`NotBefore` of a started event is empty",
    reason: "Seen on real machines.",
};
pub(crate) const NOT_BEFORE_FIXED: Check = Check {
    id: "not-before-fixed",
    severity: Severity::Required,
    need: Need::Event,
    title: "`NotBefore` of an event never changes while it is scheduled",
    reason: "Clients plan with the first value that they read.",
};
pub(crate) const DESCRIPTION: Check = Check {
    id: "description",
    severity: Severity::Required,
    need: Need::Event,
    title: "`Description` is a text",
    reason: "Documented since 2019-04-01.",
};
pub(crate) const EVENT_SOURCE: Check = Check {
    id: "event-source",
    severity: Severity::Required,
    need: Need::Event,
    title: "`EventSource` is `Platform` or `User`",
    reason: "Documented since 2019-08-01.",
};
pub(crate) const DURATION: Check = Check {
    id: "duration",
    severity: Severity::Required,
    need: Need::Event,
    title: "`DurationInSeconds` is a whole number from -1 on",
    reason: "Documented since 2020-07-01.",
};
pub(crate) const FREEZE_ANNOUNCED: Check = Check {
    id: "freeze-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Freeze is announced",
    reason: "Documented: the machine is paused for seconds.",
};
pub(crate) const REBOOT_ANNOUNCED: Check = Check {
    id: "reboot-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Reboot is announced",
    reason: "Documented: the machine is restarted.",
};
pub(crate) const REDEPLOY_ANNOUNCED: Check = Check {
    id: "redeploy-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Redeploy is announced",
    reason: "Documented: the machine moves to another host.",
};
pub(crate) const PREEMPT_ANNOUNCED: Check = Check {
    id: "preempt-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Preempt is announced",
    reason: "Documented since 2017-11-01: a spot machine is evicted.",
};
pub(crate) const TERMINATE_ANNOUNCED: Check = Check {
    id: "terminate-announced",
    severity: Severity::Required,
    need: Need::Cause,
    title: "A Terminate is announced",
    reason: "Documented since 2019-01-01: the machine is deleted.",
};
pub(crate) const MINIMUM_NOTICE: Check = Check {
    id: "minimum-notice",
    severity: Severity::Required,
    need: Need::Cause,
    title: "An announcement gives the minimum notice of its type",
    reason: "Documented: 15 minutes for Freeze and Reboot, 10 for Redeploy, 30 seconds for Preempt, 5 to 15 minutes for Terminate.",
};
pub(crate) const NO_EARLY_START: Check = Check {
    id: "no-early-start",
    severity: Severity::Required,
    need: Need::Event,
    title: "An unapproved event does not start before its `NotBefore`",
    reason: "Documented: it is the promise of the service.",
};
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
pub(crate) const EVENT_ENDS: Check = Check {
    id: "event-ends",
    severity: Severity::Required,
    need: Need::ApprovedEvent,
    title: "A started event ends: it is gone",
    reason: "Documented.",
};
