//! Checks of documents and their events.

use crate::check::{Check, Need, Severity};

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
