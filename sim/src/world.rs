//! The data centre: one queue of events, in the order of their times.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use forewarn_control::ClusterId;
use forewarn_control::shared::SharedState;
use forewarn_lifecycle::ActionName;
use forewarn_ownership::BootId;

use crate::checks::Checks;
use crate::clients::{Guest, Operator};
use crate::context::Context;
use crate::engine::Engine;
use crate::faults::{Fault, schedule};
use crate::fleet::Fleet;
use crate::host_clock::HostClock;
use crate::hypervisor::Hypervisor;
use crate::message::{Message, Node};
use crate::names::{SERVERS, name_of};
use crate::network::Network;
use crate::omission::Omission;
use crate::random::Random;
use crate::server::{InitialStates, Server};
use crate::step_log::StepLog;

/// Interval of the tasks of a server, in milliseconds.
const TICK_MILLIS: u64 = 50;
/// Time after the end of the faults within which everything must end.
const REST_MILLIS: u64 = 180_000;

/// An event of the queue.
#[derive(Debug)]
enum Step {
    Deliver(Node, Box<Message>),
    /// The tasks of one process of a server.
    Tick(usize, u64),
    Fault(Box<Fault>),
    Start(usize),
    Poll(usize),
    Turn(usize),
    EndAction(ActionName),
    EndOfFaults,
}

pub(crate) struct World {
    now: u64,
    steps: BTreeMap<u64, Step>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    last_id: u64,
    random: Random,
    omission: Option<Omission>,
    shared: Arc<SharedState>,
    checks: Checks,
    step_log: StepLog,
    engine: Engine,
    network: Network,
    servers: Vec<Server>,
    guests: Vec<Guest>,
    operators: Vec<Operator>,
    hypervisor: Hypervisor,
    paused_until: [u64; SERVERS],
    /// Servers that crash or pause with their next announcement.
    ambushes: [Option<(bool, u64)>; SERVERS],
    engine_down_until: u64,
    engine_slow_until: u64,
    end_of_faults: u64,
    is_faulty: bool,
}

impl World {
    pub(crate) fn new(seed: u64, omission: Option<Omission>, is_written: bool) -> Self {
        let mut random = Random::new(seed);
        let clusters = u32::try_from(random.between(1, 4)).unwrap_or(1);
        let fleet = Fleet::new(&mut random, clusters);
        let initial: InitialStates =
            fleet.clusters.iter().map(|(id, one)| (*id, (Arc::clone(&one.state), one.audit_end))).collect();
        let initial = Arc::new(initial);
        let drift = if random.per_mille(300) { 400 } else { 20 };
        let servers = (0..SERVERS).map(|index| {
            let clock = HostClock {
                boot: BootId(u128::from(random.next()).to_be_bytes()),
                uptime_at_start: random.between(0, 5_000_000).cast_signed(),
                wall_ahead: random.between(0, 800).cast_signed() - 400,
                drift: random.between(0, 2 * drift).cast_signed() - drift.cast_signed(),
            };
            Server::new(index, clock, &initial)
        });
        let servers = servers.collect();
        let guests = fleet.machines.iter().enumerate();
        let guests = guests.map(|(index, place)| Guest::new(index, random.branch(), place.clone())).collect();
        let operators =
            (0..2 + random.index(3)).map(|index| Operator::new(index, random.branch(), &fleet.machines));
        let operators = operators.collect();
        let end_of_faults = random.between(30_000, 75_000);
        let mut world = Self {
            now: 0,
            steps: BTreeMap::new(),
            queue: BinaryHeap::new(),
            last_id: 0,
            omission,
            checks: Checks::new(&fleet),
            step_log: StepLog::new(is_written),
            engine: Engine::new(fleet.clusters.keys().copied()),
            network: Network::new(random.branch()),
            servers,
            guests,
            operators,
            hypervisor: Hypervisor::new(random.branch()),
            paused_until: [0; SERVERS],
            ambushes: [None; SERVERS],
            engine_down_until: 0,
            engine_slow_until: 0,
            end_of_faults,
            is_faulty: true,
            shared: fleet.shared,
            random,
        };
        world.begin(&fleet.clusters.keys().copied().collect::<Vec<_>>());
        world
    }

    fn begin(&mut self, clusters: &[ClusterId]) {
        for server in 0..SERVERS {
            self.add(0, Step::Start(server));
        }
        for guest in 0..self.guests.len() {
            let at = self.random.between(500, 3_000);
            self.add(at, Step::Poll(guest));
        }
        for operator in 0..self.operators.len() {
            self.add(1_000, Step::Turn(operator));
        }
        for (at, fault) in schedule(&mut self.random, self.end_of_faults, clusters) {
            self.add(at, Step::Fault(Box::new(fault)));
        }
        self.add(self.end_of_faults, Step::EndOfFaults);
    }

    fn add(&mut self, at: u64, step: Step) {
        self.last_id += 1;
        self.queue.push(Reverse((at, self.last_id)));
        self.steps.insert(self.last_id, step);
    }

    /// Runs until everything has ended, or a promise is broken.
    pub(crate) fn run(&mut self) {
        while let Some(Reverse((at, id))) = self.queue.pop() {
            let Some(step) = self.steps.remove(&id) else { continue };
            self.now = at;
            self.do_step(step);
            if self.checks.violation().is_some() {
                return;
            }
            if self.has_ended() {
                let copies: Vec<_> = self.servers.iter().map(Server::copies).collect();
                return self.checks.finish(self.now, &self.engine, &copies);
            }
            if self.now > self.end_of_faults + REST_MILLIS {
                let what = self.unfinished();
                return self
                    .checks
                    .fail(self.now, format!("not everything has ended after the faults: {what}"));
            }
        }
    }

    /// Everything has ended: no work, no request, and every copy is complete and shown.
    fn has_ended(&self) -> bool {
        // Everything else can only become true after this.
        if self.is_faulty || !self.checks.is_at_rest() || self.operators.iter().any(Operator::is_waiting) {
            return false;
        }
        self.engine.streams().all(|(id, keys)| {
            let number = keys.head.as_ref().map_or(0, |head| head.number);
            let owns = |server: &Server| {
                let driver = server.process.as_ref().and_then(|process| process.drivers.get(&id));
                driver.is_some_and(|driver| driver.owned_term().is_some() && driver.transaction().is_none())
            };
            let is_current = |server: &Server| {
                let driver = server.process.as_ref().and_then(|process| process.drivers.get(&id));
                driver.is_some_and(|driver| driver.published.log_number() == number)
            };
            self.servers.iter().any(owns) && self.servers.iter().all(is_current)
        })
    }

    fn unfinished(&self) -> String {
        let works = if self.checks.is_at_rest() { "no work is open" } else { "work is open" };
        let waiting = self.operators.iter().filter(|operator| operator.is_waiting()).count();
        let owners = self.engine.streams().map(|(id, keys)| {
            let number = keys.head.as_ref().map_or(0, |head| head.number);
            let servers = self.servers.iter().map(|server| {
                let driver = server.process.as_ref().and_then(|process| process.drivers.get(&id));
                driver.map_or("none".to_owned(), |driver| {
                    format!("{}{}", driver.published.log_number(), driver.owned_term().map_or("", |_| "*"))
                })
            });
            format!("cluster {id}: log {number}, copies {}", servers.collect::<Vec<_>>().join(" "))
        });
        format!("{works}, {waiting} requests wait, {}", owners.collect::<Vec<_>>().join(", "))
    }

    fn do_step(&mut self, step: Step) {
        match step {
            Step::Deliver(to, message) => self.deliver(to, *message),
            Step::Tick(server, epoch) => self.tick(server, epoch),
            Step::Start(server) => self.start(server),
            Step::Fault(fault) => self.happen(*fault),
            Step::Poll(guest) => {
                let next =
                    self.with_context(Node::Guest(guest), |world, context| world.guests[guest].poll(context));
                self.add(next, Step::Poll(guest));
            }
            Step::Turn(operator) => {
                let is_active = self.is_faulty;
                self.with_context(Node::Operator(operator), |world, context| {
                    world.operators[operator].turn(context, is_active);
                });
                let at = self.now + 100;
                self.add(at, Step::Turn(operator));
            }
            Step::EndAction(name) => {
                self.with_context(Node::Hypervisor, |world, context| world.hypervisor.end(context, name));
            }
            Step::EndOfFaults => self.end_faults(),
        }
    }

    /// Lets a part of the data centre do something, and sends its messages.
    fn with_context<T>(&mut self, from: Node, act: impl FnOnce(&mut Parts<'_>, &mut Context<'_>) -> T) -> T {
        let mut context = Context {
            now: self.now,
            omission: self.omission,
            shared: &self.shared,
            checks: &mut self.checks,
            step_log: &mut self.step_log,
            last_id: &mut self.last_id,
            out: Vec::new(),
        };
        let mut parts = Parts {
            servers: &mut self.servers,
            guests: &mut self.guests,
            operators: &mut self.operators,
            hypervisor: &mut self.hypervisor,
        };
        let result = act(&mut parts, &mut context);
        for (to, message) in std::mem::take(&mut context.out) {
            self.send(from, to, message);
        }
        result
    }

    fn send(&mut self, from: Node, to: Node, message: Message) {
        let arrivals = self.network.arrivals(self.now, from, to, &message);
        let mut message = Some(message);
        for (place, at) in arrivals.iter().enumerate() {
            let is_last = place + 1 == arrivals.len();
            let copy = if is_last { message.take() } else { message.clone() };
            if let Some(copy) = copy {
                self.add(*at, Step::Deliver(to, Box::new(copy)));
            }
        }
    }

    fn start(&mut self, server: usize) {
        if self.servers[server].process.is_some() {
            return;
        }
        self.with_context(Node::Server(server), |world, context| world.servers[server].start(context));
        let (at, epoch) = (self.now + 1, self.servers[server].epoch);
        self.add(at, Step::Tick(server, epoch));
    }

    fn tick(&mut self, server: usize, epoch: u64) {
        if self.servers[server].epoch != epoch || self.servers[server].process.is_none() {
            return;
        }
        if self.paused_until[server] > self.now {
            return self.add(self.paused_until[server], Step::Tick(server, epoch));
        }
        self.with_context(Node::Server(server), |world, context| world.servers[server].tick(context));
        let at = self.now + TICK_MILLIS;
        self.add(at, Step::Tick(server, epoch));
    }

    fn deliver(&mut self, to: Node, message: Message) {
        match to {
            Node::Server(server) => {
                if self.paused_until[server] > self.now {
                    return self.add(self.paused_until[server], Step::Deliver(to, Box::new(message)));
                }
                self.with_context(to, |world, context| world.servers[server].receive(context, message));
            }
            Node::Engine => self.execute(message),
            Node::Hypervisor => {
                let Message::Order(order) = message else { return };
                let begun = self.with_context(to, |world, context| world.hypervisor.take(context, *order));
                if let Some((name, end)) = begun {
                    self.add(end, Step::EndAction(name));
                }
            }
            Node::Guest(guest) => {
                let Message::Document { document: Some(document) } = message else { return };
                self.with_context(to, |world, context| world.guests[guest].read(context, &document));
            }
            Node::Operator(operator) => self.with_context(to, |world, context| {
                let operator = &mut world.operators[operator];
                if let Message::Reply { ticket, answer } = &message {
                    operator.take_reply(context, *ticket, answer);
                } else if let Message::ReadReply { ticket, answer } = message {
                    operator.take_read(context, ticket, answer);
                }
            }),
        }
    }

    /// The engine executes a call, unless it is down.
    fn execute(&mut self, message: Message) {
        if self.engine_down_until > self.now {
            return;
        }
        if self.engine_slow_until > self.now {
            let at = self.engine_slow_until + self.random.between(0, 20);
            return self.add(at, Step::Deliver(Node::Engine, Box::new(message)));
        }
        let Message::Call { server, id, call } = message else { return };
        let (answer, written) = self.engine.execute(self.now, call, self.omission);
        self.send(Node::Engine, Node::Server(server), Message::Answer { id, answer });
        if let Some(written) = written {
            self.checks.written(self.now, &written, &mut self.step_log);
            if written.payload.announces() {
                self.ambush(server);
            }
            for other in 0..SERVERS {
                self.send(Node::Engine, Node::Server(other), Message::Changed);
            }
        }
        self.checks.check_heads(self.now, &self.engine);
    }

    /// A fault that waited for an announcement of a server.
    fn ambush(&mut self, server: usize) {
        let Some((pauses, millis)) = self.ambushes[server].take() else { return };
        self.happen(if pauses {
            Fault::Pause { server, millis }
        } else {
            Fault::Crash { server, millis, lost_batches: 0, reboots: false }
        });
    }

    fn happen(&mut self, fault: Fault) {
        let (now, shown) = (self.now, format!("{fault:?}"));
        self.step_log.add(now, "fault", || shown);
        self.checks.count("faults");
        match fault {
            Fault::Crash { server, millis, lost_batches, reboots } => {
                let boot = reboots.then(|| BootId(u128::from(self.random.next()).to_be_bytes()));
                self.with_context(Node::Server(server), |world, context| {
                    world.servers[server].crash(context, lost_batches, boot);
                });
                self.add(now + millis, Step::Start(server));
            }
            Fault::Pause { server, millis } => self.paused_until[server] = now + millis,
            Fault::Partition { directions, millis } => {
                for (from, to) in directions {
                    self.network.block(from, to, now + millis);
                }
            }
            Fault::EngineOutage { millis } => self.engine_down_until = now + millis,
            Fault::SlowEngine { millis } => self.engine_slow_until = now + millis,
            Fault::ClockStep { server, millis } => {
                let stepped = |index: &usize| server.is_none_or(|server| server == *index);
                (0..SERVERS).filter(stepped).for_each(|index| self.servers[index].clock.wall_ahead += millis);
            }
            Fault::Move { cluster, to } => {
                let owner = self.engine.stream(cluster).and_then(|keys| keys.owner.as_ref());
                let owner =
                    owner.and_then(|owner| (0..SERVERS).find(|index| name_of(*index) == owner.server));
                if let Some(owner) = owner {
                    self.send(Node::Operator(0), Node::Server(owner), Message::Move { cluster, to });
                }
            }
            Fault::Drain { server } => self.send(Node::Operator(0), Node::Server(server), Message::Drain),
            Fault::Ambush { server, pauses, millis } => self.ambushes[server] = Some((pauses, millis)),
            Fault::Weather { losses, late, repeated, late_millis } => {
                (self.network.losses, self.network.late) = (losses, late);
                (self.network.repeated, self.network.late_millis) = (repeated, late_millis);
            }
        }
    }

    /// Everything works from now on, all clocks agree, and guests approve events with a long notice.
    fn end_faults(&mut self) {
        self.is_faulty = false;
        self.step_log.add(self.now, "fault", || "all faults end".to_owned());
        self.network.recover();
        (self.paused_until, self.ambushes) = ([0; SERVERS], [None; SERVERS]);
        (self.engine_down_until, self.engine_slow_until) = (0, 0);
        let ahead = self.servers.iter().map(|server| server.clock.wall_ahead).max().unwrap_or(0);
        for server in &mut self.servers {
            (server.clock.wall_ahead, server.clock.drift) = (ahead, 0);
        }
        (0..SERVERS).for_each(|server| self.add(self.now, Step::Start(server)));
        self.guests.iter_mut().for_each(Guest::approve_long_notices);
    }

    pub(crate) fn into_result(self) -> (Option<String>, BTreeMap<&'static str, u64>, Vec<String>) {
        let violation = self.checks.violation().cloned();
        (violation, self.checks.seen, self.step_log.into_lines())
    }
}

/// The parts of the data centre that act.
struct Parts<'a> {
    servers: &'a mut Vec<Server>,
    guests: &'a mut Vec<Guest>,
    operators: &'a mut Vec<Operator>,
    hypervisor: &'a mut Hypervisor,
}
