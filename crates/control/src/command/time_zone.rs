//! Time zones by name, from the time zone database of the system.
//!
//! This is the only place where the control plane reads something outside its arguments. What it finds becomes part of
//! the window, and so of the decided change: nothing is looked up again, neither in a replay nor by another server. A
//! newer database becomes effective when a window is given again.

use forewarn_lifecycle::{OffsetChange, TimeZone, limits};
use forewarn_types::Timestamp;
use jiff::tz;
use serde::{Deserialize, Serialize};

use crate::command::lookup::similar;

/// The reason why a window cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(deny_unknown_fields)]
pub enum TimeZoneError {
    /// The database does not have the name.
    #[error("unknown time zone: {name}\n  hint: {hint}")]
    Unknown { name: String, hint: String },
    /// The zone cannot be expressed as offsets of whole minutes.
    #[error("the time zone of a window cannot be used: {0}")]
    Unusable(String),
}

/// The offsets of a zone are taken from the database from 2024 on.
const FIRST_SECOND: i64 = 1_704_067_200;

/// The offsets of a zone are taken from the database up to 2050. The last one stays.
const END_SECOND: i64 = 2_524_608_000;

/// Looks up a time zone, in any case of its letters.
pub(crate) fn find_time_zone(name: &str) -> Result<TimeZone, TimeZoneError> {
    let found = Some(name).filter(|name| TimeZone::is_name(name)).and_then(|name| tz::db().get(name).ok());
    let Some(zone) = found else { return Err(unknown(name)) };
    let unusable = || TimeZoneError::Unusable(name.to_owned());
    let first = jiff::Timestamp::from_second(FIRST_SECOND).map_err(|_| unusable())?;
    let minutes = |offset: tz::Offset| i16::try_from(offset.seconds() / 60).map_err(|_| unusable());
    let offset_minutes = minutes(zone.to_offset(first))?;
    let following = zone.following(first).take_while(|change| change.timestamp().as_second() < END_SECOND);
    let mut changes = Vec::new();
    let mut last = offset_minutes;
    for change in following {
        let offset_minutes = minutes(change.offset())?;
        // The abbreviation of a zone may change without its offset.
        if offset_minutes != last && changes.len() < limits::OFFSET_CHANGES_MAX {
            let at = Timestamp::from_millis(change.timestamp().as_millisecond());
            changes.push(OffsetChange { at, offset_minutes });
            last = offset_minutes;
        }
    }
    TimeZone::new(zone.iana_name().unwrap_or(name), offset_minutes, changes).ok_or_else(unusable)
}

fn unknown(name: &str) -> TimeZoneError {
    let known: Vec<_> = tz::db().available().map(|name| name.to_string()).collect();
    let hint = if known.is_empty() {
        "this system has no time zone database: install the package tzdata, or write an offset such as +01:00"
            .to_owned()
    } else {
        nearest(name, &known).map_or_else(
            || "write a name such as Europe/Berlin, or an offset such as +01:00".to_owned(),
            |nearest| format!("did you mean {nearest}?"),
        )
    };
    TimeZoneError::Unknown { name: name.chars().take(limits::ZONE_NAME_BYTES_MAX).collect(), hint }
}

/// The known name with the same place, such as `Europe/Berlin` for `Berlin` or `Europa/Berlin`; else a similar one.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let place = |name: &'a str| name.rsplit('/').next().unwrap_or_default();
    let wanted = name.rsplit('/').next().unwrap_or_default();
    let all = || known.iter().map(String::as_str);
    let same_place = all().find(|known| known.contains('/') && place(known).eq_ignore_ascii_case(wanted));
    same_place.or_else(|| similar(name, all()))
}

#[cfg(test)]
mod tests;
