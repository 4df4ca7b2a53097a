//! A model of a realm with two servers: every interleaving of commits, takeovers, moves, time, and transactions that
//! are late, lost or repeated.
//!
//! The servers run the code of this crate; the engine, the application and the observer belong to the model. An
//! omission takes one rule away. Each of them must be found out.

mod application;
mod checks;
mod engine;
mod possible_steps;
mod server;
mod world;

use stateright::{Model, Property};

use application::ClientWrite;
use engine::ComparedKey;
use server::Choice;
use world::World;

/// A rule that the model leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Omission {
    /// Notice counts from the decision, not from the moment at which the event is readable.
    NoticeFromReadable,
    /// A new owner does not hold an event whose announcement the former owner may not have shown.
    HoldOfLastBatch,
    /// The hold of an event is forgotten with the owner that decided it.
    DurableHold,
    /// The host carries out each order.
    ActionLog,
    /// The clock of a head counts on every computer.
    ClockAnchor,
    /// A transaction compares the owner instead of the head.
    ComparisonOfHead,
    /// A client gets its answer before the commit.
    AnswerAfterCommit,
}

/// Ways in which the stream changes its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OwnerChanges {
    Takeovers,
    TakeoversAndMoves,
}

/// The limits of the search.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    ticks: u8,
    owner_changes: u64,
    ways: OwnerChanges,
    copies: usize,
    rejections: u8,
    write: ClientWrite,
}

/// The model of a realm.
#[derive(Clone, Debug)]
struct RealmModel {
    omission: Option<Omission>,
    bounds: Bounds,
}

impl RealmModel {
    fn compared_key(&self) -> ComparedKey {
        match self.omission {
            Some(Omission::ComparisonOfHead) => ComparedKey::Owner,
            Some(_) | None => ComparedKey::Head,
        }
    }

    fn defers(&self) -> bool {
        self.omission != Some(Omission::NoticeFromReadable)
    }

    fn holds_last_batch(&self) -> bool {
        !matches!(self.omission, Some(Omission::NoticeFromReadable | Omission::HoldOfLastBatch))
    }
}

/// One step of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RealmAction {
    Tick,
    Begin {
        server: usize,
        choice: Choice,
    },
    BeginTakeover {
        server: usize,
    },
    BeginMove {
        server: usize,
    },
    /// The server to which the stream was moved becomes its owner.
    Accept {
        server: usize,
    },
    /// The engine executes a copy, and the server gets the answer.
    Execute {
        copy: usize,
    },
    /// The engine executes a copy, and the answer is lost.
    ExecuteSilently {
        copy: usize,
    },
    Lose {
        copy: usize,
    },
    Reject {
        copy: usize,
    },
    /// A server waits no longer, and sends its transaction again.
    Repeat {
        server: usize,
    },
    /// An order of a server reaches the host.
    CarryOut {
        server: usize,
    },
}

impl Model for RealmModel {
    type State = World;
    type Action = RealmAction;

    fn init_states(&self) -> Vec<World> {
        World::initial(self.bounds.write)
    }

    fn actions(&self, world: &World, actions: &mut Vec<RealmAction>) {
        world.actions(self, actions);
    }

    fn next_state(&self, world: &World, action: RealmAction) -> Option<World> {
        let mut world = world.clone();
        world.act(self, action);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        checks::properties()
    }
}
