//! Messages between the parts of the data centre.

use std::collections::BTreeMap;
use std::sync::Arc;

use forewarn_control::request::{ClusterRequest, Reply};
use forewarn_control::{Chain, ClusterId, ControlError};
use forewarn_lifecycle::{Action, ActionName, EventId, MachineId, MaintenanceId, Report, Target, TenantId};
use forewarn_ownership::{HeartbeatAnswer, Uptime};

use crate::engine::{EngineAnswer, EngineCall};

/// A part of the data centre that sends and gets messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Node {
    Server(usize),
    Engine,
    Hypervisor,
    Guest(usize),
    Operator(usize),
}

/// The number of a request, of which a client sends as many copies as it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(pub(crate) u64);

/// A request of a client at the server that accepted it.
pub(crate) type FrontKey = (Node, Ticket);

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) enum RequestAnswer {
    /// The request was decided: carried out, or refused for good.
    Decided(Box<Result<Reply, ControlError>>),
    /// The request was not carried out.
    NotDone,
    /// It is unknown if the request was carried out.
    Unknown,
}

/// The state of a cluster that an operator has read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAnswer {
    pub(crate) audit: Chain,
}

/// The state of a server for the others.
#[derive(Clone, Debug)]
pub(crate) struct ServerReport {
    pub(crate) answer: HeartbeatAnswer,
    /// Clusters that the server drives: its term, and the last batch that it has published.
    pub(crate) owned: BTreeMap<ClusterId, (u64, u64)>,
}

/// An event in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentEvent {
    pub(crate) id: EventId,
    pub(crate) is_unapproved: bool,
}

/// The document of a tenant as a VM reads it.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) is_enrolled: bool,
    pub(crate) tenant: TenantId,
    pub(crate) machine: MachineId,
    pub(crate) events: Vec<DocumentEvent>,
}

/// An order to the hypervisor.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) cluster: ClusterId,
    pub(crate) term: u64,
    pub(crate) name: ActionName,
    pub(crate) action: Action,
    /// The server that gets the result, and the epoch of its process.
    pub(crate) from: (usize, u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// A call of a process of a server, by its number.
    Call {
        server: usize,
        id: u64,
        call: EngineCall,
    },
    Answer {
        id: u64,
        answer: EngineAnswer,
    },
    /// A key has changed: the watch of a server reports it.
    Changed,
    Heartbeat {
        from: usize,
        sent: Uptime,
        report: Box<ServerReport>,
    },
    HeartbeatAnswer {
        from: usize,
        sent: Uptime,
        report: Box<ServerReport>,
    },
    /// A request of a client.
    Request {
        from: Node,
        ticket: Ticket,
        cluster: ClusterId,
        request: Arc<ClusterRequest>,
    },
    Reply {
        ticket: Ticket,
        answer: RequestAnswer,
    },
    /// A request that a server forwards to the owner of the cluster, with the number of the attempt.
    Forward {
        from: usize,
        attempt: u64,
        cluster: ClusterId,
        request: Arc<ClusterRequest>,
    },
    ForwardReply {
        attempt: u64,
        answer: RequestAnswer,
    },
    Read {
        from: Node,
        ticket: Ticket,
        cluster: ClusterId,
    },
    ReadReply {
        ticket: Ticket,
        answer: Option<ReadAnswer>,
    },
    Poll {
        guest: usize,
        cluster: ClusterId,
        machine: MachineId,
    },
    Document {
        document: Option<Box<Document>>,
    },
    Order(Box<Order>),
    Result {
        epoch: u64,
        cluster: ClusterId,
        work: MaintenanceId,
        target: Target,
        report: Report,
    },
    /// An operator wants the owner to move a cluster.
    Move {
        cluster: ClusterId,
        to: usize,
    },
    /// An operator wants a server to give all clusters away.
    Drain,
    /// The former owner has moved a cluster to this server.
    Moved {
        cluster: ClusterId,
    },
}
