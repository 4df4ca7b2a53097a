//! Refusals of the rules, in the codes of Azure.

use forewarn_lifecycle::Refusal;

use super::error::ArmError;
use forewarn_control::{CommandError, LookupError, ScaleSetError};

/// Message for a resource that does not exist, or no longer.
const NOT_FOUND: &str = "The entity was not found in this Azure location.";

/// Converts a refusal of the rules.
///
/// ```
/// use forewarn_lifecycle::{Name, Refusal};
/// use forewarn_azure::refused;
///
/// let error = refused(&Refusal::NotSpot(Name::new("web_0").unwrap()));
/// assert_eq!(
///     error.to_string(),
///     "(OperationNotAllowed) Operation 'simulateEviction' is allowed only for Spot Virtual Machines"
/// );
/// ```
#[must_use]
pub fn refused(refusal: &Refusal) -> ArmError {
    let message = || sentence(&refusal.to_string());
    match refusal {
        Refusal::NoSuchHost
        | Refusal::NoSuchTenant
        | Refusal::NoSuchMachine
        | Refusal::NoSuchScaleSet
        | Refusal::NoSuchRollout
        | Refusal::NoSuchMaintenance => not_found(),
        Refusal::NameTaken(_)
        | Refusal::InstanceNumberPassed { .. }
        | Refusal::Pending { .. }
        | Refusal::UnderWay(_)
        | Refusal::Planned { .. }
        | Refusal::AlreadyStarted
        | Refusal::BrakeOn => ArmError::new(409, "Conflict", message()),
        Refusal::TenantInUse(name) => {
            let message = format!(
                "Availability Set '{name}' cannot be deleted. Before deleting an Availability Set please ensure that it \
                 does not contain any VM."
            );
            ArmError::new(409, "OperationNotAllowed", message)
        }
        Refusal::NotSpot(_) => {
            let message = "Operation 'simulateEviction' is allowed only for Spot Virtual Machines";
            ArmError::new(409, "OperationNotAllowed", message)
        }
        Refusal::HostInUse { .. }
        | Refusal::ScaleSetInUse(_)
        | Refusal::PartOfScaleSet(_)
        | Refusal::Standalone(_)
        | Refusal::NotAnInstance(_)
        | Refusal::NotRunning(_)
        | Refusal::Deallocated(_)
        | Refusal::TooManyUserOperations { .. }
        | Refusal::NotWaiting(_)
        | Refusal::AlreadyDone(_)
        | Refusal::WindowsNeverMeet { .. }
        | Refusal::HostsInRollout(_)
        | Refusal::NotFenced(_)
        | Refusal::BeingFenced(_)
        | Refusal::NoStep(_)
        | Refusal::HostNotInMaintenance(_)
        | Refusal::MaintenanceUnderWay(_)
        | Refusal::NoReturn(_)
        | Refusal::NothingUnfinished
        | Refusal::TooMany { .. } => ArmError::new(409, "OperationNotAllowed", message()),
        Refusal::UpdateDomainClash { .. }
        | Refusal::OtherZone { .. }
        | Refusal::HostNotHealthy(_)
        | Refusal::HostFailed(_)
        | Refusal::HostNeedsAttention(_)
        | Refusal::HostInMaintenance(_)
        | Refusal::HostBusy(_)
        | Refusal::NoHost(_)
        | Refusal::HostFull { .. } => allocation_failed(&message()),
        // A client of this API sees no hosts.
        Refusal::NoRoom { machine, .. } => refused(&Refusal::NoHost(machine.clone())),
        Refusal::TerminateOnSpot(_) => ArmError::invalid("terminateNotificationProfile", message()),
        Refusal::PauseTooLong => ArmError::invalid("pauseTimeBetweenBatches", message()),
        Refusal::UnknownEvent => ArmError::new(404, "InvalidScheduledEventId", "Scheduled event not found"),
        Refusal::DomainOutOfRange | Refusal::NoEvents | Refusal::NoHosts | Refusal::FailureTooFar => {
            ArmError::new(400, "BadRequest", message())
        }
    }
}

/// Converts an unknown or ambiguous name.
#[must_use]
pub fn unknown(unknown: &LookupError) -> ArmError {
    let message = sentence(&unknown.to_string());
    match unknown {
        LookupError::Nothing { .. } => ArmError::new(404, "NotFound", message),
        LookupError::Several { .. } => ArmError::new(409, "Conflict", message),
    }
}

/// Converts an invalid command.
#[must_use]
pub fn bad_command(bad: &CommandError) -> ArmError {
    let message = || sentence(&bad.to_string());
    match bad {
        CommandError::Unknown(unknown) => self::unknown(unknown),
        CommandError::Name { .. } => ArmError::new(400, "InvalidResourceName", message()).at("name"),
        CommandError::Notice(_) => ArmError::invalid("notBeforeTimeout", message()),
        CommandError::Batch(_) => ArmError::invalid("maxBatchInstancePercent", message()),
        CommandError::TooMany { .. } | CommandError::Control(_) => ArmError::invalid("tags", message()),
        CommandError::WithMachines(_)
        | CommandError::WithWindows(_)
        | CommandError::EventId(_)
        | CommandError::RolloutTerms(_)
        | CommandError::TimeZone(_)
        | CommandError::HostWork(_) => ArmError::new(400, "BadRequest", message()),
    }
}

/// Converts an error of a scale set command.
#[must_use]
pub fn scale_set_error(bad: &ScaleSetError) -> ArmError {
    let message = sentence(&bad.to_string());
    match bad {
        ScaleSetError::Unknown(unknown) => self::unknown(unknown),
        ScaleSetError::TooMany(_) => ArmError::invalid("sku.capacity", message),
        ScaleSetError::NoHost { .. } => allocation_failed(&message),
        ScaleSetError::FaultDomains(_) => ArmError::invalid("platformFaultDomainCount", message),
        ScaleSetError::Protected { .. } => {
            ArmError::new(409, "OperationNotAllowed", message).at("sku.capacity")
        }
    }
}

/// Error for a resource that does not exist, or no longer.
pub(super) fn not_found() -> ArmError {
    ArmError::new(404, "NotFound", NOT_FOUND)
}

/// Error for a machine that no host can take.
pub(super) fn allocation_failed(why: &str) -> ArmError {
    ArmError::new(409, "AllocationFailed", format!("Allocation failed. {why}"))
}

/// Error for a property that cannot change.
pub(super) fn not_changeable(property: &'static str) -> ArmError {
    let message = format!("Changing property '{property}' is not allowed.");
    ArmError::new(409, "PropertyChangeNotAllowed", message).at(property)
}

/// The text of an error as sentences on one line: clients show them after a code.
fn sentence(text: &str) -> String {
    let text = text.replace("\n  hint: ", ". Hint: ");
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.ends_with(['.', '?', '!']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use forewarn_lifecycle::{EventId, Name, Size};
    use forewarn_types::Span;

    fn name() -> Name {
        Name::new("web_0").unwrap()
    }

    fn parts_of(error: &ArmError) -> (u16, &str, Option<&str>) {
        (error.status, error.code.as_ref(), error.target.as_deref())
    }

    /// promise: Z6
    #[test]
    fn refusals_have_the_codes_of_azure() {
        let event = EventId::parse("28512af7-c957-4500-9bc4-842d6fb531e4").unwrap();
        for (refusal, status, code) in [
            (Refusal::NoSuchMachine, 404, "NotFound"),
            (Refusal::NoSuchScaleSet, 404, "NotFound"),
            (Refusal::NameTaken(name()), 409, "Conflict"),
            (Refusal::Pending { machine: name(), event }, 409, "Conflict"),
            (Refusal::UnderWay(name()), 409, "Conflict"),
            (Refusal::TenantInUse(name()), 409, "OperationNotAllowed"),
            (Refusal::NotRunning(name()), 409, "OperationNotAllowed"),
            (Refusal::NotSpot(name()), 409, "OperationNotAllowed"),
            (Refusal::TooManyUserOperations { tenant: name(), max: 10 }, 409, "OperationNotAllowed"),
            (Refusal::NoHost(name()), 409, "AllocationFailed"),
            (
                Refusal::NoRoom { machine: name(), size: Size::NONE, hosts: "h1".to_owned() },
                409,
                "AllocationFailed",
            ),
            (Refusal::HostBusy(name()), 409, "AllocationFailed"),
            (Refusal::TerminateOnSpot(name()), 400, "InvalidParameter"),
            (Refusal::PauseTooLong, 400, "InvalidParameter"),
            (Refusal::UnknownEvent, 404, "InvalidScheduledEventId"),
            (Refusal::NoEvents, 400, "BadRequest"),
        ] {
            let error = refused(&refusal);
            assert_eq!((error.status, error.code.as_ref()), (status, code), "{refusal}");
            assert!(!error.message.contains('\n'), "{}", error.message);
        }
    }

    /// promise: C6
    #[test]
    fn obstacles_are_named() {
        let event = EventId::parse("28512af7-c957-4500-9bc4-842d6fb531e4").unwrap();
        let message = refused(&Refusal::Pending { machine: name(), event }).message;
        assert_eq!(
            message,
            "An operation is already pending for web_0: event 28512AF7-C957-4500-9BC4-842D6FB531E4."
        );
        let message = refused(&Refusal::Deallocated(name())).message;
        assert_eq!(message, "The machine is deallocated: web_0. Hint: start it first.");
    }

    #[test]
    fn unknown_names_and_invalid_commands_are_reported() {
        let nothing =
            LookupError::Nothing { what: "machine".into(), name: "wbe".into(), similar: Some("web".into()) };
        assert_eq!(unknown(&nothing).message, "No such machine: wbe. Hint: did you mean web?");
        let several = LookupError::Several { name: "a".into(), tenants: vec!["x/a".into(), "y/a".into()] };
        assert_eq!(parts_of(&scale_set_error(&ScaleSetError::Unknown(several))), (409, "Conflict", None));
        let notice = CommandError::Notice(Span(std::time::Duration::from_mins(1)));
        for (bad, expected) in [
            (CommandError::Unknown(nothing), (404, "NotFound", None)),
            (notice, (400, "InvalidParameter", Some("notBeforeTimeout"))),
            (
                CommandError::Batch(forewarn_control::BatchSizeError(0)),
                (400, "InvalidParameter", Some("maxBatchInstancePercent")),
            ),
            (CommandError::EventId("x".into()), (400, "BadRequest", None)),
            (CommandError::WithMachines("x".into()), (400, "BadRequest", None)),
            (
                CommandError::TooMany { what: "tags".into(), machine: "m".into(), max: 50 },
                (400, "InvalidParameter", Some("tags")),
            ),
        ] {
            assert_eq!(parts_of(&bad_command(&bad)), expected, "{bad}");
        }
        let why = Name::new("a b").unwrap_err();
        let bad = CommandError::Name { name: "a b".into(), why };
        assert_eq!(parts_of(&bad_command(&bad)), (400, "InvalidResourceName", Some("name")));
    }

    #[test]
    fn a_scale_out_without_room_reports_what_is_needed() {
        assert_eq!(
            parts_of(&scale_set_error(&ScaleSetError::TooMany(1_001))),
            (400, "InvalidParameter", Some("sku.capacity"))
        );
        let error = scale_set_error(&ScaleSetError::NoHost {
            set: "web".into(),
            wanted: 3,
            missing: 2,
            size: Size::NONE,
        });
        assert_eq!(parts_of(&error), (409, "AllocationFailed", None));
        assert!(error.message.starts_with("Allocation failed. No host can take more instances of web"));
        assert!(error.message.contains("Hint: each instance needs a healthy host"), "{}", error.message);
    }

    #[test]
    fn a_property_that_cannot_change_is_named() {
        let error = not_changeable("priority");
        assert_eq!(parts_of(&error), (409, "PropertyChangeNotAllowed", Some("priority")));
        assert_eq!(error.message, "Changing property 'priority' is not allowed.");
    }
}
