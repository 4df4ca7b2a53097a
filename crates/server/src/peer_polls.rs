//! Polls that other servers have answered. The owner of a cluster asks them about a tenant that seems silent: only a
//! tenant that has polled no server is unenrolled.
//!
//! Questions travel in heartbeats, and answers in those that come back. There is nothing to lose: a question that is not
//! answered is asked again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forewarn_control::{ClusterId, Stream};
use forewarn_lifecycle::{Name, TenantId};
use forewarn_peers::{AskedTenants, HeardTenants, POLL_QUESTIONS_MAX};

/// Age at which an answer is no longer used.
const ANSWER_LIFE: Duration = Duration::from_mins(3);

/// Questions that wait for answers.
const WAITING_MAX: usize = 100_000;

/// Questions of this server about polls, and their answers.
#[derive(Debug, Default)]
pub(crate) struct PeerPolls(Mutex<PollQuestions>);

#[derive(Debug, Default)]
struct PollQuestions {
    /// The other servers of the realm.
    others: BTreeSet<Name>,
    questions: BTreeMap<(ClusterId, TenantId), PollQuestion>,
}

#[derive(Debug)]
struct PollQuestion {
    asked: Instant,
    /// The moment of the last poll that each server has answered, and that of its answer.
    answers: BTreeMap<Name, (Duration, Instant)>,
}

impl PeerPolls {
    /// The time since the last poll of a tenant at any other server. None as long as a server has not answered.
    pub(crate) fn last_poll(&self, cluster: ClusterId, tenant: TenantId) -> Option<Duration> {
        self.last_poll_at(cluster, tenant, Instant::now())
    }

    fn last_poll_at(&self, cluster: ClusterId, tenant: TenantId, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let PollQuestions { others, questions } = &mut *state;
        if others.is_empty() {
            return Some(Duration::MAX);
        }
        if let Some(question) = questions.get(&(cluster, tenant)) {
            let age = |name: &Name| {
                let (ago, answered) = question.answers.get(name)?;
                Some(ago.saturating_add(now.saturating_duration_since(*answered)))
            };
            let ages: Option<Vec<_>> = others.iter().map(age).collect();
            if let Some(least) = ages.and_then(|ages| ages.into_iter().min()) {
                questions.remove(&(cluster, tenant));
                return Some(least);
            }
        }
        questions.retain(|_, question| now.saturating_duration_since(question.asked) < ANSWER_LIFE);
        if questions.len() < WAITING_MAX {
            let new = || PollQuestion { asked: now, answers: BTreeMap::new() };
            questions.entry((cluster, tenant)).or_insert_with(new);
        }
        None
    }

    /// The questions for a server, as its next heartbeat has them.
    pub(crate) fn questions_for(&self, server: &Name) -> AskedTenants {
        let state = self.lock();
        let open = state.questions.iter().filter(|(_, question)| !question.answers.contains_key(server));
        let mut asked = AskedTenants::new();
        for ((cluster, tenant), _) in open.take(POLL_QUESTIONS_MAX) {
            asked.entry(Stream::Cluster(*cluster)).or_default().insert(*tenant);
        }
        asked
    }

    /// Takes the answers of a server.
    pub(crate) fn answered(&self, server: &Name, heard: &HeardTenants) {
        let now = Instant::now();
        let mut state = self.lock();
        for (stream, tenants) in heard {
            let Stream::Cluster(cluster) = stream else { continue };
            for (tenant, millis) in tenants {
                if let Some(question) = state.questions.get_mut(&(*cluster, *tenant)) {
                    question.answers.insert(server.clone(), (Duration::from_millis(*millis), now));
                }
            }
        }
    }

    /// Sets the other servers of the realm. One that has a key and does not answer keeps tenants enrolled.
    pub(crate) fn set_others(&self, others: BTreeSet<Name>) {
        self.lock().others = others;
    }

    fn lock(&self) -> MutexGuard<'_, PollQuestions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_silent_once_every_server_has_said_so() {
        let (polls, now) = (PeerPolls::default(), Instant::now());
        let (cluster, tenant) = (ClusterId(3), TenantId(7));
        let name = |text: &str| Name::new(text).unwrap();
        let ask = |after: u64| polls.last_poll_at(cluster, tenant, now + Duration::from_secs(after));
        assert_eq!(ask(0), Some(Duration::MAX), "there is no other server");
        polls.set_others(BTreeSet::from([name("b"), name("c")]));
        assert_eq!(ask(0), None);
        let asked = AskedTenants::from([(Stream::Cluster(cluster), BTreeSet::from([tenant]))]);
        assert_eq!(polls.questions_for(&name("b")), asked);
        let heard =
            |millis| HeardTenants::from([(Stream::Cluster(cluster), BTreeMap::from([(tenant, millis)]))]);
        polls.answered(&name("b"), &heard(5_000));
        assert_eq!(ask(0), None, "one has not answered");
        assert!(polls.questions_for(&name("b")).is_empty() && polls.questions_for(&name("c")) == asked);
        polls.answered(&name("c"), &heard(60_000));
        let least = ask(0).unwrap();
        assert!(least >= Duration::from_secs(4) && least < Duration::from_secs(60), "{least:?}");
        assert_eq!(ask(0), None, "an answer is used once");
        polls.answered(&name("b"), &heard(5_000));
        polls.set_others(BTreeSet::from([name("b")]));
        assert!(ask(0).is_some(), "a server without a key is not waited for");
    }
}
