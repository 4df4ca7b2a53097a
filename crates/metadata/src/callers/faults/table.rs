//! The faults of a server, in the order in which they were added. Each request takes its faults atomically.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forewarn_types::{FAULTS_MAX, FaultAnswer, FaultedRequest};

use super::{Failure, TakenFault};
use crate::callers::caller::CallerId;

/// Faults that are not used up. They are not stored: after a restart there are none.
#[derive(Debug, Default)]
pub struct FaultTable {
    /// Faults of machines: a poll reads only this number if there are none.
    of_machines: AtomicUsize,
    faults: Mutex<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    last_id: u64,
    by_id: BTreeMap<u64, Fault>,
}

/// A fault that is not used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub id: u64,
    pub target: FaultTarget,
    pub answer: FaultAnswer,
    /// Requests or deliveries that it still applies to. None: until it is cleared.
    pub left: Option<u32>,
    /// Requests or deliveries that it has applied to.
    pub used: u64,
}

/// The target of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultTarget {
    /// Requests of a machine.
    Machine(CallerId, FaultedRequest),
    /// Messages of a webhook, by its number.
    Webhook(u32),
}

/// The kind of a request that may have a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Poll,
    Approve,
}

/// The server has the maximum number of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many faults: at most {FAULTS_MAX}\n  hint: `forewarn fault clear`")]
pub struct TooManyFaults;

impl FaultTable {
    /// Adds a fault, after the others of its target.
    ///
    /// # Errors
    /// Fails if the table is full.
    pub fn add(
        &self,
        target: FaultTarget,
        answer: FaultAnswer,
        left: Option<u32>,
    ) -> Result<Fault, TooManyFaults> {
        let mut faults = self.lock();
        if faults.by_id.len() >= FAULTS_MAX {
            return Err(TooManyFaults);
        }
        faults.last_id += 1;
        let fault = Fault { id: faults.last_id, target, answer, left, used: 0 };
        faults.by_id.insert(fault.id, fault);
        self.count(&faults);
        Ok(fault)
    }

    /// The faults, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<Fault> {
        self.lock().by_id.values().copied().collect()
    }

    /// Removes faults. Returns their number.
    pub fn remove(&self, is_removed: impl Fn(&Fault) -> bool) -> usize {
        let mut faults = self.lock();
        let before = faults.by_id.len();
        faults.by_id.retain(|_, fault| !is_removed(fault));
        self.count(&faults);
        before - faults.by_id.len()
    }

    /// The fault that hides events from the next poll of a machine: the time before its start at which an event appears.
    #[must_use]
    pub fn hides_until(&self, caller: CallerId) -> Option<Duration> {
        if !self.has_any() {
            return None;
        }
        self.lock().by_id.values().find_map(|fault| match (fault.target, fault.answer) {
            (
                FaultTarget::Machine(of, FaultedRequest::Poll | FaultedRequest::Any),
                FaultAnswer::Hide(span),
            ) if of == caller => Some(span),
            (FaultTarget::Machine(..) | FaultTarget::Webhook(_), _) => None,
        })
    }

    /// Returns true if a machine has a fault.
    pub(crate) fn has_any(&self) -> bool {
        self.of_machines.load(Ordering::Acquire) > 0
    }

    /// Takes the faults of a request: the oldest one, and the oldest one that hides events, which applies beside it.
    pub(crate) fn take(&self, caller: CallerId, kind: RequestKind) -> Option<TakenFault> {
        if !self.has_any() {
            return None;
        }
        let mut faults = self.lock();
        let is_meant = |fault: &Fault| match (fault.target, kind) {
            (FaultTarget::Machine(of, FaultedRequest::Poll), RequestKind::Poll)
            | (FaultTarget::Machine(of, FaultedRequest::Approve), RequestKind::Approve)
            | (FaultTarget::Machine(of, FaultedRequest::Any), RequestKind::Poll | RequestKind::Approve) => {
                of == caller
            }
            (
                FaultTarget::Machine(..) | FaultTarget::Webhook(_),
                RequestKind::Poll | RequestKind::Approve,
            ) => false,
        };
        let is_hiding = |fault: &Fault| matches!(fault.answer, FaultAnswer::Hide(_));
        let answer = faults.take_first(|fault| is_meant(fault) && !is_hiding(fault));
        let taken = if let Some(answer) = answer
            && let instead @ TakenFault::Instead(Failure::Status(_) | Failure::Hang | Failure::Reset) =
                TakenFault::new(Some(answer), None)
        {
            Some(instead)
        } else {
            let hide = match faults.take_first(|fault| is_meant(fault) && is_hiding(fault)) {
                Some(FaultAnswer::Hide(span)) => Some(span),
                Some(_) | None => None,
            };
            (answer.is_some() || hide.is_some()).then(|| TakenFault::new(answer, hide))
        };
        self.count(&faults);
        taken
    }

    /// Takes the fault of a delivery. Returns true if the message is to be sent twice.
    pub fn take_duplicate(&self, webhook: u32) -> bool {
        self.lock().take_first(|fault| fault.target == FaultTarget::Webhook(webhook)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, faults: &Faults) {
        let is_of_machine = |fault: &&Fault| matches!(fault.target, FaultTarget::Machine(..));
        self.of_machines.store(faults.by_id.values().filter(is_of_machine).count(), Ordering::Release);
    }
}

impl Faults {
    /// Takes one use of the oldest matching fault. A fault that is used up is removed.
    fn take_first(&mut self, is_meant: impl Fn(&Fault) -> bool) -> Option<FaultAnswer> {
        let fault = self.by_id.values_mut().find(|fault| is_meant(fault))?;
        fault.used += 1;
        fault.left = fault.left.map(|left| left.saturating_sub(1));
        let Fault { id, answer, left, .. } = *fault;
        if left == Some(0) {
            self.by_id.remove(&id);
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests;
