//! The driver: the one task that owns every cluster.
//!
//! It takes requests in batches. For a batch it decides and evolves, appends everything to the journal, and only then
//! publishes, answers and acts. Between batches it sleeps until the next deadline of the rules or of a pretend machine.
//! No rule needs two clusters; what they share is the clock, the journal, and that an address is that of one machine.

mod administration;
mod arrangement;
mod endings;
mod errand;
mod listing;
mod notice;
mod orders;
mod recovery;
mod sites;
mod telling;
#[cfg(test)]
mod tests;
mod time;
mod vigil;
mod ward;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_control::shared::ClusterId;
use forewarn_control::{Chain, Outcome, TrailEntry, happening};
use forewarn_hypervisor::Order;
use forewarn_lifecycle::{
    Action, Change, Command, Effect, MachineId, Now, Report, Seed, Steady, TenantId, limits,
};
use forewarn_store::{Entry, Estate, Record, State as Kept};
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::directory::Directory;
use crate::engine::{Arranged, Completion, Decided, Hands, Heralds, Problem, Request, State};
use crate::polls::Polls;
use crate::published::{Published, Slot};
pub use endings::{Ended, Endings};
use errand::Errand;
pub(crate) use listing::Listed;
use notice::Announced;
pub(crate) use notice::{Found, Readers};
pub(crate) use recovery::Keeping;
use telling::Telling;
#[cfg(test)]
pub(crate) use tests::SlowDisk;
use vigil::Vigil;
use ward::Ward;

pub(crate) struct Driver {
    /// All that has to survive.
    kept: Kept,
    keeping: Keeping,
    /// Ids of machines are made of it.
    identity: Seed,
    clock: Clock,
    hands: Hands,
    /// One for each cluster.
    wards: BTreeMap<ClusterId, Ward>,
    stopping: Option<Stopping>,
    stop: watch::Sender<bool>,
    directory: Arc<Directory>,
    /// Which machine has an address.
    held: BTreeMap<IpAddr, (ClusterId, MachineId)>,
    heralds: Heralds,
    /// Where the trail has come to.
    chain: Chain,
    /// The last entry of the trail that readers may see.
    shown: Chain,
    /// Announcements of earlier batches that no VM may have read.
    unread: BTreeSet<Announced>,
    readers: Readers,
    /// For whom something is done at the moment.
    telling: Telling,
    /// The clocks as they were last written down.
    noted: Now,
    vigil: Vigil,
    batch: Batch,
}

/// What has been decided and is not in the journal yet.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    trail: Vec<Arc<TrailEntry>>,
    publish: BTreeSet<(ClusterId, TenantId)>,
    unpublish: BTreeSet<(ClusterId, TenantId)>,
    perform: Vec<(ClusterId, Action)>,
    announced: BTreeSet<Announced>,
    replies: Vec<Reply>,
}

/// An answer that waits until what it says is durable.
enum Reply {
    Decided(oneshot::Sender<Result<Decided, Problem>>, Decided),
    Outcome(oneshot::Sender<Result<Outcome, Problem>>, Outcome),
    Arranged(oneshot::Sender<Result<Option<Arranged>, Problem>>, Box<Arranged>),
    Reported(oneshot::Sender<Result<(), Problem>>),
    Readable(oneshot::Sender<()>),
}

impl Reply {
    /// Whoever asked may have gone; what was decided stays.
    fn send(self) {
        match self {
            Self::Decided(reply, decided) => drop(reply.send(Ok(decided))),
            Self::Outcome(reply, outcome) => drop(reply.send(Ok(outcome))),
            Self::Arranged(reply, arranged) => drop(reply.send(Ok(Some(*arranged)))),
            Self::Reported(reply) => drop(reply.send(Ok(()))),
            Self::Readable(reply) => drop(reply.send(())),
        }
    }

    fn fail(self) {
        match self {
            Self::Decided(reply, _) => drop(reply.send(Err(Problem::Unavailable))),
            Self::Outcome(reply, _) => drop(reply.send(Err(Problem::Unavailable))),
            Self::Arranged(reply, _) => drop(reply.send(Err(Problem::Unavailable))),
            Self::Reported(reply) => drop(reply.send(Err(Problem::Unavailable))),
            // The start waits a moment longer, for the journal that is opened again.
            Self::Readable(reply) => drop(reply),
        }
    }
}

/// Somebody waits for the end.
struct Stopping {
    reply: oneshot::Sender<()>,
    /// How long programs may take to end their work.
    until: Instant,
}

/// The longest that programs may take to end their work when the server stops.
const STOP_MAX: Duration = Duration::from_secs(30);

/// Requests that are taken together.
const BATCH_MAX: usize = 256;

/// The longest sleep: no timer is trusted for longer.
const SLEEP_MAX: Duration = Duration::from_secs(1);

impl Driver {
    /// A driver of what was kept. Everything is published when this returns.
    pub(crate) fn new(
        Found { kept, identity, chain, unread, readers }: Found,
        keeping: Keeping,
        clock: Clock,
        hands: Hands,
        directory: Arc<Directory>,
        heralds: Heralds,
    ) -> Self {
        let mut driver = Self {
            kept,
            keeping,
            identity,
            clock,
            hands,
            wards: BTreeMap::new(),
            stopping: None,
            stop: watch::Sender::new(false),
            directory,
            held: BTreeMap::new(),
            heralds,
            chain,
            shown: chain,
            unread: unread.into_iter().collect(),
            readers,
            telling: Telling::default(),
            noted: Now::at_millis(0),
            vigil: Vigil::default(),
            batch: Batch::default(),
        };
        driver.show_all();
        driver
    }

    /// Runs until it is told to stop, or nobody has a handle any more.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Request>, own: mpsc::WeakSender<Request>) {
        let mut requests = Vec::with_capacity(BATCH_MAX);
        self.resume(&own);
        loop {
            let sleep = tokio::time::sleep(self.until_next());
            tokio::select! {
                received = inbox.recv_many(&mut requests, BATCH_MAX) => {
                    if received == 0 {
                        return;
                    }
                }
                () = sleep => {}
            }
            self.note_time();
            for request in requests.drain(..) {
                self.handle(request, &own);
            }
            if self.has_stopped(&own) {
                return;
            }
            self.keep_vigil();
            self.notice_failure();
            self.try_again(&own);
            let now = self.clock.now();
            self.settle(now, &own);
        }
    }

    fn handle(&mut self, request: Request, own: &mpsc::WeakSender<Request>) {
        if self.keeping.is_broken() && request.needs_journal() {
            return request.refuse();
        }
        match request {
            Request::Submit { cluster, command, reply } => match self.submit(cluster, &command) {
                Ok(decided) => self.batch.replies.push(Reply::Decided(reply, decided)),
                // Whoever asked may have gone; nothing has changed.
                Err(problem) => drop(reply.send(Err(problem))),
            },
            Request::Complete { cluster, completion, reply } => match self.complete(cluster, completion) {
                Ok(decided) => self.batch.replies.push(Reply::Decided(reply, decided)),
                Err(problem) => drop(reply.send(Err(problem))),
            },
            Request::Order { cluster, order, reply } => {
                let outcome = self.order(cluster, order);
                self.answer(reply, outcome);
            }
            Request::Arrange { cluster, terms, arrange, reply } => {
                match self.arrange(cluster, terms, arrange) {
                    Ok(Some(arranged)) => self.batch.replies.push(Reply::Arranged(reply, Box::new(arranged))),
                    // Whoever asked may have gone; nothing has changed.
                    Ok(None) => drop(reply.send(Ok(None))),
                    Err(problem) => drop(reply.send(Err(problem))),
                }
            }
            Request::Administer { command, terms, reply } => {
                let outcome = self.administer(command, terms);
                self.answer(reply, outcome);
            }
            Request::Report { command, reply } => match self.report(&command) {
                Ok(()) => self.batch.replies.push(Reply::Reported(reply)),
                // Whoever asked may have gone; nothing has changed.
                Err(problem) => drop(reply.send(Err(problem))),
            },
            // Whoever asked may have gone.
            Request::Rehearse { cluster, commands, reply } => {
                drop(reply.send(Ok(self.rehearse(cluster, &commands).err())));
            }
            Request::Look { cluster, look } => {
                self.commit(own);
                // What could not be written never was: nobody sees it. Whoever asked finds that there will be no answer.
                if !self.keeping.is_broken() {
                    look(self.state(cluster));
                }
            }
            Request::Readable { reply } => {
                self.readers_came();
                self.batch.replies.push(Reply::Readable(reply));
            }
            Request::Drive { command, terms, reply } => drop(reply.send(self.drive(command, &terms, own))),
            Request::Copy { to, reply } => {
                self.commit(own);
                self.keeping.copy(&to, reply);
            }
            Request::ErrandOver { cluster, maintenance, machine } => {
                let ward = self.ward(cluster);
                ward.errands.remove(&(maintenance, machine));
                ward.troubles.remove(&(maintenance, machine));
            }
            Request::Trouble { cluster, maintenance, machine, trouble } => {
                self.ward(cluster).troubles.insert((maintenance, machine), trouble);
            }
            Request::Stop { reply } => {
                self.stop.send_replace(true);
                let patience = match &self.hands {
                    Hands::Pretend => Duration::ZERO,
                    Hands::Program(program) => program.time_limit.min(STOP_MAX),
                };
                self.stopping = Some(Stopping { reply, until: Instant::now() + patience });
            }
        }
    }

    /// Ends, if that is wanted, and no program is in the middle of its work or there is no time left for it. What was ordered
    /// and is not reported is ordered again by the next server.
    fn has_stopped(&mut self, own: &mpsc::WeakSender<Request>) -> bool {
        let errands: Vec<_> = self.wards.values().flat_map(|ward| &ward.errands).copied().collect();
        let is_over = |stopping: &mut Stopping| errands.is_empty() || stopping.until <= Instant::now();
        let Some(stopping) = self.stopping.take_if(is_over) else { return false };
        for (maintenance, machine) in errands {
            tracing::warn!(%maintenance, %machine, "a program is ended in the middle of its work");
        }
        self.commit(own);
        self.keeping.close();
        // Whoever asked may have gone.
        stopping.reply.send(()).ok();
        true
    }

    /// What there is to see of a cluster; nothing, if it is not there.
    fn state(&self, id: ClusterId) -> Option<State<'_>> {
        let Estate { cluster, site, details, .. } = self.kept.clusters.get(&id)?;
        let Ward { endings, troubles, listed, .. } = self.wards.get(&id)?;
        let catalogue = &self.kept.catalogue;
        let (name, now, seed) = (catalogue.cluster_name(id)?, self.clock.now(), self.identity.nth(id.0));
        let (next_in, polls) = (self.next_after(now), Polls(listed));
        Some(State {
            id,
            seed,
            name,
            catalogue,
            all: &self.kept.clusters,
            cluster,
            now,
            next_in,
            site,
            details,
            endings,
            troubles,
            polls,
        })
    }

    fn estate(&self, id: ClusterId) -> Result<&Estate, Problem> {
        self.kept.clusters.get(&id).ok_or(Problem::NoSuchCluster)
    }

    fn ward(&mut self, id: ClusterId) -> &mut Ward {
        self.wards.entry(id).or_default()
    }

    /// Answers when what was decided is durable; a refusal at once.
    fn answer(
        &mut self,
        reply: oneshot::Sender<Result<Outcome, Problem>>,
        outcome: Result<Outcome, Problem>,
    ) {
        match outcome {
            Ok(outcome) => self.batch.replies.push(Reply::Outcome(reply, outcome)),
            // Whoever asked may have gone; nothing has changed.
            Err(problem) => drop(reply.send(Err(problem))),
        }
    }

    fn submit(&mut self, id: ClusterId, command: &Command) -> Result<Decided, Problem> {
        let now = self.clock.now();
        self.tell_submitted(id, command);
        let changes = self.decide(now, id, command);
        self.told();
        Ok(Decided { changes: changes?, now })
    }

    /// Takes note of the answer of a driver program. The reason of a failure is in the trail with the same commit.
    fn complete(&mut self, id: ClusterId, completion: Completion) -> Result<Decided, Problem> {
        let Completion { maintenance, machine, report, reason } = completion;
        let now = self.clock.now();
        self.tell_completed(reason);
        let changes = self.decide(now, id, &Command::Complete { maintenance, machine, report });
        self.told();
        Ok(Decided { changes: changes?, now })
    }

    /// Decides and evolves; nobody outside knows of it before [`Self::commit`].
    fn decide(&mut self, now: Now, id: ClusterId, command: &Command) -> Result<Vec<Change>, Problem> {
        let changes = self.estate(id)?.cluster.decide(now, command)?;
        for change in &changes {
            let reason = self.note_failure(now, id, change);
            if let Some(happening) = happening(&self.estate(id)?.cluster, now, change) {
                let notices = self.notices(id, change, &changes);
                self.tell(id, happening.with_reason(reason.as_deref()), notices);
            }
            if let Change::Planned(plan) = change
                && plan.is_announced()
            {
                self.batch.announced.insert((id, plan.id));
            }
            let estate = self.kept.clusters.get_mut(&id).ok_or(Problem::NoSuchCluster)?;
            for effect in estate.cluster.evolve(now, change) {
                match effect {
                    Effect::Publish(tenant) => drop(self.batch.publish.insert((id, tenant))),
                    Effect::Unpublish(tenant) => drop(self.batch.unpublish.insert((id, tenant))),
                    Effect::Perform(action) => self.batch.perform.push((id, action)),
                }
            }
            self.wards.entry(id).or_default().endings.follow(estate, change);
            estate.forget_failures(change);
            self.batch.records.push(Record { now, entry: Entry::Change(id, change.clone()) });
            self.follow_up(now, id, change);
        }
        Ok(changes)
    }

    /// Durable first; then published, answered and done. What could not be written is neither published nor done.
    fn commit(&mut self, own: &mpsc::WeakSender<Request>) {
        let mut batch = std::mem::take(&mut self.batch);
        if let Err(problem) = self.make_durable(&mut batch) {
            // Whoever is told that it did not work can then be told why.
            self.break_off(&problem);
            batch.replies.into_iter().for_each(Reply::fail);
            return;
        }
        batch.records.iter().for_each(|record| self.follow(&record.entry));
        batch.publish.iter().for_each(|(id, tenant)| self.publish(*id, *tenant));
        batch.unpublish.iter().for_each(|(id, tenant)| drop(self.ward(*id).slots.remove(tenant)));
        self.keeping.show_trail();
        let readable = self.clock.now();
        self.shown = self.chain;
        batch.replies.into_iter().for_each(Reply::send);
        if !batch.records.is_empty() || !batch.trail.is_empty() {
            self.heralds.tell(batch.trail);
            self.keeping.fold_if_wanted(&self.kept);
        }
        batch.perform.into_iter().for_each(|(id, action)| self.perform(id, action, own));
        self.after_publication(batch.announced, readable);
        if !self.batch.records.is_empty() {
            self.commit(own);
        }
    }

    fn publish(&mut self, id: ClusterId, tenant_id: TenantId) {
        let Some(Estate { cluster, .. }) = self.kept.clusters.get(&id) else { return };
        let Some(tenant) = cluster.tenant(tenant_id) else { return };
        let machines = tenant.machines().iter().filter_map(|id| cluster.machine(*id));
        let members = machines.map(|machine| machine.name.clone()).collect();
        let published = Published::of(tenant, members, self.chain.number);
        let slots = &mut self.wards.entry(id).or_default().slots;
        match slots.get(&tenant_id) {
            Some(slot) => slot.publish(published),
            None => drop(slots.insert(tenant_id, Arc::new(Slot::new(id, tenant_id, published)))),
        }
    }

    fn perform(&mut self, id: ClusterId, action: Action, own: &mpsc::WeakSender<Request>) {
        let Some(Estate { cluster, .. }) = self.kept.clusters.get(&id) else { return };
        let ward = self.wards.entry(id).or_default();
        match &self.hands {
            Hands::Pretend => ward.pretend.take_on(cluster, action, self.clock.now().steady),
            Hands::Program(program) => {
                if self.stopping.is_none() && ward.errands.insert((action.maintenance, action.machine)) {
                    let order = Order::of(cluster, action);
                    let (program, driver, stop) = (program.clone(), own.clone(), self.stop.subscribe());
                    tokio::spawn(Errand { program, order, cluster: id, action, driver, stop }.run());
                }
            }
        }
    }

    /// Does everything that is due at that moment, and makes it known.
    fn settle(&mut self, now: Now, own: &mpsc::WeakSender<Request>) {
        self.commit(own);
        while self.step(now) {
            self.commit(own);
        }
    }

    /// Does the first thing that is due. Says whether there was one.
    fn step(&mut self, now: Now) -> bool {
        if self.keeping.is_broken() || self.readers == Readers::Absent {
            return false;
        }
        let wards = &mut self.wards;
        let mut clusters = self.kept.clusters.iter();
        let due = clusters.find_map(|(id, estate)| Some((*id, due(estate, wards.get_mut(id)?, now)?)));
        let Some((id, command)) = due else { return self.sweep(now) };
        match self.decide(now, id, &command) {
            Ok(_) => true,
            Err(refusal) => {
                tracing::error!(?command, %refusal, "the rules refuse what they asked for");
                false
            }
        }
    }
}

/// What is due first in a cluster, if anything is.
fn due(Estate { cluster, .. }: &Estate, ward: &mut Ward, now: Now) -> Option<Command> {
    if let Some((maintenance, machine)) = ward.pretend.take_done(now.steady) {
        let report = if ward.jammed.remove(&machine) { Report::Failed } else { Report::Done };
        return Some(Command::Complete { maintenance, machine, report });
    }
    if let Some(tenant) = cluster.silences_due(now).next() {
        let heard = ward.slots.get(&tenant).map_or(Steady::START, |slot| slot.heard());
        let ago = now.steady.since(heard);
        let was_heard = ago < limits::SILENCE_MAX;
        return Some(if was_heard { Command::Heard { tenant, ago } } else { Command::Silent(tenant) });
    }
    cluster.next_deadline().is_some_and(|deadline| deadline.is_due(now)).then_some(Command::Tick)
}
