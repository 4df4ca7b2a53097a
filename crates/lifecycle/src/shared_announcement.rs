//! Serialization of a shared announcement as a plain value: sharing exists only in memory.

use std::sync::Arc;

use forewarn_types::Announcement;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

type Shared = Option<Arc<Announcement>>;

pub(crate) fn serialize<S: Serializer>(announcement: &Shared, serializer: S) -> Result<S::Ok, S::Error> {
    announcement.as_deref().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Shared, D::Error> {
    Option::deserialize(deserializer).map(|announcement: Option<Announcement>| announcement.map(Arc::new))
}
