//! The state of the model, and its steps.

use forewarn_ownership::{
    Answer, BootId, Revision, ServerName, StreamClock, StreamWriter, Takeover, TakeoverStep, WriterStep,
};

use super::application::{Batch, ClientWrite, EventState, NOTICE_TICKS, Record, uptime};
use super::engine::{Engine, Network, SentCopy, StreamTransaction};
use super::server::{Choice, Driver, ModelHost, ModelServer, NoticeState, Role, begin_takeover, is_at_rest};
use super::{Omission, RealmAction, RealmModel};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) tick: u8,
    /// The kind of the client's write in this run.
    pub(super) write: ClientWrite,
    pub(super) engine: Engine,
    pub(super) network: Network,
    pub(super) servers: [ModelServer; 2],
    /// Servers whose order to carry out the action is on its way to the host.
    pub(super) orders: [bool; 2],
    pub(super) effects: u8,
    pub(super) rejections: u8,
    pub(super) seen: Observations,
}

/// Everything that guests and clients have seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Observations {
    pub(super) announcement_answered: bool,
    pub(super) write_answered: bool,
    /// The tick since which guests can read the event.
    pub(super) readable_since: Option<u8>,
    pub(super) started_early: bool,
    pub(super) fenced_server_acted: bool,
}

impl World {
    /// Two servers, on one computer or on two.
    pub(super) fn initial(write: ClientWrite) -> Vec<Self> {
        let first = ModelHost { boot: BootId([1; 16]), booted_ticks_ago: 1 };
        let other = ModelHost { boot: BootId([2; 16]), booted_ticks_ago: 9 };
        [first, other].map(|second| Self::with(first, second, write)).to_vec()
    }

    fn with(first: ModelHost, second: ModelHost, write: ClientWrite) -> Self {
        let server = |name, host| ModelServer {
            name: ServerName::new(name).expect("a good name"),
            host,
            role: Role::Standby,
        };
        let mut servers = [server("a", first), server("b", second)];
        let clock = StreamClock::new(Some(first.boot), uptime(first.booted_ticks_ago, 0));
        let head_clock = clock.head_clock(servers[0].uptime(0));
        let batch = servers[0].batch_after(Revision::ABSENT, 0);
        let creation = Takeover::creation(servers[0].name.clone(), batch, (), head_clock);
        let engine = Engine::created(creation.transaction());
        let TakeoverStep::Won(writer) = creation.answer(Answer::Applied { revision: Revision(1) }) else {
            unreachable!("the engine has applied the creation");
        };
        let state = EventState::default();
        let notice = NoticeState::NotAnnounced;
        servers[0].role = Role::Owner(Driver { writer, clock, state, notice });
        Self {
            tick: 0,
            write,
            engine,
            network: Network::default(),
            servers,
            orders: [false; 2],
            effects: 0,
            rejections: 0,
            seen: Observations::default(),
        }
    }

    pub(super) fn act(&mut self, model: &RealmModel, action: RealmAction) {
        match action {
            RealmAction::Tick => self.tick += 1,
            RealmAction::Begin { server, choice } => self.begin(model, server, choice),
            RealmAction::BeginTakeover { server } => {
                let batch = self.servers[server].batch_after(self.engine.revision, self.rejections);
                let (one, now) = (&mut self.servers[server], (&self.engine, self.tick));
                let transaction = begin_takeover(one, model, now, batch);
                self.network.send(server, transaction);
            }
            RealmAction::BeginMove { server } => self.begin_move(server),
            RealmAction::Accept { server } => self.accept(model, server),
            RealmAction::Execute { copy } => {
                let (copy, answer) = self.execute(model, copy);
                self.answer(model, &copy, answer);
            }
            RealmAction::ExecuteSilently { copy } => drop(self.execute(model, copy)),
            RealmAction::Lose { copy } => drop(self.network.take(copy)),
            RealmAction::Reject { copy } => {
                self.rejections += 1;
                let copy = self.network.take(copy);
                self.answer(model, &copy, Answer::Rejected);
            }
            RealmAction::Repeat { server } => self.repeat(model, server),
            RealmAction::CarryOut { server } => self.carry_out(model, server),
        }
        self.forget_dead_copies(model);
    }

    /// Removes copies that can neither be applied nor be answered: it makes no difference if they arrive.
    fn forget_dead_copies(&mut self, model: &RealmModel) {
        let Self { engine, servers, network, .. } = self;
        network.retain(|copy| {
            let waiting = servers[copy.from].in_flight().map(|transaction| transaction.head.batch);
            waiting == Some(copy.transaction.head.batch)
                || engine.matches(&copy.transaction, model.compared_key())
        });
    }

    fn begin(&mut self, model: &RealmModel, server: usize, choice: Choice) {
        let one = &mut self.servers[server];
        let uptime = one.uptime(self.tick);
        let batch = one.batch_after(one.known_revision(), self.rejections);
        let Role::Owner(driver) = &mut one.role else { unreachable!("only an owner commits") };
        let transaction = driver.begin(model, choice, batch, uptime);
        if model.omission == Some(Omission::AnswerAfterCommit)
            && let Some(batch) = transaction.payload
        {
            self.reply(server, batch.record);
        }
        self.network.send(server, transaction);
    }

    fn begin_move(&mut self, server: usize) {
        let to = self.servers[1 - server].name.clone();
        let one = &mut self.servers[server];
        let uptime = one.uptime(self.tick);
        let batch = one.batch_after(one.known_revision(), self.rejections);
        let Role::Owner(driver) = &mut one.role else { unreachable!("only an owner moves a stream") };
        let clock = driver.clock.head_clock(uptime);
        let transaction = driver.writer.begin_move(to, batch, clock).expect("the writer is ready").clone();
        self.network.send(server, transaction);
    }

    fn accept(&mut self, model: &RealmModel, server: usize) {
        let (name, head) = (self.servers[server].name.clone(), self.engine.head.clone());
        let clock = self.servers[server].resumed_clock(model, &head.clock, self.tick);
        let writer = StreamWriter::after_move(name, Some(&self.engine.owner), self.engine.revision, head);
        self.open(model, server, writer.expect("the owner key names this server"), clock);
    }

    fn execute(&mut self, model: &RealmModel, copy: usize) -> (SentCopy, Answer<()>) {
        let copy = self.network.take(copy);
        let answer = self.engine.execute(&copy.transaction, model.compared_key());
        if matches!(answer, Answer::Applied { .. })
            && copy.transaction.payload.is_some_and(|batch| batch.record == Record::Started)
        {
            self.check_start();
        }
        (copy, answer)
    }

    fn check_start(&mut self) {
        let approved = self.engine.count(|record| *record == Record::Written(ClientWrite::Approval)) > 0;
        let full = self.seen.readable_since.is_some_and(|since| self.tick - since >= NOTICE_TICKS);
        self.seen.started_early |= !approved && !full;
    }

    /// Gives an answer to the server that sent the copy, if it still waits for one.
    fn answer(&mut self, model: &RealmModel, copy: &SentCopy, answer: Answer<()>) {
        let one = &mut self.servers[copy.from];
        let waits = |waiting: &StreamTransaction| waiting.head.batch == copy.transaction.head.batch;
        if !one.in_flight().is_some_and(waits) {
            return;
        }
        match std::mem::replace(&mut one.role, Role::Standby) {
            Role::Owner(driver) => self.answer_owner(model, copy.from, driver, answer),
            Role::TakingOver { takeover, clock } => match takeover.answer(answer) {
                TakeoverStep::Won(writer) => self.open(model, copy.from, writer, clock),
                TakeoverStep::Repeat(takeover) => one.role = Role::TakingOver { takeover, clock },
                TakeoverStep::Lost { .. } | TakeoverStep::Rejected => {}
            },
            Role::Standby | Role::Fenced(_) => unreachable!("nothing was in flight"),
        }
    }

    fn answer_owner(&mut self, model: &RealmModel, server: usize, mut driver: Driver, answer: Answer<()>) {
        let step = driver.writer.answer(answer).expect("a transaction is in flight");
        match step {
            WriterStep::Committed { payload, .. } => self.committed(model, server, driver, payload),
            WriterStep::Repeat | WriterStep::Rejected { .. } => {
                self.servers[server].role = Role::Owner(driver);
            }
            WriterStep::Moved { .. } | WriterStep::Fenced { .. } => {
                self.servers[server].role = Role::Fenced(driver.writer.head().term);
                self.seen.fenced_server_acted |= !is_at_rest(driver.writer);
            }
        }
    }

    /// The owner applies, publishes, answers and orders.
    fn committed(&mut self, model: &RealmModel, server: usize, mut driver: Driver, payload: Option<Batch>) {
        if let Some(batch) = payload {
            let record = batch.record;
            driver.state.apply(batch);
            if matches!(record, Record::Announced { .. } | Record::Deferred { .. }) {
                driver.check_notice(model, self.servers[server].uptime(self.tick));
            }
            self.servers[server].role = Role::Owner(driver);
            self.reply(server, record);
            self.publish(server);
        } else {
            self.servers[server].role = Role::Owner(driver);
        }
    }

    fn open(
        &mut self,
        model: &RealmModel,
        server: usize,
        writer: StreamWriter<(), Batch>,
        clock: StreamClock,
    ) {
        self.servers[server].open(model, writer, clock, (&self.engine, self.tick));
        self.publish(server);
    }

    /// Shows the event, and orders the action of one that has started.
    fn publish(&mut self, server: usize) {
        let Some(driver) = self.servers[server].driver() else {
            self.seen.fenced_server_acted = true;
            return;
        };
        if driver.notice == NoticeState::Shown {
            self.seen.readable_since.get_or_insert(self.tick);
        }
        if driver.state.started {
            self.orders[server] = true;
        }
    }

    fn reply(&mut self, server: usize, record: Record) {
        self.seen.fenced_server_acted |= self.servers[server].driver().is_none();
        match record {
            Record::Announced { .. } => self.seen.announcement_answered = true,
            Record::Written(_) => self.seen.write_answered = true,
            Record::Deferred { .. } | Record::Started => {}
        }
    }

    fn repeat(&mut self, model: &RealmModel, server: usize) {
        let Some(transaction) = self.servers[server].in_flight().cloned() else {
            unreachable!("only a transaction in flight is repeated")
        };
        let copy = SentCopy { from: server, transaction };
        self.answer(model, &copy, Answer::NoAnswer);
        self.network.send(server, copy.transaction);
    }

    fn carry_out(&mut self, model: &RealmModel, server: usize) {
        self.orders[server] = false;
        let has_log = model.omission != Some(Omission::ActionLog);
        if self.effects == 0 || !has_log {
            self.effects += 1;
        }
    }
}
