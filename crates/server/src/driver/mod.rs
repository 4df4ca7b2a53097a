//! The driver: the one task that owns a cluster.
//!
//! It takes requests in batches. For a batch it decides and evolves, appends everything to the journal, and only then
//! publishes, answers and acts. Between batches it sleeps until the next deadline of the rules or of a pretend machine.

mod endings;
mod errand;
mod listing;
mod orders;
mod recovery;
#[cfg(test)]
mod tests;
mod time;
mod vigil;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use forewarn_hypervisor::{Order, Pretend};
use forewarn_lifecycle::{
    Action, Change, Command, Effect, MachineId, MaintenanceId, Now, Refusal, Report, Seed, Steady, TenantId,
    limits,
};
use forewarn_store::{Entry, Record, State as Kept};
use forewarn_wire::operator::{Happening, Outcome, happening};
use tokio::sync::{mpsc, oneshot, watch};

use crate::clock::Clock;
use crate::directory::Directory;
use crate::engine::{Decided, Hands, Heralds, Problem, Request, State};
use crate::published::{Published, Slot};
pub use endings::Endings;
use errand::Errand;
use listing::Listed;
pub(crate) use recovery::Keeping;
use vigil::Vigil;

pub(crate) struct Driver {
    /// All that has to survive.
    kept: Kept,
    keeping: Keeping,
    /// Ids of machines are made of it.
    identity: Seed,
    clock: Clock,
    hands: Hands,
    pretend: Pretend,
    /// Pretend machines for which the next thing fails.
    jammed: BTreeSet<MachineId>,
    /// What programs are busy with: nothing is ordered twice at a time.
    errands: BTreeSet<(MaintenanceId, MachineId)>,
    /// Why some of them have to be ordered again.
    troubles: BTreeMap<(MaintenanceId, MachineId), String>,
    stopping: Option<Stopping>,
    stop: watch::Sender<bool>,
    directory: Arc<Directory>,
    slots: BTreeMap<TenantId, Arc<Slot>>,
    /// Which machine has an address.
    held: BTreeMap<IpAddr, MachineId>,
    listed: BTreeMap<MachineId, Listed>,
    endings: Endings,
    heralds: Heralds,
    /// The clocks as they were last written down.
    noted: Now,
    vigil: Vigil,
    batch: Batch,
}

/// What has been decided and is not in the journal yet.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    happenings: Vec<Happening>,
    publish: BTreeSet<TenantId>,
    unpublish: BTreeSet<TenantId>,
    perform: Vec<Action>,
    replies: Vec<Reply>,
}

/// An answer that waits until what it says is durable.
enum Reply {
    Decided(oneshot::Sender<Result<Decided, Problem>>, Decided),
    Outcome(oneshot::Sender<Result<Outcome, Problem>>, Outcome),
}

impl Reply {
    /// Whoever asked may have gone; what was decided stays.
    fn send(self) {
        match self {
            Self::Decided(reply, decided) => drop(reply.send(Ok(decided))),
            Self::Outcome(reply, outcome) => drop(reply.send(Ok(outcome))),
        }
    }

    fn fail(self) {
        match self {
            Self::Decided(reply, _) => drop(reply.send(Err(Problem::Unavailable))),
            Self::Outcome(reply, _) => drop(reply.send(Err(Problem::Unavailable))),
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
        (kept, identity): (Kept, Seed),
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
            pretend: Pretend::default(),
            jammed: BTreeSet::new(),
            errands: BTreeSet::new(),
            troubles: BTreeMap::new(),
            stopping: None,
            stop: watch::Sender::new(false),
            directory,
            slots: BTreeMap::new(),
            held: BTreeMap::new(),
            listed: BTreeMap::new(),
            endings: Endings::default(),
            heralds,
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
            Request::Submit { command, reply } => {
                let now = self.clock.now();
                match self.decide(now, &command) {
                    Ok(changes) => self.batch.replies.push(Reply::Decided(reply, Decided { changes, now })),
                    // Whoever asked may have gone; nothing has changed.
                    Err(refusal) => drop(reply.send(Err(refusal.into()))),
                }
            }
            Request::Order { commands, reply } => match self.order(&commands) {
                Ok(outcome) => self.batch.replies.push(Reply::Outcome(reply, outcome)),
                Err(problem) => drop(reply.send(Err(problem))),
            },
            // Whoever asked may have gone.
            Request::Rehearse { commands, reply } => drop(reply.send(self.rehearse(&commands))),
            Request::Look(look) => {
                self.commit(own);
                // What could not be written never was: nobody sees it. Whoever asked finds that there will be no answer.
                if !self.keeping.is_broken() {
                    look(&self.state());
                }
            }
            Request::Drive { command, reply } => drop(reply.send(self.drive(command, own))),
            Request::Copy { to, reply } => {
                self.commit(own);
                self.keeping.copy(&to, reply);
            }
            Request::ErrandOver { maintenance, machine } => {
                self.errands.remove(&(maintenance, machine));
                self.troubles.remove(&(maintenance, machine));
            }
            Request::Trouble { maintenance, machine, trouble } => {
                self.troubles.insert((maintenance, machine), trouble);
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
        let is_over = |stopping: &mut Stopping| self.errands.is_empty() || stopping.until <= Instant::now();
        let Some(stopping) = self.stopping.take_if(is_over) else { return false };
        for (maintenance, machine) in &self.errands {
            tracing::warn!(%maintenance, %machine, "a program is ended in the middle of its work");
        }
        self.commit(own);
        self.keeping.close();
        // Whoever asked may have gone.
        stopping.reply.send(()).ok();
        true
    }

    fn state(&self) -> State<'_> {
        let Self { kept: Kept { cluster, site, details, .. }, endings, troubles, .. } = self;
        let now = self.clock.now();
        State { cluster, now, next_in: self.next_after(now), site, details, endings, troubles }
    }

    /// Decides and evolves; nobody outside knows of it before [`Self::commit`].
    fn decide(&mut self, now: Now, command: &Command) -> Result<Vec<Change>, Refusal> {
        let changes = self.kept.cluster.decide(now, command)?;
        let watched = self.heralds.is_watched();
        for change in &changes {
            if watched {
                self.batch.happenings.extend(happening(&self.kept.cluster, now, change));
            }
            for effect in self.kept.cluster.evolve(now, change) {
                match effect {
                    Effect::Publish(tenant) => drop(self.batch.publish.insert(tenant)),
                    Effect::Unpublish(tenant) => drop(self.batch.unpublish.insert(tenant)),
                    Effect::Perform(action) => self.batch.perform.push(action),
                }
            }
            self.endings.follow(&self.kept.cluster, change);
            self.batch.records.push(Record { now, entry: Entry::Change(change.clone()) });
        }
        Ok(changes)
    }

    /// Durable first; then published, answered and done. What could not be written is neither published nor done.
    fn commit(&mut self, own: &mpsc::WeakSender<Request>) {
        let batch = std::mem::take(&mut self.batch);
        if let Err(problem) = self.keeping.append(&batch.records) {
            // Whoever is told that it did not work can then be told why.
            self.break_off(&problem);
            batch.replies.into_iter().for_each(Reply::fail);
            return;
        }
        batch.records.iter().for_each(|record| self.follow(&record.entry));
        batch.publish.iter().for_each(|tenant| self.publish(*tenant));
        batch.unpublish.iter().for_each(|tenant| drop(self.slots.remove(tenant)));
        batch.replies.into_iter().for_each(Reply::send);
        if !batch.records.is_empty() {
            self.heralds.tell(batch.happenings);
            self.keeping.fold_if_wanted(&self.kept);
        }
        batch.perform.into_iter().for_each(|action| self.perform(action, own));
    }

    fn publish(&mut self, id: TenantId) {
        let Some(tenant) = self.kept.cluster.tenant(id) else { return };
        let machines = tenant.machines().iter().filter_map(|id| self.kept.cluster.machine(*id));
        let published = Published::of(tenant, machines.map(|machine| machine.name.clone()).collect());
        match self.slots.get(&id) {
            Some(slot) => slot.publish(published),
            None => drop(self.slots.insert(id, Arc::new(Slot::new(id, published)))),
        }
    }

    fn perform(&mut self, action: Action, own: &mpsc::WeakSender<Request>) {
        match &self.hands {
            Hands::Pretend => self.pretend.take_on(&self.kept.cluster, action, self.clock.now().steady),
            Hands::Program(program) => {
                if self.stopping.is_none() && self.errands.insert((action.maintenance, action.machine)) {
                    let order = Order::of(&self.kept.cluster, action);
                    let (program, driver, stop) = (program.clone(), own.clone(), self.stop.subscribe());
                    tokio::spawn(Errand { program, order, action, driver, stop }.run());
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
        if self.keeping.is_broken() {
            return false;
        }
        let command = if let Some((maintenance, machine)) = self.pretend.take_done(now.steady) {
            let report = if self.jammed.remove(&machine) { Report::Failed } else { Report::Done };
            Command::Complete { maintenance, machine, report }
        } else if let Some(tenant) = self.kept.cluster.silences_due(now).next() {
            self.answer_silence(tenant, now)
        } else if self.kept.cluster.next_deadline().is_some_and(|deadline| deadline.is_due(now)) {
            Command::Tick
        } else {
            return false;
        };
        match self.decide(now, &command) {
            Ok(_) => true,
            Err(refusal) => {
                tracing::error!(?command, %refusal, "the rules refuse what they asked for");
                false
            }
        }
    }

    fn answer_silence(&self, tenant: TenantId, now: Now) -> Command {
        let heard = self.slots.get(&tenant).map_or(Steady::START, |slot| slot.heard());
        let ago = now.steady.since(heard);
        if ago < limits::SILENCE_MAX { Command::Heard { tenant, ago } } else { Command::Silent(tenant) }
    }
}
