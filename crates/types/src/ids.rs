//! Ids: numbers that are never reused, event ids, and the secrets from which they are derived.

use std::fmt;
use std::hash::Hasher;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use siphasher::sip128::{Hasher128, SipHasher24};
use uuid::Uuid;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

/// A cluster of the server. Operators call it by a name, which may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Hash)]
pub struct ClusterId(pub u32);

impl ClusterId {
    /// The default cluster. It always exists.
    pub const DEFAULT: Self = Self(0);

    /// The name of that cluster, which never changes.
    pub const DEFAULT_NAME: &'static str = "default";
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

number!(
    /// A host of the cluster.
    HostId(u32)
);
number!(
    /// A tenant of the cluster.
    TenantId(u32)
);
number!(
    /// A scale set of the cluster.
    ScaleSetId(u32)
);
number!(
    /// A machine of the cluster, whichever tenant it belongs to.
    MachineId(u32)
);
number!(
    /// One piece of work on one or more machines.
    MaintenanceId(u64)
);
number!(
    /// One plan of host work over many hosts.
    RolloutId(u64)
);
number!(
    /// Machines of one tenant that may be in planned work at the same time.
    UpdateDomain(u16)
);
number!(
    /// Machines that share a source of failure.
    FaultDomain(u16)
);
number!(
    /// A zone: a label of a host.
    Zone(u16)
);

/// The id of an event: a GUID, printed in upper case, the same for the event's whole life, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId(Uuid);

/// The secret from which event ids are derived. It is chosen once, outside the rules, and journaled with the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seed(#[serde(with = "crate::base64url")] pub [u8; 16]);

impl Seed {
    /// The secret of another cluster, derived from this one: the same for the same number, and this one for 0.
    #[must_use]
    pub fn nth(&self, number: u32) -> Self {
        if number == 0 {
            return *self;
        }
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(b"cluster");
        hasher.write(&number.to_le_bytes());
        Self(hasher.finish128().as_bytes())
    }
}

/// The name of an action: one piece of work on one machine or host, in one phase. It is the same for every repetition of the action, and no
/// other action of any cluster has it. It is printed as 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActionName(u128);

impl ActionName {
    /// The name of the action that a piece of work has for a machine, in a cluster with that secret: a keyed hash.
    #[must_use]
    pub fn of(seed: &Seed, maintenance: MaintenanceId, machine: MachineId) -> Self {
        // Event ids and secrets of other clusters are made of the same secret: this is none of them.
        Self::derived(seed, b"action", maintenance, machine.0)
    }

    /// The name of the action by which a machine returns after work on its host.
    #[must_use]
    pub fn of_return(seed: &Seed, maintenance: MaintenanceId, machine: MachineId) -> Self {
        Self::derived(seed, b"return", maintenance, machine.0)
    }

    /// The name of the action that a piece of work has for a host.
    #[must_use]
    pub fn of_host(seed: &Seed, maintenance: MaintenanceId, host: HostId) -> Self {
        Self::derived(seed, b"onhost", maintenance, host.0)
    }

    /// The words have one length, so that no two kinds of names hash the same bytes.
    fn derived(seed: &Seed, kind: &[u8; 6], maintenance: MaintenanceId, number: u32) -> Self {
        let mut hasher = SipHasher24::new_with_key(&seed.0);
        hasher.write(kind);
        hasher.write(&maintenance.0.to_le_bytes());
        hasher.write(&number.to_le_bytes());
        Self(hasher.finish128().as_u128())
    }
}

impl fmt::Display for ActionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl EventId {
    /// The `counter`-th id of a cluster: a keyed hash, so that one id reveals nothing about another.
    #[must_use]
    pub fn nth(seed: &Seed, counter: u64) -> Self {
        let mut hasher = SipHasher24::new_with_key(&seed.0);
        hasher.write(&counter.to_le_bytes());
        let hash = hasher.finish128();
        Self(uuid::Builder::from_random_bytes(hash.as_bytes()).into_uuid())
    }

    /// The bytes of the GUID.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.into_bytes()
    }

    /// The id with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// Reads a GUID, in either case.
    ///
    /// ```
    /// use forewarn_types::EventId;
    /// let id = EventId::parse("28512af7-c957-4500-9bc4-842d6fb531e4").unwrap();
    /// assert_eq!(id.to_string(), "28512AF7-C957-4500-9BC4-842D6FB531E4");
    /// assert!(EventId::parse("28512AF7").is_none());
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_hyphenated().encode_upper(&mut Uuid::encode_buffer()))
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("not an event id"))
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_shown_by_its_number() {
        assert_eq!(
            (ClusterId::DEFAULT.to_string(), ClusterId(12).to_string()),
            ("0".to_owned(), "12".to_owned())
        );
    }

    #[test]
    fn ids_differ_by_seed_and_by_counter_and_look_like_guids() {
        let (one, two) = (Seed([1; 16]), Seed([2; 16]));
        assert_eq!(EventId::nth(&one, 5), EventId::nth(&one, 5));
        assert_ne!(EventId::nth(&one, 5), EventId::nth(&one, 6));
        assert_ne!(EventId::nth(&one, 5), EventId::nth(&two, 5));
        let text = EventId::nth(&one, 5).to_string();
        assert_eq!((text.len(), &text[14..15]), (36, "4"));
        assert_eq!(EventId::parse(&text.to_lowercase()), Some(EventId::nth(&one, 5)));
        assert_eq!(format!("{:?}", EventId::nth(&one, 5)), text);
        assert_eq!(EventId::from_bytes(EventId::nth(&one, 5).to_bytes()), EventId::nth(&one, 5));
    }

    #[test]
    fn debug_output_hides_a_seed() {
        assert_eq!(format!("{:?}", Seed([7; 16])), "Seed(secret)");
        assert_eq!(HostId(3).to_string(), "3");
    }
}
