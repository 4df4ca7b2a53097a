//! Checks of requests and of the head of responses.

use crate::check::{Check, Need, Severity};

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
