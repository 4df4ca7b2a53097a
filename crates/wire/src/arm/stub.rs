//! Not yet.
#![allow(missing_docs, unused, reason = "not yet")]
use super::ArmError;
use crate::operator::NamedCommand;
use forewarn_lifecycle::{Cluster, ScaleSetId};
use serde_json::Value;
pub fn plan_scale_set(
    cluster: &Cluster,
    name: &str,
    before: Option<(ScaleSetId, &Value)>,
    body: &Value,
) -> Result<Vec<NamedCommand>, ArmError> {
    Ok(Vec::new())
}
