//! Why the endpoint and hyper disagree: each reason, and how it is recognised without asking either of them.

use std::fmt;

use super::message::Message;
use super::{Seen, Side};

/// Why one of them takes what the other does not. docs/reference/http.md says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    Host,
    LineEnds,
    Ascii,
    ProxyFields,
    Size,
    TargetForm,
    Percent,
    Parameters,
    BodyOfPoll,
    OneLength,
    Chunks,
    Expect,
    OldProtocol,
    ExpectRefused,
    ManyRequests,
    HyperTarget,
    HyperConnect,
}

/// A disagreement without a reason.
#[derive(Debug)]
pub(crate) struct Disagreement {
    endpoint: Seen,
    hyper: Seen,
    rest: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { endpoint, hyper, rest } = self;
        write!(f, "the endpoint {endpoint:?}, hyper {hyper:?}, from here on: {rest:?}")
    }
}

impl Reason {
    pub(crate) const ALL: [Self; 17] = [
        Self::Host,
        Self::LineEnds,
        Self::Ascii,
        Self::ProxyFields,
        Self::Size,
        Self::TargetForm,
        Self::Percent,
        Self::Parameters,
        Self::BodyOfPoll,
        Self::OneLength,
        Self::Chunks,
        Self::Expect,
        Self::OldProtocol,
        Self::ExpectRefused,
        Self::ManyRequests,
        Self::HyperTarget,
        Self::HyperConnect,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::LineEnds => "line-ends",
            Self::Ascii => "ascii",
            Self::ProxyFields => "proxy-fields",
            Self::Size => "size",
            Self::TargetForm => "target-form",
            Self::Percent => "percent",
            Self::Parameters => "parameters",
            Self::BodyOfPoll => "body-of-poll",
            Self::OneLength => "one-length",
            Self::Chunks => "chunks",
            Self::Expect => "expect",
            Self::OldProtocol => "old-protocol",
            Self::ExpectRefused => "expect-refused",
            Self::ManyRequests => "many-requests",
            Self::HyperTarget => "hyper-target",
            Self::HyperConnect => "hyper-connect",
        }
    }

    /// Who takes less, where this is the reason; nobody, where one of them has stopped to look.
    const fn stricter(self) -> Option<Side> {
        match self {
            Self::OldProtocol | Self::ExpectRefused | Self::ManyRequests | Self::HyperConnect => None,
            Self::HyperTarget => Some(Side::Hyper),
            Self::Host
            | Self::LineEnds
            | Self::Ascii
            | Self::ProxyFields
            | Self::Size
            | Self::TargetForm
            | Self::Percent
            | Self::Parameters
            | Self::BodyOfPoll
            | Self::OneLength
            | Self::Chunks
            | Self::Expect => Some(Side::Endpoint),
        }
    }

    /// Whether it may be the reason: `before` is the last message that both took, `here` the one that only one took.
    fn applies(self, taken: usize, before: Option<&Message>, here: &Message) -> bool {
        match self {
            Self::Host => here.has_wrong_host(),
            Self::LineEnds => here.has_torn_lines(),
            Self::Ascii => !here.head.is_ascii(),
            Self::ProxyFields => here.has_proxy_fields(),
            Self::Size => here.is_large(),
            Self::TargetForm => !here.target.starts_with('/') || here.target.contains('#'),
            Self::Percent => here.has_wrong_percent(),
            Self::Parameters => here.target.matches('&').count() >= 32,
            Self::BodyOfPoll => here.is_poll() && here.has_body(),
            Self::OneLength => here.has_doubtful_length(),
            Self::Chunks => here.is_chunked(),
            Self::Expect => here.values("expect").any(|value| !value.eq_ignore_ascii_case("100-continue")),
            Self::OldProtocol => before.is_some_and(|before| before.is_old) || here.is_old,
            Self::ExpectRefused => {
                before.into_iter().chain([here]).any(|message| message.values("expect").next().is_some())
            }
            Self::ManyRequests => taken == 1_000,
            Self::HyperTarget => {
                here.target.chars().any(|c| "\"<>\\^`{|}".contains(c)) || !here.is_usual_target()
            }
            Self::HyperConnect => before.is_some_and(|before| before.method == "CONNECT"),
        }
    }
}

/// Finds the reason. `messages` gives the bytes from the last message that both took on, and from the first that only one took.
pub(crate) fn explain(
    mut endpoint: Seen,
    hyper: Seen,
    messages: impl FnOnce(usize) -> (Option<Message>, Message),
) -> Result<Option<Reason>, Disagreement> {
    let is_same = |endpoint: &Seen| (endpoint.taken, endpoint.refused) == (hyper.taken, hyper.refused);
    if endpoint.refused_last && !is_same(&endpoint) {
        endpoint = Seen { taken: endpoint.taken - 1, refused: true, refused_last: false };
    }
    let stricter = if endpoint.taken != hyper.taken {
        if endpoint.taken < hyper.taken { Side::Endpoint } else { Side::Hyper }
    } else if endpoint.refused != hyper.refused {
        if endpoint.refused { Side::Endpoint } else { Side::Hyper }
    } else {
        return Ok(None);
    };
    let taken = endpoint.taken.min(hyper.taken);
    let (before, here) = messages(taken);
    let mut reasons =
        Reason::ALL.into_iter().filter(|reason| reason.stricter().is_none_or(|side| side == stricter));
    let reason = reasons.find(|reason| reason.applies(taken, before.as_ref(), &here));
    reason.map(Some).ok_or_else(|| Disagreement { endpoint, hyper, rest: here.shown() })
}
