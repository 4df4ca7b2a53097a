//! Errors as JSON: an error that crossed a connection equals the original, or is rejected.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use forewarn_control::command::{
    BatchSizeError, CommandError, ControlCharacterError, HostWorkError, LookupError, TermsError,
    TimeZoneError,
};
use forewarn_control::refusal::Refusal as SharedRefusal;
use forewarn_control::shared::Role;
use forewarn_control::{ClusterId, ControlError, Denied, ScaleSetError};
use forewarn_lifecycle::{EventId, Name, Refusal, Seed, Size, Timestamp};
use forewarn_types::{BadName, Moment, Span};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::requests::{variant, variants};

/// A name that is derived, and not chosen: nobody can choose a colon.
fn name() -> Name {
    Name::new("web").unwrap().of_placement_group(2)
}

fn event() -> EventId {
    EventId::nth(&Seed([7; 16]), 1)
}

fn span() -> Span {
    Span(Duration::from_secs(3_661))
}

fn size() -> Size {
    Size { cpus: 4, memory_mib: 16_384 }
}

fn text() -> String {
    "a\n\"b\" \u{202e}".to_owned()
}

fn refusals() -> Vec<Refusal> {
    use Refusal as R;
    let with_name: [fn(Name) -> R; 30] = [
        R::NameTaken,
        R::TenantInUse,
        R::ScaleSetInUse,
        R::PartOfScaleSet,
        R::Standalone,
        R::NotAnInstance,
        R::HostNotHealthy,
        R::HostFailed,
        R::HostNeedsAttention,
        R::NotFenced,
        R::BeingFenced,
        R::HostInMaintenance,
        R::HostNotInMaintenance,
        R::MaintenanceUnderWay,
        R::NoReturn,
        R::NoStep,
        R::HostBusy,
        R::NoHost,
        R::TerminateOnSpot,
        R::NotSpot,
        R::NotRunning,
        R::Deallocated,
        R::UnderWay,
        R::NotWaiting,
        R::AlreadyDone,
        |machine| R::Pending { machine, event: event() },
        |machine| R::Planned { machine, event: Some(event()) },
        |machine| R::Planned { machine, event: None },
        |host| R::OtherZone { machine: host.clone(), host },
        |tenant| R::TooManyUserOperations { tenant, max: 3 },
    ];
    let mut all: Vec<_> = with_name.iter().map(|refusal| refusal(name())).collect();
    all.extend([
        R::NoSuchHost,
        R::NoSuchTenant,
        R::NoSuchMachine,
        R::NoSuchScaleSet,
        R::NoSuchRollout,
        R::NoSuchMaintenance,
        R::DomainOutOfRange,
        R::NothingUnfinished,
        R::UnknownEvent,
        R::NoEvents,
        R::AlreadyStarted,
        R::BrakeOn,
        R::NoHosts,
        R::PauseTooLong,
        R::FailureTooFar,
        R::HostInUse { host: name(), machines: text() },
        R::InstanceNumberPassed { name: name(), next: u32::MAX },
        R::UpdateDomainClash { host: name(), tenant: name(), present: 1, update_domain: 2 },
        R::HostsInRollout(vec![name(), name()]),
        R::HostsInRollout(Vec::new()),
        R::NoRoom { machine: name(), size: size(), hosts: text() },
        R::HostFull { host: name(), size: size(), free: text() },
        R::WindowsNeverMeet { host: name(), tenants: vec![name()] },
        R::TooMany { what: "hosts".into(), max: usize::MAX },
    ]);
    all
}

fn shared_refusals() -> Vec<SharedRefusal> {
    use SharedRefusal as R;
    vec![
        R::NoSuchCluster(ClusterId(3)),
        R::NoSuchToken(name()),
        R::NameTaken(name()),
        R::DefaultCluster,
        R::AdminOfTenants(name()),
        R::ScopeOfNothing { what: "clusters".into(), name: name() },
        R::ExpiredAlready(name()),
        R::NotNextToken { number: 3, next: 2 },
        R::BadBy,
        R::BadKey,
        R::KeyUsed(text()),
        R::AnswerTooLong { max: 7 },
        R::LinkTaken(text()),
        R::GroupTaken(text()),
        R::OperationTaken(text()),
        R::NoSuchWebhook(name()),
        R::WebhookOfNothing { what: "tenants".into(), name: name() },
        R::SecretInTheClear(name()),
        R::NoRoutingKey(name()),
        R::TooMany { what: "tokens".into(), max: 1 },
    ]
}

fn lookup_errors() -> Vec<LookupError> {
    let nothing = |similar| LookupError::Nothing { what: "host".into(), name: text(), similar };
    let several = LookupError::Several { name: text(), tenants: vec![text()] };
    vec![nothing(None), nothing(Some(text())), several]
}

fn time_zone_errors() -> Vec<TimeZoneError> {
    vec![TimeZoneError::Unknown { name: text(), hint: text() }, TimeZoneError::Unusable(text())]
}

fn bad_names() -> Vec<BadName> {
    vec![BadName::Empty, BadName::TooLong(99), BadName::Character('\u{202e}'), BadName::Dots]
}

fn command_errors() -> Vec<CommandError> {
    use CommandError as E;
    let control = json!({ "what": "the value of a tag", "text": text() });
    let control: ControlCharacterError = serde_json::from_value(control).unwrap();
    let mut all = vec![
        E::Notice(span()),
        E::Batch(BatchSizeError(101)),
        E::WithMachines(text()),
        E::WithWindows(text()),
        E::EventId(text()),
        E::TooMany { what: "tags".into(), machine: text(), max: 50 },
        E::RolloutTerms(TermsError::Share(0)),
        E::HostWork(HostWorkError::Text),
        E::HostWork(HostWorkError::Duration(span())),
        E::Control(control),
    ];
    all.extend(lookup_errors().into_iter().map(E::Unknown));
    all.extend(bad_names().into_iter().map(|why| E::Name { name: text(), why }));
    all.extend(time_zone_errors().into_iter().map(E::TimeZone));
    all.extend(time_zone_errors().into_iter().map(|error| E::RolloutTerms(TermsError::Zone(error))));
    all
}

fn scale_set_errors() -> Vec<ScaleSetError> {
    use ScaleSetError as E;
    let mut all = vec![
        E::TooMany(1_001),
        E::NoHost { set: text(), wanted: 3, missing: 2, size: size() },
        E::FaultDomains(0),
        E::Protected { set: text(), wanted: 3, missing: 2 },
    ];
    all.extend(lookup_errors().into_iter().map(E::Unknown));
    all
}

fn denials() -> Vec<Denied> {
    vec![Denied::Role { needs: Role::Admin, has: Role::Viewer }, Denied::Limited, Denied::Tenants]
}

fn control_errors() -> Vec<ControlError> {
    use ControlError as E;
    let mut all = vec![
        E::AddressTaken { address: "10.0.0.1".parse().unwrap(), machine: text() },
        E::AddressTaken { address: "fe80::1".parse().unwrap(), machine: text() },
        E::GroupTaken(text()),
        E::Unclaimed,
        E::EndOfTime,
        E::NotLater(Moment(Timestamp::from_millis(1_767_225_605_123))),
        E::TokenGone,
        E::Changed,
        E::NoNotice(text()),
        E::NoEvent,
        E::ClusterInUse(text()),
        E::ClusterFailed(text()),
        E::NoSuchCluster,
        E::Elsewhere,
        E::EngineRestored(text()),
        E::ShownOnce(name()),
        E::NotPretending,
        E::RealClock,
        E::Outdated,
        E::Unavailable,
    ];
    all.extend(refusals().into_iter().map(E::Refused));
    all.extend(command_errors().into_iter().map(E::Bad));
    all.extend(scale_set_errors().into_iter().map(E::ScaleSetError));
    all.extend(shared_refusals().into_iter().map(E::Rejected));
    all.extend(denials().into_iter().map(E::Denied));
    all
}

/// The values have every variant of their type, and each is read as it was written.
fn check<T>(values: &[T])
where
    T: Serialize + DeserializeOwned + PartialEq + fmt::Debug + fmt::Display,
{
    let seen: BTreeSet<_> = values.iter().map(variant).collect();
    assert_eq!(seen, variants::<T>(json!("?")), "{}", std::any::type_name::<T>());
    for value in values {
        let json = serde_json::to_string(value).unwrap();
        let read: T = serde_json::from_str(&json).unwrap();
        assert_eq!((&read, read.to_string()), (value, value.to_string()), "{json}");
    }
}

/// promise: C3
#[test]
fn every_error_is_read_from_json_as_it_was_written() {
    check(&control_errors());
    check(&refusals());
    check(&shared_refusals());
    check(&command_errors());
    check(&scale_set_errors());
    check(&lookup_errors());
    check(&denials());
    check(&time_zone_errors());
    check(&bad_names());
    check(&[TermsError::Share(0), TermsError::Zone(TimeZoneError::Unusable(text()))]);
    check(&[HostWorkError::Text, HostWorkError::Duration(span())]);
}

/// promise: C3
#[test]
fn an_error_that_is_not_exact_is_rejected() {
    let read = |json: &Value| serde_json::from_value::<ControlError>(json.clone());
    let planned = json!({ "Refused": { "Planned": { "machine": "web_1", "event": null } } });
    assert!(read(&planned).is_ok());
    let nothing =
        json!({ "Bad": { "Unknown": { "Nothing": { "what": "host", "name": "h", "similar": null } } } });
    assert!(read(&nothing).is_ok());
    for (json, place, member) in
        [(planned, "/Refused/Planned", "event"), (nothing, "/Bad/Unknown/Nothing", "similar")]
    {
        let mut more = json.clone();
        more.pointer_mut(place).unwrap()["more"] = json!(1);
        let problem = read(&more).unwrap_err().to_string();
        assert!(problem.starts_with("unknown field `more`"), "{problem}");
        let mut missing = json;
        missing.pointer_mut(place).unwrap().as_object_mut().unwrap().shift_remove(member).unwrap();
        let problem = read(&missing).unwrap_err().to_string();
        assert!(problem.starts_with(&format!("missing field `{member}`")), "{problem}");
    }
    for wrong in [json!("Nowhere"), json!({ "Refused": { "NoHost": "a b" } }), json!({ "Unavailable": {} })] {
        assert!(read(&wrong).is_err(), "{wrong}");
    }
}
