//! What is observed while programs run: who polls, which events are read, and when on the real clock entries of the
//! audit log come.
//!
//! A poll leaves no audit entry. The endpoint remembers the last one of each machine, with the number of the audit
//! entry that its document reflects: if that is the number of the current document, the machine has read it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forewarn_control::{AuditEntry, ClusterId, Stream, find_machine};
use forewarn_lifecycle::{Event, EventId, MachineId, Phase, Tenant, TenantId};
use forewarn_metadata::CallerId;
use forewarn_server::{ControlHandle, State};
use forewarn_store::{AuditQuery, LoggedEntry, ReadError};
use forewarn_verdict::{MachineName, Observations};
use tokio::sync::broadcast::{self, error::RecvError};

/// Observations of one test.
pub(super) struct Observer {
    control: ControlHandle,
    begin: Instant,
    seen: Mutex<Seen>,
}

/// Everything that was seen so far.
#[derive(Default)]
struct Seen {
    observations: Observations,
    /// The document that each machine has read last, by its incarnation.
    read: BTreeMap<MachineId, u64>,
    /// Machines that did not poll for so long that nothing waits for them, until they poll again.
    silent: BTreeSet<MachineId>,
    /// The document of each tenant, and since when it is that one.
    documents: BTreeMap<TenantId, (u64, Instant)>,
    /// Machines that are programs: each of their polls counts.
    programs: BTreeSet<MachineName>,
    /// The last poll that a story sent as a machine, by the audit entry of its document: it does not count.
    scripted_polls: BTreeMap<MachineName, u64>,
    /// The first time that an event was read.
    first_read: BTreeMap<EventId, Instant>,
    /// Time on the clock until an event appears that a fault hides from a machine.
    next_appearance: Option<Duration>,
    /// Machines that the story has deleted without an event, for want of a terminate notification.
    unannounced_deletions: BTreeSet<String>,
    /// True if nothing more counts.
    is_over: bool,
}

/// A machine that has read the document of its tenant.
struct Reader {
    name: MachineName,
    /// The time before its start at which an event appears to it, if a fault hides events.
    hides_until: Option<Duration>,
}

fn hides_until(control: &ControlHandle, caller: CallerId) -> Option<Duration> {
    control.directory().faults()?.hides_until(caller)
}

/// The time until an event appears to a machine with a fault that hides events. None if it does not hide this one.
fn appears_in(state: &State<'_>, event: &Event, hides_until: Option<Duration>) -> Option<Duration> {
    let left = match event.phase {
        Phase::Scheduled { not_before, .. } => not_before.since(state.now.wall),
        Phase::Started { .. } => return None,
    };
    left.checked_sub(hides_until?).filter(|left| !left.is_zero())
}

/// The reason why the clock stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing holds it.
    Free,
    /// A machine has not read its document, or an event that was read is not approved.
    Held,
}

impl Observer {
    pub(super) fn new(control: ControlHandle) -> Arc<Self> {
        let observations = Observations { polled: Some(BTreeMap::new()), ..Observations::default() };
        let seen = Mutex::new(Seen { observations, ..Seen::default() });
        Arc::new(Self { control, begin: Instant::now(), seen })
    }

    /// Everything is replaced as a whole, so it is consistent even if a holder of the lock panicked.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Real time since the beginning of the test.
    pub(super) fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Notes the real time of audit entries as they come. Runs until the server stops.
    pub(super) async fn note_entries(self: Arc<Self>, mut entries: broadcast::Receiver<LoggedEntry>) {
        loop {
            match entries.recv().await {
                Ok(logged) if logged.entry.stream == Some(Stream::Cluster(ClusterId::DEFAULT)) => {
                    let elapsed = self.elapsed();
                    self.seen().observations.real_time.insert(logged.entry.number, elapsed);
                }
                // An entry that was missed has the time of none.
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }

    /// An approval of the story itself is not one of a program.
    pub(super) fn note_scripted(&self, event: String, machine: String) {
        self.seen().observations.scripted.insert((event, machine));
    }

    /// A program is that machine from now on.
    pub(super) fn note_program(&self, machine: &MachineName) {
        self.seen().programs.insert(machine.clone());
    }

    /// Returns true if the machine of a program no longer exists: its requests are those of an unknown caller.
    pub(super) fn has_lost_machine(&self) -> bool {
        let programs = self.seen().programs.clone();
        let is_lost = |state: &State<'_>| {
            let find = |name: &MachineName| {
                find_machine(state.cluster, &format!("{}/{}", name.tenant, name.name)).is_ok()
            };
            !programs.iter().all(find)
        };
        self.control.look(is_lost).unwrap_or(false)
    }

    /// The last poll of a machine was one of the story, and not one of a program.
    pub(super) fn note_scripted_poll(&self, name: &MachineName) {
        let polled = self.control.look(|state| {
            let mut found = state.cluster.machines_named(&name.name);
            let is_meant =
                |tenant| state.cluster.tenant(tenant).is_some_and(|one| one.name.as_str() == name.tenant);
            let (id, _) = found.find(|(_, machine)| is_meant(machine.tenant))?;
            Some(state.polls.of(id)?.last_entry)
        });
        if let Ok(Some(entry)) = polled {
            self.seen().scripted_polls.insert(name.clone(), entry);
        }
    }

    /// Returns true if a machine of a tenant has polled.
    pub(super) fn has_tenant_polled(&self, tenant: &str) -> bool {
        self.look(Duration::ZERO);
        let seen = self.seen();
        seen.observations.polled.iter().flatten().any(|(machine, _)| machine.tenant == tenant)
    }

    /// Ends the observations if no machine has polled: a later poll comes too late. Returns true if it has ended them.
    pub(super) fn end_unless_polled(&self) -> bool {
        let mut seen = self.seen();
        // Without a state there is no poll either.
        self.control.look(|state| seen.look(&self.control, state, Duration::ZERO)).ok();
        seen.is_over = seen.observations.polled.as_ref().is_none_or(BTreeMap::is_empty);
        seen.is_over
    }

    /// Notes that the story has deleted a machine without an event, because it has no terminate notification.
    pub(super) fn note_unannounced_deletion(&self, machine: &str) {
        self.seen().unannounced_deletions.insert(machine.to_owned());
    }

    /// Machines that the story has deleted without an event.
    pub(super) fn unannounced_deletions(&self) -> Vec<String> {
        self.seen().unannounced_deletions.iter().cloned().collect()
    }

    /// Looks at polls and documents.
    pub(super) fn look(&self, patience: Duration) -> Standing {
        let mut seen = self.seen();
        if seen.is_over {
            return Standing::Free;
        }
        let looked = self.control.look(|state| seen.look(&self.control, state, patience));
        looked.unwrap_or(Standing::Free)
    }

    /// Time on the clock until an event appears that a fault hides from a machine.
    pub(super) fn next_appearance(&self) -> Option<Duration> {
        self.seen().next_appearance
    }

    pub(super) fn observations(&self) -> Observations {
        self.look(Duration::ZERO);
        self.seen().observations.clone()
    }

    /// The audit log of the cluster.
    pub(super) async fn entries(&self) -> Result<Vec<AuditEntry>, ReadError> {
        let (mut all, mut after) = (Vec::new(), Some(0));
        let stream = Some(Stream::Cluster(ClusterId::DEFAULT));
        while after.is_some() {
            let query = AuditQuery { stream, after, ..AuditQuery::default() };
            match self.control.read_audit_log(query).await {
                Ok(page) => {
                    all.extend(page.entries.into_iter().map(|logged| AuditEntry::clone(&logged.entry)));
                    after = page.next;
                }
                Err(ReadError::Busy) => tokio::time::sleep(BUSY_PAUSE).await,
                Err(
                    error @ (ReadError::Closed
                    | ReadError::TooMany(_)
                    | ReadError::Damaged(_)
                    | ReadError::Failed(_)),
                ) => return Err(error),
            }
        }
        Ok(all)
    }
}

/// Pause before a busy audit log is read again.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

impl Seen {
    fn look(&mut self, control: &ControlHandle, state: &State<'_>, patience: Duration) -> Standing {
        let now = Instant::now();
        let mut standing = Standing::Free;
        let mut readers: BTreeMap<TenantId, Vec<Reader>> = BTreeMap::new();
        self.next_appearance = None;
        for (id, machine) in state.cluster.machines() {
            let Some(tenant) = state.cluster.tenant(machine.tenant) else { continue };
            let caller = control.directory().known_caller(CallerId { cluster: state.id, machine: id });
            let Some((caller, poll)) = caller.and_then(|caller| Some((caller.clone(), caller.last_poll()?)))
            else {
                continue;
            };
            let name = MachineName { tenant: tenant.name.to_string(), name: machine.name.to_string() };
            let is_scripted = self.scripted_polls.get(&name) == Some(&poll.last_audit_entry);
            if is_scripted && !self.programs.contains(&name) {
                continue;
            }
            let hides_until = hides_until(control, CallerId { cluster: state.id, machine: id });
            self.note_hidden(state, tenant, hides_until);
            let document = caller.slot.read();
            let incarnation = document.document.incarnation;
            let (known, since) = self.documents.entry(machine.tenant).or_insert((incarnation, now));
            if *known != incarnation {
                (*known, *since) = (incarnation, now);
            }
            let is_read = poll.last_audit_entry == document.last_audit_entry;
            if incarnation != tenant.incarnation {
                // It is being published.
                standing = Standing::Held;
            } else if is_read {
                self.read.insert(id, incarnation);
                self.silent.remove(&id);
                readers.entry(machine.tenant).or_default().push(Reader { name: name.clone(), hides_until });
            } else if self.read.get(&id) != Some(&incarnation) && !self.silent.contains(&id) {
                if now.duration_since(*since) < patience {
                    standing = Standing::Held;
                } else if !patience.is_zero() {
                    self.silent.insert(id);
                }
            }
            let polled = self.observations.polled.get_or_insert_default();
            polled.entry(name).or_insert(poll.last_audit_entry);
        }
        for (tenant, readers) in readers {
            self.note_readings(state, tenant, &readers, now);
        }
        if self.waits_for_approval(state, now, patience) { Standing::Held } else { standing }
    }

    /// Notes that machines have read the document of a tenant.
    fn note_readings(&mut self, state: &State<'_>, tenant: TenantId, readers: &[Reader], now: Instant) {
        let Some(tenant) = state.cluster.tenant(tenant) else { return };
        for event in tenant.events() {
            let appears_in = |reader: &Reader| appears_in(state, event, reader.hides_until);
            let readers = readers.iter().filter(|reader| appears_in(reader).is_none());
            let names: Vec<_> = readers.map(|reader| reader.name.clone()).collect();
            if names.is_empty() {
                continue;
            }
            self.observations.shown.insert(event.id().to_string());
            if event.is_scheduled() {
                self.observations.readings.entry(event.id().to_string()).or_default().extend(names);
                self.first_read.entry(event.id()).or_insert(now);
            }
        }
    }

    /// Notes the time until a hidden event of a machine appears.
    fn note_hidden(&mut self, state: &State<'_>, tenant: &Tenant, hides_until: Option<Duration>) {
        let hidden = tenant.events().iter().filter_map(|event| appears_in(state, event, hides_until));
        self.next_appearance = self.next_appearance.into_iter().chain(hidden).min();
    }

    /// Returns true if an event that was read is not approved, and still may be.
    fn waits_for_approval(&self, state: &State<'_>, now: Instant, patience: Duration) -> bool {
        let tenants = self.documents.keys().filter_map(|tenant| state.cluster.tenant(*tenant));
        let mut unapproved = tenants.flat_map(Tenant::events).filter_map(|event| match event.phase {
            Phase::Scheduled { not_before, approval: None } => Some((event.id(), not_before)),
            Phase::Scheduled { approval: Some(_), .. } | Phase::Started { .. } => None,
        });
        unapproved.any(|(event, not_before)| {
            // A program that takes longer than the notice is late, however patient the test is.
            let limit = patience.min(not_before.since(state.now.wall));
            self.first_read.get(&event).is_some_and(|first| now.duration_since(*first) < limit)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpStream};

    use forewarn_server::{ClockPlan, Service, Speed};
    use forewarn_url::OwnHosts;

    use super::*;
    use crate::requested_events::fleet_for;
    use crate::server::local::{LocalServer, seed, wall};

    /// Polls once, and returns after the response.
    fn poll(url: &str) {
        let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
        let path = "/metadata/scheduledevents?api-version=2020-07-01";
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nMetadata: true\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_poll_after_the_end_of_the_startup_does_not_count() {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let local = LocalServer {
            mode: "test",
            fleet: fleet_for(&[], "svc").unwrap(),
            seed: seed(0),
            clock: ClockPlan::Virtual { start: Some(wall()), speed: Speed(0) },
            metadata_listen: any_port,
            api_listen: any_port,
            default_vm: Some("svc".to_owned()),
            hosts: OwnHosts::default(),
        };
        let service = Service::start(local.plan()).await.unwrap();
        let (ended, open) =
            (Observer::new(service.control().clone()), Observer::new(service.control().clone()));
        assert!(ended.end_unless_polled());
        let url = service.metadata_url().unwrap().to_owned();
        tokio::task::spawn_blocking(move || poll(&url)).await.unwrap();
        assert!(ended.observations().polled.unwrap().is_empty());
        assert!(!open.end_unless_polled());
        assert_eq!(open.observations().polled.unwrap().len(), 1);
        service.stop().await;
    }
}
