//! Enrolment of tenants, and the settings of the whole cluster.
//!
//! The first request of any machine enrols its tenant; a day of silence ends that, unless the tenant can see an event.
//! A setting enrols every tenant from the beginning: then requests and silence change nothing.

use std::time::Duration;

use forewarn_types::TenantId;

use super::draft::Draft;
use crate::change::Change;
use crate::policy::{Brake, Settings};
use crate::refusal::Refusal;
use crate::tenant::Enrolment;

impl Draft<'_> {
    pub(super) fn enrol(&mut self, id: TenantId) -> Result<(), Refusal> {
        if !self.cluster.known_tenant(id)?.is_enrolled() {
            self.changes.push(Change::Enrolled(id));
        }
        Ok(())
    }

    /// Records the last request of the tenant; a request that is too old counts as silence.
    pub(super) fn heard(&mut self, id: TenantId, ago: Duration) -> Result<(), Refusal> {
        let Enrolment::Enabled { silent_at } = self.cluster.known_tenant(id)?.enrolment else {
            return Ok(());
        };
        let at = self.now.steady.minus(ago);
        if Enrolment::heard(at) > (Enrolment::Enabled { silent_at }) {
            self.changes.push(Change::Heard { tenant: id, at });
            return Ok(());
        }
        self.silent(id)
    }

    pub(super) fn silent(&mut self, id: TenantId) -> Result<(), Refusal> {
        let tenant = self.cluster.known_tenant(id)?;
        let due =
            matches!(tenant.enrolment, Enrolment::Enabled { silent_at } if silent_at <= self.now.steady);
        if due && tenant.events().is_empty() {
            self.changes.push(Change::Disabled(id));
        }
        Ok(())
    }

    pub(super) fn set_brake(&mut self, brake: Brake) -> Result<(), Refusal> {
        if self.cluster.brake != brake {
            self.changes.push(Change::BrakeSet(brake));
        }
        Ok(())
    }

    pub(super) fn change_settings(&mut self, settings: Settings) -> Result<(), Refusal> {
        if self.cluster.settings != settings {
            self.changes.push(Change::SettingsChanged(settings));
        }
        Ok(())
    }
}
