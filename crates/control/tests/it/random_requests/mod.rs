//! Random requests: every variant of a request, and of everything in it.

mod named;
mod rules;

use std::fmt;
use std::time::Duration;

use forewarn_control::ClusterId;
use forewarn_control::Permit;
use forewarn_control::request::{
    Administration, ClusterRequest, CommandBatch, ForwardId, HostNames, IdempotencyKey, LinkTarget,
    PermitCheck, Request, RequestContext, ResourceWrite, SharedRequest, Transaction,
};
use forewarn_control::resources::{Body, Link};
use forewarn_control::shared::{TokenHash, WebhookCommand, WebhookDefinition};
use forewarn_types::{HostId, Span};
use proptest::prelude::*;
use serde_json::Value;

use forewarn_testkit::shared_state::{claims, deliveries, groups, roles, scopes, webhooks};
use rules::{machines, names, reports, sets, targets, tenants, timestamps, works};

pub fn requests() -> impl Strategy<Value = Request> {
    prop_oneof![
        3 => (any::<u32>(), cluster_requests()).prop_map(|(id, request)| Request::Cluster(ClusterId(id), request)),
        1 => shared_requests().prop_map(Request::Shared),
    ]
}

fn cluster_requests() -> BoxedStrategy<ClusterRequest> {
    use ClusterRequest as C;
    let report = (works(), targets(), reports(), prop::option::of(texts()));
    let report = report.prop_map(|(work, target, report, reason)| C::Report { work, target, report, reason });
    let suspension = (works(), targets(), texts());
    let suspension = suspension.prop_map(|(work, target, reason)| C::Suspend { work, target, reason });
    let reminder = (works(), any::<u32>(), 0..86_400_u32).prop_map(|(work, host, seconds)| {
        let interval = Span(Duration::from_secs(u64::from(seconds)));
        C::Remind { work, host: HostId(host), interval }
    });
    let commands = (prop::collection::vec(named::commands(), 0..3), contexts());
    let commands = commands.prop_map(|(commands, context)| C::Commands(CommandBatch { commands, context }));
    prop_oneof![
        3 => rules::commands().prop_map(C::Rules),
        1 => report,
        1 => suspension,
        1 => reminder,
        3 => commands,
        1 => (named::wishes(), contexts()).prop_map(|(command, context)| C::ScaleSet { command, context }),
        2 => (transactions(), contexts())
            .prop_map(|(transaction, context)| C::Transaction { transaction, context }),
        1 => Just(C::Sweep),
        1 => deliveries().prop_map(C::AdvanceWebhooks),
        1 => (texts(), prop::option::of(keys())).prop_map(|(by, once)| C::Close { by, once }),
    ]
    .boxed()
}

fn shared_requests() -> BoxedStrategy<SharedRequest> {
    use SharedRequest as S;
    prop_oneof![
        3 => (administrations(), contexts())
            .prop_map(|(change, context)| S::Administer { change, context }),
        1 => (named::clock_orders(), contexts()).prop_map(|(order, context)| S::SetClock { order, context }),
        1 => contexts().prop_map(|context| S::KeepReceipt { context }),
        2 => (webhooks(), contexts()).prop_map(|(command, context)| match command {
            WebhookCommand::Add(new) => S::Administer { change: added(*new), context },
            WebhookCommand::Confirm { webhook, per_minute } => S::ConfirmWebhook { webhook, per_minute },
            WebhookCommand::Remove(name) => {
                S::Administer { change: Administration::RemoveWebhook(name), context }
            }
            WebhookCommand::KeepUndelivered { cluster, messages: undelivered } => {
                let RequestContext { by, once, .. } = context;
                S::RemoveClosed { cluster, by, once, undelivered }
            }
            WebhookCommand::AdvanceUndelivered { cluster, webhook, progress } => {
                S::AdvanceUndelivered { cluster, reports: vec![(webhook, progress)] }
            }
            WebhookCommand::EndUndelivered { cluster, webhook } => S::EndUndelivered { cluster, webhook },
        }),
        1 => (ids(), prop::collection::vec(claims(), 0..3))
            .prop_map(|(cluster, claims)| S::TakeClaims { cluster, claims }),
        1 => (ids(), prop::collection::vec(groups(), 0..3))
            .prop_map(|(cluster, groups)| S::ReleaseClaims { cluster, groups }),
    ]
    .boxed()
}

fn ids() -> impl Strategy<Value = ClusterId> {
    any::<u32>().prop_map(ClusterId)
}

fn keys() -> impl Strategy<Value = IdempotencyKey> {
    (texts(), any::<[u8; 32]>()).prop_map(|(key, fingerprint)| IdempotencyKey { key, fingerprint })
}

fn added(new: WebhookDefinition) -> Administration {
    let WebhookDefinition { name, url, format, filter, authorization, .. } = new;
    Administration::AddWebhook { name, url, format, filter, authorization }
}

fn administrations() -> BoxedStrategy<Administration> {
    use Administration as A;
    let token = (any::<u32>(), names(), roles(), scopes(), any::<[u8; 32]>(), prop::option::of(timestamps()));
    prop_oneof![
        names().prop_map(A::CreateCluster),
        (names(), names()).prop_map(|(cluster, name)| A::RenameCluster { cluster, name }),
        names().prop_map(A::RemoveCluster),
        token.prop_map(|(number, name, role, scope, hash, expires)| {
            A::IssueToken { number, name, role, scope, hash: TokenHash(hash), expires }
        }),
        names().prop_map(A::RevokeToken),
    ]
    .boxed()
}

fn contexts() -> BoxedStrategy<RequestContext> {
    let hosts = one_of(&[HostNames::FromCaller, HostNames::ChosenHere]);
    let permit = (texts(), roles(), scopes(), prop::option::of(any::<u32>()), hosts);
    let permit = permit.prop_map(|(by, role, scope, token, hosts)| PermitCheck {
        permit: Permit { by, role, scope, token },
        hosts,
    });
    let numbers = (any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<u64>>());
    let asked = (prop::option::of(values()), any::<bool>());
    let names = (prop::option::of(keys()), any::<Option<[u8; 16]>>());
    (texts(), numbers, prop::option::of(permit), names, asked)
        .prop_map(
            |(by, (token, because, if_revision), permit, (once, forwarded), (asked, require_notice))| {
                let forwarded = forwarded.map(ForwardId);
                RequestContext {
                    by,
                    token,
                    permit,
                    because,
                    once,
                    forwarded,
                    if_revision,
                    asked,
                    require_notice,
                }
            },
        )
        .boxed()
}

fn transactions() -> BoxedStrategy<Transaction> {
    let commands = prop::collection::vec(named::commands(), 0..2);
    let writes = prop::collection::vec(writes(), 0..3);
    (commands, writes, prop::option::of(values()), prop::option::of(texts()))
        .prop_map(|(commands, writes, asked, operation)| Transaction { commands, writes, asked, operation })
        .boxed()
}

fn writes() -> BoxedStrategy<ResourceWrite> {
    let known = prop_oneof![
        machines().prop_map(Link::Machine),
        tenants().prop_map(Link::Tenant),
        sets().prop_map(Link::ScaleSet)
    ];
    let link = prop_oneof![
        known.prop_map(LinkTarget::Known),
        texts().prop_map(LinkTarget::Machine),
        texts().prop_map(LinkTarget::Tenant),
        texts().prop_map(LinkTarget::ScaleSet),
    ];
    let body = || prop::collection::vec(any::<u8>(), 0..20).prop_map(|bytes| Body(bytes.into()));
    prop_oneof![
        (texts(), prop::option::of(link), body(), body())
            .prop_map(|(id, link, body, notes)| ResourceWrite::Put { id, link, body, notes }),
        texts().prop_map(ResourceWrite::Remove),
        texts().prop_map(ResourceWrite::Leave),
    ]
    .boxed()
}

/// Any JSON: also `null`, which is not the same as nothing.
fn values() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((texts(), inner), 0..3).prop_map(|members| members.into_iter().collect()),
        ]
    })
    .boxed()
}

fn texts() -> BoxedStrategy<String> {
    let any_text = prop::collection::vec(any::<char>(), 0..6).prop_map(|chars| chars.into_iter().collect());
    prop_oneof![2 => "[a-z0-9/._-]{0,10}", 1 => any_text].boxed()
}

fn one_of<T: Clone + fmt::Debug + 'static>(all: &[T]) -> impl Strategy<Value = T> + use<T> {
    prop::sample::select(all.to_vec())
}

/// A strategy in a box, so that many of them fit in a list.
fn mapped<S: Strategy + 'static, T: fmt::Debug>(
    strategy: S,
    map: impl Fn(S::Value) -> T + 'static,
) -> BoxedStrategy<T> {
    strategy.prop_map(map).boxed()
}
