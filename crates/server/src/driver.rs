//! The driver: the one task that owns a cluster.
//!
//! It takes requests in batches. For a batch it decides and evolves, appends everything to the journal, and only then
//! publishes, answers and acts. Between batches it sleeps until the next deadline of the rules or of a pretend machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use forewarn_hypervisor::{Answer, Order, Pretend};
use forewarn_lifecycle::{
    Action, Change, Cluster, Command, Effect, MachineId, Now, Refusal, Report, Steady, TenantId, limits,
};
use forewarn_store::{Entry, Journal, Record};
use tokio::sync::{mpsc, oneshot};

use crate::clock::{Clock, Kind, later};
use crate::directory::{Caller, Directory};
use crate::engine::{ClockCommand, Decided, Details, Hands, Problem, Request};
use crate::load::Load;
use crate::published::{Published, Slot};

pub(crate) struct Driver {
    cluster: Cluster,
    journal: Journal,
    clock: Clock,
    hands: Hands,
    pretend: Pretend,
    directory: Arc<Directory>,
    slots: BTreeMap<TenantId, Arc<Slot>>,
    details: BTreeMap<MachineId, Known>,
    batch: Batch,
}

/// What the shell knows of a machine, and what it has put into the directory for it.
struct Known {
    tenant: TenantId,
    details: Details,
    listed: Option<(forewarn_lifecycle::Name, Arc<Caller>)>,
}

/// What has been decided and is not in the journal yet.
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    publish: BTreeSet<TenantId>,
    unpublish: BTreeSet<TenantId>,
    perform: Vec<Action>,
    replies: Vec<(oneshot::Sender<Result<Decided, Problem>>, Decided)>,
}

/// Requests that are taken together.
const BATCH_MAX: usize = 256;

/// The longest sleep: no timer is trusted for longer.
const SLEEP_MAX: Duration = Duration::from_secs(1);

impl Driver {
    pub(crate) fn new(
        cluster: Cluster,
        journal: Journal,
        clock: Clock,
        hands: Hands,
        directory: Arc<Directory>,
    ) -> Self {
        Self {
            cluster,
            journal,
            clock,
            hands,
            pretend: Pretend::default(),
            directory,
            slots: BTreeMap::new(),
            details: BTreeMap::new(),
            batch: Batch::default(),
        }
    }

    /// Runs until nobody has a handle any more.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<Request>, own: mpsc::WeakSender<Request>) {
        let mut requests = Vec::with_capacity(BATCH_MAX);
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
            for request in requests.drain(..) {
                self.handle(request, &own);
            }
            let now = self.clock.now();
            self.settle(now, &own);
        }
    }

    /// How long, in real time, there is nothing to do.
    fn until_next(&self) -> Duration {
        let wait = self.next_after(self.clock.now()).and_then(|span| self.clock.real_time_for(span));
        wait.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// How long it is, on the clock, until something is due.
    fn next_after(&self, now: Now) -> Option<Duration> {
        let rules = self.cluster.next_deadline().map(|deadline| deadline.wait(now));
        let machines = self.pretend.next().map(|at| at.since(now.steady));
        rules.into_iter().chain(machines).min()
    }

    fn handle(&mut self, request: Request, own: &mpsc::WeakSender<Request>) {
        match request {
            Request::Submit { command, reply } => {
                let now = self.clock.now();
                match self.decide(now, &command) {
                    Ok(changes) => self.batch.replies.push((reply, Decided { changes, now })),
                    // Whoever asked may have gone; nothing has changed.
                    Err(refusal) => drop(reply.send(Err(refusal.into()))),
                }
            }
            Request::Describe { machine, details } => {
                self.unlist(machine);
                if let Some(tenant) = self.cluster.machine(machine).map(|machine| machine.tenant) {
                    self.details.insert(machine, Known { tenant, details: *details, listed: None });
                }
                self.list(machine);
            }
            Request::Look(look) => {
                self.commit(own);
                look(&self.cluster, self.clock.now());
            }
            Request::Drive { command, reply } => {
                let now = self.drive(command, own);
                drop(reply.send(Ok(now)));
            }
        }
    }

    /// Decides and evolves; nobody outside knows of it before [`Self::commit`].
    fn decide(&mut self, now: Now, command: &Command) -> Result<Vec<Change>, Refusal> {
        let changes = self.cluster.decide(now, command)?;
        for change in &changes {
            for effect in self.cluster.evolve(now, change) {
                match effect {
                    Effect::Publish(tenant) => drop(self.batch.publish.insert(tenant)),
                    Effect::Unpublish(tenant) => drop(self.batch.unpublish.insert(tenant)),
                    Effect::Perform(action) => self.batch.perform.push(action),
                }
            }
            self.batch.records.push(Record { now, entry: Entry::Change(change.clone()) });
        }
        Ok(changes)
    }

    /// Durable first; then published, answered and done. What could not be written is neither published nor done.
    fn commit(&mut self, own: &mpsc::WeakSender<Request>) {
        let batch = std::mem::take(&mut self.batch);
        if let Err(problem) = self.journal.append(&batch.records) {
            tracing::error!(%problem, "nothing of this batch counts");
            batch.replies.into_iter().for_each(|(reply, _)| drop(reply.send(Err(Problem::Unavailable))));
            return;
        }
        for record in &batch.records {
            if let Entry::Change(change) = &record.entry {
                self.follow(change);
            }
        }
        batch.publish.iter().for_each(|tenant| self.publish(*tenant));
        batch.unpublish.iter().for_each(|tenant| drop(self.slots.remove(tenant)));
        for (reply, decided) in batch.replies {
            drop(reply.send(Ok(decided)));
        }
        batch.perform.into_iter().for_each(|action| self.perform(action, own));
    }

    fn publish(&mut self, id: TenantId) {
        let Some(tenant) = self.cluster.tenant(id) else { return };
        let machines = tenant.machines().iter().filter_map(|id| self.cluster.machine(*id));
        let published = Published::of(tenant, machines.map(|machine| machine.name.clone()).collect());
        match self.slots.get(&id) {
            Some(slot) => slot.publish(published),
            None => drop(self.slots.insert(id, Arc::new(Slot::new(id, published)))),
        }
    }

    fn perform(&mut self, action: Action, own: &mpsc::WeakSender<Request>) {
        match &self.hands {
            Hands::Pretend => self.pretend.take_on(&self.cluster, action, self.clock.now().steady),
            Hands::Program(program) => {
                let order = Order::of(&self.cluster, action);
                tokio::spawn(order_until_known(program.clone(), order, action, own.clone()));
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
        let command = if let Some((maintenance, machine)) = self.pretend.take_done(now.steady) {
            Command::Complete { maintenance, machine, report: Report::Done }
        } else if let Some(tenant) = self.first_silence(now) {
            self.answer_silence(tenant, now)
        } else if self.cluster.next_deadline().is_some_and(|deadline| deadline.is_due(now)) {
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

    fn first_silence(&self, now: Now) -> Option<TenantId> {
        self.cluster.silences_due(now).next()
    }

    fn answer_silence(&self, tenant: TenantId, now: Now) -> Command {
        let heard = self.slots.get(&tenant).map_or(Steady::START, |slot| slot.heard());
        let ago = now.steady.since(heard);
        if ago < limits::SILENCE_MAX { Command::Heard { tenant, ago } } else { Command::Silent(tenant) }
    }

    /// Drives a virtual clock: everything that is due on the way happens at its own moment.
    fn drive(&mut self, command: ClockCommand, own: &mpsc::WeakSender<Request>) -> Now {
        debug_assert_eq!(self.clock.kind(), Kind::Virtual);
        let mut now = self.clock.now();
        let mut speed = self.clock.speed();
        self.settle(now, own);
        match command {
            ClockCommand::Run(chosen) => speed = chosen,
            ClockCommand::Advance(span) => {
                let end = now.steady.plus(span);
                while now.steady < end {
                    let left = end.since(now.steady);
                    now = self
                        .stop_at(later(now, self.next_after(now).map_or(left, |next| next.min(left))), own);
                }
            }
            ClockCommand::Next => {
                let shown = self.shown();
                while self.shown() == shown
                    && let Some(next) = self.next_after(now)
                {
                    now = self.stop_at(later(now, next), own);
                }
            }
        }
        self.clock.set(now, speed);
        self.batch.records.push(Record { now, entry: Entry::Clock });
        self.commit(own);
        now
    }

    /// The clock stands there until everything that is due then is done.
    fn stop_at(&mut self, now: Now, own: &mpsc::WeakSender<Request>) -> Now {
        self.clock.set(now, crate::clock::Speed(0));
        self.settle(now, own);
        now
    }

    /// A number that is another when any document is.
    fn shown(&self) -> u64 {
        self.slots.values().map(|slot| slot.read().document.incarnation).sum()
    }

    /// Keeps the directory, and the lists of members, as the fleet is.
    fn follow(&mut self, change: &Change) {
        if let Change::MachineAdmitted { machine, new } = change {
            self.publish(new.tenant);
            self.list(*machine);
        }
        if let Change::Completed { machine, .. } = change
            && self.cluster.machine(*machine).is_none()
        {
            self.unlist(*machine);
            if let Some(known) = self.details.remove(machine) {
                self.publish(known.tenant);
            }
        }
    }

    fn list(&mut self, id: MachineId) {
        let Some(machine) = self.cluster.machine(id) else { return };
        let Some(tenant) = self.cluster.tenant(machine.tenant) else { return };
        let (tenant_name, name, tenant_id) = (tenant.name.clone(), machine.name.clone(), machine.tenant);
        let (Some(slot), Some(known)) = (self.slots.get(&tenant_id), self.details.get_mut(&id)) else {
            return;
        };
        let instance = known.details.instance.clone();
        let caller =
            Arc::new(Caller { machine: id, name, slot: Arc::clone(slot), instance, load: Load::default() });
        self.directory.add(&tenant_name, &caller, &known.details.addresses);
        known.listed = Some((tenant_name, caller));
    }

    fn unlist(&mut self, id: MachineId) {
        if let Some(known) = self.details.get_mut(&id)
            && let Some((tenant, caller)) = known.listed.take()
        {
            self.directory.remove(&tenant, &caller, &known.details.addresses);
        }
    }
}

/// Gives an order until somebody knows how it ended, and reports that.
async fn order_until_known(
    program: forewarn_hypervisor::Program,
    order: Option<Order>,
    action: Action,
    driver: mpsc::WeakSender<Request>,
) {
    let mut pause = Duration::from_millis(500);
    let report = loop {
        // A machine that is gone needs nothing any more.
        let Some(order) = &order else { break Report::Done };
        match program.perform(order).await {
            Answer::Done => break Report::Done,
            Answer::Failed { message } => {
                tracing::warn!(action = order.action, machine = order.machine, message, "an impact failed");
                break Report::Failed;
            }
            Answer::Unknown { message } => {
                tracing::warn!(
                    action = order.action,
                    machine = order.machine,
                    message,
                    "an impact is unknown"
                );
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(60));
            }
        }
    };
    let Some(driver) = driver.upgrade() else { return };
    let command = Command::Complete { maintenance: action.maintenance, machine: action.machine, report };
    let (reply, answer) = oneshot::channel();
    if driver.send(Request::Submit { command, reply }).await.is_ok() {
        drop(answer.await);
    }
}
