//! Members of the cluster: their status, the list of them, and alarms.

use crate::client::{EtcdClient, Header};
use crate::error::EtcdError;
use crate::messages::{
    AlarmMember, AlarmRequest, AlarmResponse, MemberListRequest, MemberListResponse, StatusRequest,
    StatusResponse, alarm_actions, alarm_types,
};
use crate::method::{ALARM, MEMBER_LIST, STATUS};

/// Status of a member, as it sees itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberStatus {
    /// State of the store on the member.
    pub header: Header,
    /// Version of etcd, such as `3.5.16`.
    pub version: String,
    /// Bytes of the database file.
    pub database_bytes: i64,
    /// Bytes of the database file in use.
    pub database_bytes_in_use: i64,
    /// Maximum bytes of the database; none before 3.6.
    pub database_bytes_max: Option<i64>,
    /// Id of the leader; none if the member knows no leader.
    pub leader: Option<u64>,
    /// Index of the last committed entry of raft.
    pub raft_index: u64,
    /// Index of the last applied entry of raft.
    pub raft_applied_index: u64,
    /// True for a member without a vote.
    pub is_learner: bool,
    /// Problems that the member reports, such as alarms.
    pub problems: Vec<String>,
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Id of the member.
    pub id: u64,
    /// Name of the member; empty if it has not started yet.
    pub name: String,
    /// URLs for clients; none if it has not started yet.
    pub client_urls: Vec<String>,
    /// URLs for other members.
    pub peer_urls: Vec<String>,
    /// True for a member without a vote.
    pub is_learner: bool,
}

/// Members of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersAnswer {
    /// State of the cluster.
    pub header: Header,
    /// The members.
    pub members: Vec<Member>,
}

/// An alarm of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Id of the member.
    pub member_id: u64,
    /// Kind of alarm.
    pub kind: AlarmKind,
}

/// Kind of alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmKind {
    /// The database exceeds its quota: writes are rejected.
    NoSpace,
    /// The data of the member are damaged.
    Corrupt,
    /// A kind that this client does not know.
    Other(i32),
}

impl AlarmKind {
    fn of(kind: i32) -> Self {
        match kind {
            alarm_types::NO_SPACE => Self::NoSpace,
            alarm_types::CORRUPT => Self::Corrupt,
            other => Self::Other(other),
        }
    }

    fn number(self) -> i32 {
        match self {
            Self::NoSpace => alarm_types::NO_SPACE,
            Self::Corrupt => alarm_types::CORRUPT,
            Self::Other(kind) => kind,
        }
    }
}

impl EtcdClient {
    /// Status of the member at an endpoint, by its index in the settings.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub async fn status(&self, endpoint: usize) -> Result<MemberStatus, EtcdError> {
        let chosen = self.chosen_at(endpoint);
        let response: StatusResponse = self.call_at(&chosen, STATUS, &StatusRequest {}).await?;
        let header = Header::of(response.header, &chosen)?;
        Ok(MemberStatus {
            header,
            version: response.version,
            database_bytes: response.db_size,
            database_bytes_in_use: response.db_size_in_use,
            database_bytes_max: Some(response.db_size_quota).filter(|bytes| *bytes > 0),
            leader: Some(response.leader).filter(|leader| *leader != 0),
            raft_index: response.raft_index,
            raft_applied_index: response.raft_applied_index,
            is_learner: response.is_learner,
            problems: response.errors,
        })
    }

    /// Members of the cluster.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub async fn members(&self) -> Result<MembersAnswer, EtcdError> {
        let chosen = self.chosen();
        let request = MemberListRequest { linearizable: true };
        let response: MemberListResponse = self.call_at(&chosen, MEMBER_LIST, &request).await?;
        let members = response.members.into_iter().map(|member| Member {
            id: member.id,
            name: member.name,
            client_urls: member.client_urls,
            peer_urls: member.peer_urls,
            is_learner: member.is_learner,
        });
        Ok(MembersAnswer { header: Header::of(response.header, &chosen)?, members: members.collect() })
    }

    /// Alarms of all members. The answer has no header: etcd 3.4 sends none.
    ///
    /// # Errors
    /// Fails if there is no answer.
    pub async fn alarms(&self) -> Result<Vec<Alarm>, EtcdError> {
        let all = AlarmRequest { action: alarm_actions::GET, member_id: 0, alarm: alarm_types::NONE };
        self.call_alarms(&all).await
    }

    /// Disarms an alarm. Returns the alarms that were disarmed.
    ///
    /// # Errors
    /// Fails if there is no answer, or etcd rejects the request.
    pub async fn disarm(&self, alarm: Alarm) -> Result<Vec<Alarm>, EtcdError> {
        let Alarm { member_id, kind } = alarm;
        let action = alarm_actions::DEACTIVATE;
        self.call_alarms(&AlarmRequest { action, member_id, alarm: kind.number() }).await
    }

    async fn call_alarms(&self, request: &AlarmRequest) -> Result<Vec<Alarm>, EtcdError> {
        let response: AlarmResponse = self.call_at(&self.chosen(), ALARM, request).await?;
        let alarm = |AlarmMember { member_id, alarm }| Alarm { member_id, kind: AlarmKind::of(alarm) };
        Ok(response.alarms.into_iter().map(alarm).collect())
    }
}
