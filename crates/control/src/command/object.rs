//! Entries are JSON objects.
//!
//! A derived reader alone would also accept a list of the members in their order, and an empty list for an object
//! without members: `"policy": []` would pass as an empty policy.
//!
//! `#[serde(remote = "Self")]` makes the derives of an entry produce functions instead of implementations; the
//! implementations here use these functions and accept maps only.

/// Implements reading and writing for entries that must be objects.
macro_rules! objects {
    ($($entry:ident)+) => {
        $(impl<'de> serde::Deserialize<'de> for $entry {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct ObjectVisitor;

                impl<'de> serde::de::Visitor<'de> for ObjectVisitor {
                    type Value = $entry;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, members: A) -> Result<$entry, A::Error> {
                        $entry::deserialize(serde::de::value::MapAccessDeserializer::new(members))
                    }
                }

                deserializer.deserialize_map(ObjectVisitor)
            }
        }

        impl serde::Serialize for $entry {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $entry::serialize(self, serializer)
            }
        })+
    };
}

pub(crate) use objects;
