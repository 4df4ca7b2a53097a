//! Entries are objects.
//!
//! A derived reader alone would take a list for an object whose members come in their order, and an empty one for an object
//! that says nothing: whoever writes `"policy": []` means something else.
//!
//! The derives of an entry that has `#[serde(remote = "Self")]` make functions instead of implementations; here they are
//! used by ones that read maps only.

/// Implements reading and writing for entries that are objects and nothing else.
macro_rules! objects {
    ($($entry:ident)+) => {
        $(impl<'de> serde::Deserialize<'de> for $entry {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Members;

                impl<'de> serde::de::Visitor<'de> for Members {
                    type Value = $entry;

                    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        out.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, members: A) -> Result<$entry, A::Error> {
                        $entry::deserialize(serde::de::value::MapAccessDeserializer::new(members))
                    }
                }

                deserializer.deserialize_map(Members)
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
