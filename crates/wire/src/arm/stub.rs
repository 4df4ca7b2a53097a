//! stub
#![allow(missing_docs, unused)]
use super::*;
use crate::operator::*;
use forewarn_lifecycle::*;
use serde_json::Value;
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Restart,
    Redeploy,
    Reimage,
    Start,
    PowerOff,
    Deallocate,
    PerformMaintenance,
    Reapply,
    SimulateEviction,
    Delete,
    Upgrade,
}
impl Action {
    pub fn word(self) -> &'static str {
        "x"
    }
}
pub fn plan_scale_set(
    cluster: &Cluster,
    name: &str,
    before: Option<(ScaleSetId, &Value)>,
    body: &Value,
) -> Result<Vec<NamedCommand>, ArmError> {
    Ok(Vec::new())
}
pub fn plan_machine(
    cluster: &Cluster,
    name: &str,
    before: Option<(MachineId, &Value)>,
    body: &Value,
) -> Result<Vec<NamedCommand>, ArmError> {
    Ok(Vec::new())
}
pub fn plan_availability_set(
    cluster: &Cluster,
    name: &str,
    before: Option<(TenantId, &Value)>,
    body: &Value,
) -> Result<Vec<NamedCommand>, ArmError> {
    Ok(Vec::new())
}
pub fn plan_action(
    cluster: &Cluster,
    action: Action,
    on: &[MachineId],
) -> Result<Vec<NamedCommand>, ArmError> {
    Ok(Vec::new())
}
pub fn chosen_instances(
    cluster: &Cluster,
    set: ScaleSetId,
    body: &Value,
) -> Result<Vec<MachineId>, ArmError> {
    Ok(Vec::new())
}
pub fn refused(refusal: &Refusal) -> ArmError {
    ArmError::new(409, "x", "x")
}
pub fn bad_command(refusal: &BadCommand) -> ArmError {
    ArmError::new(409, "x", "x")
}
