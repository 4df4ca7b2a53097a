//! Terms of a rollout in their written form, and the selection of its hosts.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use forewarn_lifecycle::{
    Cluster, Confirm, FaultDomains, Health, HealthGate, Host, HostAttention, HostId, HostTask, HostWork,
    Percent, RolloutTerms, Weekdays, Window, Zone,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::command::host_work::{HostWorkError, StepOptions, is_false};
use crate::command::lookup::{LookupError, find_host};
use crate::command::object::objects;
use crate::command::schema;
use forewarn_types::{Span, list};

/// A rollout: the work, the hosts, and the terms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct RolloutEntry {
    /// The kind of work.
    pub kind: WorkWord,
    /// The hosts.
    pub hosts: HostSelection,
    /// The terms.
    #[serde(default)]
    pub terms: TermsEntry,
    /// The work on each host, for the driver and for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::WorkText>")]
    pub work: Option<String>,
    /// True if only machines are worked on, and no step is taken on the hosts themselves. `work` has no effect then.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_work: bool,
    /// Announced length of the interruption: 1 second to 18 hours; the usual one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<schema::Interruption>")]
    pub duration: Option<Span>,
}

impl RolloutEntry {
    /// The work on each host.
    ///
    /// # Errors
    /// Fails if the text or the duration is invalid.
    pub fn task(&self) -> Result<HostTask, HostWorkError> {
        let options =
            StepOptions { work: self.work.as_deref(), no_work: self.no_work, duration: self.duration };
        options.task(self.kind.into())
    }
}

/// Work of a rollout on hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkWord {
    /// Updates the hosts while their machines are paused.
    Update,
    /// Updates the network of the hosts.
    Network,
    /// Moves the machines of the hosts live.
    Migrate,
    /// Restarts the hosts while their machines are stopped.
    Reboot,
}

/// WindowsVisitor of hosts: by name, all, or those of a zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "hosts are a list of names (at least one), \"all\", or {\"zone\": N}")]
pub enum HostSelection {
    /// These hosts, in this order.
    Names(
        #[serde(deserialize_with = "list::at_least_one")]
        #[schemars(with = "schema::AtLeastOne<schema::Name>")]
        Vec<String>,
    ),
    /// Every host of the cluster that has not failed, needs no attention and is not in maintenance mode.
    Every(AllWord),
    /// Every host of a zone that has not failed, needs no attention and is not in maintenance mode.
    Zone(ZoneSelection),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AllWord {
    /// Everything.
    All,
}

/// A zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct ZoneSelection {
    /// Number of the zone.
    pub zone: u16,
}

/// Terms of a rollout. Absent members have their default, or keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct TermsEntry {
    /// Maximum number of hosts at once; 0 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u16>,
    /// Maximum percentage of the machines of any tenant at once, but at least one machine; 100 for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub tenant_share: Option<u8>,
    /// True if the machines of a tenant that are in work at once must be in one fault domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_fault_domain: Option<bool>,
    /// Times at which groups may start: a list of windows, or `"any"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<WindowSelection>,
    /// Pause between two groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_between: Option<Span>,
    /// Groups after which the rollout waits for `resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<ConfirmWord>,
    /// Health check of hosts between groups; on by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthWord>,
    /// Number of failed impacts after which the rollout pauses itself: 1 by default, 0 for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_after: Option<u16>,
}

/// The times at which groups of a rollout may start: a list of windows, or `"any"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WindowSelection {
    /// Only in these windows.
    Windows(#[schemars(length(min = 1, max = 16))] Vec<WindowEntry>),
    /// At any time.
    Any(AnyWord),
}

/// The word `any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnyWord {
    /// Without a limit.
    Any,
}

/// Groups after which a rollout waits for a confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConfirmWord {
    /// None.
    Never,
    /// The first group.
    First,
    /// Every group.
    Each,
}

/// Health check of hosts between the groups of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthWord {
    /// Waits for unhealthy hosts.
    Awaited,
    /// Ignores the health of hosts.
    Ignored,
}

/// A window; a text such as `mon-fri 22:00-06:00 +01:00`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEntry(pub Window);

/// The reason why terms are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TermsError {
    /// The share of a tenant is zero or exceeds 100 %.
    #[error("tenant share must be 1 to 100 %, not {0} %")]
    Share(u8),
}

/// A text that is not a window.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid window {0:?}\n  hint: write 22:00-06:00, mon-fri 22:00-06:00 or \"sat,sun 00:00-24:00 +01:00\""
)]
pub struct WindowError(String);

objects! { RolloutEntry TermsEntry ZoneSelection }

/// Resolves the names of hosts.
pub(crate) fn find_hosts(cluster: &Cluster, names: &[String]) -> Result<Vec<HostId>, LookupError> {
    names.iter().map(|name| find_host(cluster, name)).collect()
}

impl HostSelection {
    /// The selected hosts, in the order of their names in the list, or in which they were added.
    ///
    /// # Errors
    /// Fails if a host is not found.
    pub fn resolve(&self, cluster: &Cluster) -> Result<Vec<HostId>, LookupError> {
        let zone = match self {
            Self::Names(names) => return find_hosts(cluster, names),
            Self::Every(AllWord::All) => None,
            Self::Zone(ZoneSelection { zone }) => Some(Zone(*zone)),
        };
        let meant = cluster.hosts().filter(|(_, host)| zone.is_none() || host.zone == zone);
        let is_usable = |host: &Host| {
            let is_free = host.attention == HostAttention::Unneeded && host.mode.is_none();
            host.health != Health::Failed && is_free
        };
        Ok(meant.filter(|(_, host)| is_usable(host)).map(|(id, _)| id).collect())
    }
}

impl WindowSelection {
    /// The windows; none for `"any"`.
    #[must_use]
    pub fn entries(&self) -> &[WindowEntry] {
        match self {
            Self::Windows(windows) => windows,
            Self::Any(AnyWord::Any) => &[],
        }
    }
}

/// Not derived: an untagged enum would hide the error in a window.
impl<'de> Deserialize<'de> for WindowSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WindowsVisitor;

        impl<'de> Visitor<'de> for WindowsVisitor {
            type Value = WindowSelection;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list of windows, or \"any\"")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<WindowSelection, E> {
                AnyWord::deserialize(word.into_deserializer()).map(WindowSelection::Any)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, windows: A) -> Result<WindowSelection, A::Error> {
                list::at_least_one(SeqAccessDeserializer::new(windows)).map(WindowSelection::Windows)
            }
        }

        deserializer.deserialize_any(WindowsVisitor)
    }
}

impl FromIterator<WindowEntry> for WindowSelection {
    fn from_iter<I: IntoIterator<Item = WindowEntry>>(windows: I) -> Self {
        let windows: Vec<_> = windows.into_iter().collect();
        if windows.is_empty() { Self::Any(AnyWord::Any) } else { Self::Windows(windows) }
    }
}

impl TermsEntry {
    /// Applies the changes to terms.
    ///
    /// # Errors
    /// Fails if a number is out of range.
    pub fn apply(&self, old: &RolloutTerms) -> Result<RolloutTerms, TermsError> {
        let mut terms = old.clone();
        if let Some(max) = self.at_once {
            terms.hosts_at_once = NonZeroU16::new(max);
        }
        if let Some(share) = self.tenant_share {
            let percent = Percent::new(share).ok_or(TermsError::Share(share))?;
            terms.tenant_share = Some(percent).filter(|_| share < 100);
        }
        if let Some(one) = self.one_fault_domain {
            terms.fault_domains = if one { FaultDomains::OneAtATime } else { FaultDomains::Any };
        }
        if let Some(windows) = &self.windows {
            terms.windows = windows.entries().iter().map(|WindowEntry(window)| *window).collect();
        }
        if let Some(Span(span)) = self.pause_between {
            terms.pause_between = span;
        }
        if let Some(word) = self.confirm {
            terms.confirm = match word {
                ConfirmWord::Never => Confirm::Never,
                ConfirmWord::First => Confirm::First,
                ConfirmWord::Each => Confirm::Each,
            };
        }
        if let Some(word) = self.health {
            terms.health = match word {
                HealthWord::Awaited => HealthGate::Awaited,
                HealthWord::Ignored => HealthGate::Ignored,
            };
        }
        if let Some(max) = self.stop_after {
            terms.stop_after = NonZeroU16::new(max);
        }
        Ok(terms)
    }
}

impl From<&RolloutTerms> for TermsEntry {
    fn from(terms: &RolloutTerms) -> Self {
        Self {
            at_once: Some(terms.hosts_at_once.map_or(0, NonZeroU16::get)),
            tenant_share: Some(terms.tenant_share.map_or(100, Percent::percent)),
            one_fault_domain: Some(terms.fault_domains == FaultDomains::OneAtATime),
            windows: Some(terms.windows.iter().copied().map(WindowEntry).collect()),
            pause_between: Some(Span(terms.pause_between)),
            confirm: Some(match terms.confirm {
                Confirm::Never => ConfirmWord::Never,
                Confirm::First => ConfirmWord::First,
                Confirm::Each => ConfirmWord::Each,
            }),
            health: Some(match terms.health {
                HealthGate::Awaited => HealthWord::Awaited,
                HealthGate::Ignored => HealthWord::Ignored,
            }),
            stop_after: Some(terms.stop_after.map_or(0, NonZeroU16::get)),
        }
    }
}

impl From<WorkWord> for HostWork {
    fn from(word: WorkWord) -> Self {
        match word {
            WorkWord::Update => Self::Update,
            WorkWord::Network => Self::NetworkUpdate,
            WorkWord::Migrate => Self::Migration,
            WorkWord::Reboot => Self::Restart,
        }
    }
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

impl fmt::Display for WindowEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(window) = self;
        if window.days() != Weekdays::ALL {
            write!(out, "{} ", show_days(window.days()))?;
        }
        let time = |minute: u16| format!("{:02}:{:02}", minute / 60, minute % 60);
        write!(out, "{}-{}", time(window.from_minute()), time(window.to_minute()))?;
        match window.offset_minutes() {
            0 => Ok(()),
            offset => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(out, " {sign}{}", time(offset.unsigned_abs()))
            }
        }
    }
}

/// Days in the order of the week: three and more that follow each other as a span, `mon-fri,sun`.
fn show_days(days: Weekdays) -> String {
    let mut spans: Vec<Vec<&str>> = Vec::new();
    let mut before = false;
    for (day, name) in (0u8..).zip(DAYS) {
        let is_in = days.contains(day);
        match spans.last_mut() {
            Some(span) if is_in && before => span.push(name),
            Some(_) | None if is_in => spans.push(vec![name]),
            Some(_) | None => {}
        }
        before = is_in;
    }
    let words = spans.iter().map(|span| match span.as_slice() {
        [first, _, .., last] => format!("{first}-{last}"),
        short => short.join(","),
    });
    words.collect::<Vec<_>>().join(",")
}

impl FromStr for WindowEntry {
    type Err = WindowError;

    fn from_str(text: &str) -> Result<Self, WindowError> {
        parse_window(text).map(Self).ok_or_else(|| WindowError(text.chars().take(100).collect()))
    }
}

/// `[DAYS] HH:MM-HH:MM [OFFSET]`: days are names or spans of them, with commas between; the offset is that from UTC.
fn parse_window(text: &str) -> Option<Window> {
    let mut words = text.split_whitespace().peekable();
    let has_days = words.peek()?.starts_with(|first: char| first.is_ascii_alphabetic());
    let days = if has_days { parse_days(words.next()?)? } else { Weekdays::ALL };
    let (from, to) = words.next()?.split_once('-')?;
    let (from, to) = (parse_minute(from)?, parse_minute(to)?);
    let offset = words.next().map_or(Some(0), parse_offset)?;
    // 24:00 is the midnight of the next day.
    if words.next().is_some() || from == 1440 { None } else { Window::new(days, from, to % 1440, offset) }
}

fn parse_days(text: &str) -> Option<Weekdays> {
    if text == "daily" {
        return Some(Weekdays::ALL);
    }
    let day = |name: &str| DAYS.iter().position(|day| *day == name.to_ascii_lowercase());
    let mut bits = 0u8;
    for span in text.split(',') {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        let (first, last) = (day(first)?, day(last)?);
        // A span may wrap around the end of the week.
        let length = (last + 7 - first) % 7;
        (0..=length).for_each(|days| bits |= 1 << ((first + days) % 7));
    }
    Weekdays::from_bits(bits)
}

fn parse_minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |digits: &str| {
        let right = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if right { digits.parse::<u16>().ok() } else { None }
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    (minutes < 60 && hours * 60 + minutes <= 1440).then_some(hours * 60 + minutes)
}

fn parse_offset(text: &str) -> Option<i16> {
    if matches!(text, "Z" | "UTC" | "utc") {
        return Some(0);
    }
    let minutes = i16::try_from(parse_minute(text.get(1..)?)?).ok()?;
    match text.as_bytes().first()? {
        b'+' => Some(minutes),
        b'-' => Some(-minutes),
        _ => None,
    }
}

/// Pattern of the texts that [`parse_window`] accepts, as far as a pattern can express it.
const WINDOW: &str = concat!(
    r"^((daily|(mon|tue|wed|thu|fri|sat|sun)(-(mon|tue|wed|thu|fri|sat|sun))?(,(mon|tue|wed|thu|fri|sat|sun)",
    r"(-(mon|tue|wed|thu|fri|sat|sun))?)*) )?([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)",
    r"( (Z|UTC|[+-](0[0-9]|1[0-3]):[0-5][0-9]))?$",
);

impl JsonSchema for WindowEntry {
    fn schema_name() -> Cow<'static, str> {
        "Window".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Hours on some days of the week, with an offset from UTC: `22:00-06:00`, `mon-fri 22:00-06:00 +01:00`.",
            "type": "string",
            "pattern": WINDOW,
        })
    }
}

impl Serialize for WindowEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WindowEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
