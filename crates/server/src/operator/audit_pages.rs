//! Pages of the audit log that match conditions on objects, in any number of clusters.
//!
//! Names are unique within a cluster only, so a condition such as `tenant=web` means a subject in each cluster. A query
//! has a limited number of subjects: with many clusters a page is made by several queries, each for some of them, and
//! merged. At any time, only one page and the result of one query are in memory.
//!
//! ```text
//!   clusters 1..=200   ──query──▶ entries ─┐
//!   clusters 201..=400 ──query──▶ entries ─┼─▶ merged by position, up to where every query has searched ──▶ page
//!   …                                      ┘
//! ```

use std::sync::Arc;

use forewarn_control::{AuditPage, Subject};
use forewarn_store::{AuditBatch, AuditQuery, Direction, LoggedEntry, SUBJECTS_PER_QUERY_MAX};

use super::audit_cursor::AuditCursor;
use super::audit_log::AuditLog;
use super::problem::ApiProblem;
use super::visibility::Visibility;

/// Queries per page, if it needs no more to ask for all clusters: the work of each is limited. A page may be short
/// although more entries follow.
const QUERIES_MAX: usize = 32;

/// Groups of subjects of one query: an entry has to concern a subject of each.
type SubjectGroups = Vec<Vec<Subject>>;

/// An object that entries have to concern, in whichever cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ObjectCondition {
    Tenant(String),
    Machine(String),
    Host(String),
    Event(String),
    Rollout(u64),
}

impl ObjectCondition {
    fn in_cluster(&self, cluster: &str) -> Subject {
        let cluster = cluster.to_owned();
        match self {
            Self::Tenant(name) => Subject::Tenant { cluster, name: name.clone() },
            Self::Machine(name) => Subject::Machine { cluster, name: name.clone() },
            Self::Host(name) => Subject::Host { cluster, name: name.clone() },
            Self::Event(id) => Subject::Event { cluster, id: id.clone() },
            Self::Rollout(number) => Subject::Rollout { cluster, number: *number },
        }
    }
}

/// Conditions of a page. All of them have to match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AuditConditions {
    pub(super) objects: Vec<ObjectCondition>,
    /// Conditions that do not depend on the cluster.
    pub(super) others: Vec<Subject>,
}

impl AuditConditions {
    /// The groups of subjects of each query that a page needs.
    fn queries(&self, visibility: &Visibility, clusters: &[String]) -> Vec<SubjectGroups> {
        let others = || self.others.iter().map(|subject| vec![subject.clone()]);
        if self.objects.is_empty() {
            return vec![visibility.groups().into_iter().chain(others()).collect()];
        }
        let room = SUBJECTS_PER_QUERY_MAX - self.others.len();
        let groups_of = |clusters: &[String]| {
            let subjects = |object: &ObjectCondition| {
                clusters.iter().map(|cluster| object.in_cluster(cluster)).collect()
            };
            let mut groups: SubjectGroups = self.objects.iter().map(subjects).collect();
            let left = room - self.objects.len() * clusters.len();
            groups.extend(visibility.tenants_in(clusters).filter(|tenants| tenants.len() <= left));
            groups.extend(others());
            groups
        };
        // Without a cluster nothing matches.
        let first = clusters.is_empty().then(|| groups_of(&[]));
        first.into_iter().chain(clusters.chunks(room / self.objects.len()).map(groups_of)).collect()
    }
}

/// Reads a page: queries until it is full, the log is exhausted, or the work limit is reached.
pub(super) async fn read(
    log: &AuditLog,
    (visibility, clusters): (&Visibility, &[String]),
    conditions: &AuditConditions,
    query: AuditQuery,
) -> Result<AuditPage, ApiProblem> {
    let queries = conditions.queries(visibility, clusters);
    let budget = (QUERIES_MAX / queries.len().max(1)).max(1);
    let mut page = MergedPage::new(query.direction, query.limit);
    for groups in queries {
        let remaining = page.remaining(AuditQuery { groups, ..query.clone() });
        let found = search(log, visibility, remaining, budget).await?;
        AuditCursor::check(query.after.max(query.before), found.end)?;
        page.add(found);
    }
    Ok(page.finish(log))
}

/// The visible entries of one query and its continuations.
async fn search(
    log: &AuditLog,
    visibility: &Visibility,
    mut query: AuditQuery,
    mut budget: usize,
) -> Result<AuditBatch, ApiProblem> {
    let (limit, mut found) = (query.limit, Vec::new());
    loop {
        query.limit = limit - found.len();
        let batch = log.read(query.clone()).await?;
        found.extend(batch.entries.into_iter().filter(|logged| visibility.admits(&logged.entry)));
        budget -= 1;
        match batch.next.filter(|_| found.len() < limit && budget > 0) {
            None => return Ok(AuditBatch { entries: found, ..batch }),
            Some(cursor) => match query.direction {
                Direction::OldestFirst => query.after = Some(cursor),
                Direction::NewestFirst => query.before = Some(cursor),
            },
        }
    }
}

/// A page so far.
struct MergedPage {
    direction: Direction,
    limit: usize,
    entries: Vec<LoggedEntry>,
    /// The last position that belongs to the page: all queries have searched up to it. None: up to the end.
    bound: Option<u64>,
    /// Head of the log at the first query: later entries belong to no page.
    head: Option<u64>,
    swept: u64,
}

impl MergedPage {
    fn new(direction: Direction, limit: usize) -> Self {
        Self { direction, limit, entries: Vec::new(), bound: None, head: None, swept: 0 }
    }

    /// A query for that part of the log that the page can still have.
    fn remaining(&self, mut query: AuditQuery) -> AuditQuery {
        let until = self.head.map(|head| head.saturating_add(1));
        query.before = [query.before, until].into_iter().flatten().min();
        let Some(bound) = self.bound else { return query };
        match self.direction {
            Direction::OldestFirst => {
                let until = bound.saturating_add(1);
                query.before = Some(query.before.map_or(until, |before| before.min(until)));
            }
            Direction::NewestFirst => {
                let from = bound.saturating_sub(1);
                query.after = Some(query.after.map_or(from, |after| after.max(from)));
            }
        }
        query
    }

    fn add(&mut self, found: AuditBatch) {
        let AuditBatch { entries, next, head, end: _, swept } = found;
        self.head.get_or_insert(head);
        self.swept = self.swept.max(swept);
        self.entries.extend(entries);
        match self.direction {
            Direction::OldestFirst => self.entries.sort_by_key(|logged| logged.position),
            Direction::NewestFirst => {
                self.entries.sort_by_key(|logged| std::cmp::Reverse(logged.position));
            }
        }
        self.tighten(next);
        if self.entries.len() > self.limit {
            self.entries.truncate(self.limit);
            self.tighten(self.entries.last().map(|logged| logged.position));
        }
    }

    /// Ends the page at a position, if it does not end before.
    fn tighten(&mut self, position: Option<u64>) {
        let nearer = |one: u64, other: u64| match self.direction {
            Direction::OldestFirst => one.min(other),
            Direction::NewestFirst => one.max(other),
        };
        let Some(bound) = [self.bound, position].into_iter().flatten().reduce(nearer) else { return };
        self.bound = Some(bound);
        self.entries.retain(|logged| match self.direction {
            Direction::OldestFirst => logged.position <= bound,
            Direction::NewestFirst => logged.position >= bound,
        });
    }

    fn finish(self, log: &AuditLog) -> AuditPage {
        let text = |position| log.cursor(position);
        let items = self.entries.into_iter().map(|logged| Arc::unwrap_or_clone(logged.entry)).collect();
        AuditPage {
            items,
            next: self.bound.map(text),
            head: text(self.head.unwrap_or(0)),
            swept: Some(self.swept).filter(|swept| *swept > 0).map(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use forewarn_control::{Chain, NewAuditEntry};

    use super::*;

    /// A log in which every third entry belongs to each of three queries, read in pages of any size.
    #[test]
    fn pages_of_several_queries_have_every_entry_once_and_in_order() {
        let entry = Arc::new(Chain::default().seal(NewAuditEntry::default()));
        let all: Vec<u64> = (1..=50).collect();
        for (direction, limit) in [Direction::OldestFirst, Direction::NewestFirst]
            .into_iter()
            .flat_map(|way| (1..=9).map(move |n| (way, n)))
        {
            let mut seen = Vec::new();
            let mut query = AuditQuery { direction, limit, ..AuditQuery::default() };
            loop {
                let mut page = MergedPage::new(direction, limit);
                for part in 0..3 {
                    let asked = page.remaining(query.clone());
                    let fits = |position: &u64| {
                        position % 3 == part
                            && asked.after.is_none_or(|after| *position > after)
                            && asked.before.is_none_or(|before| *position < before)
                    };
                    let mut found: Vec<_> = all.iter().copied().filter(fits).collect();
                    if direction == Direction::NewestFirst {
                        found.reverse();
                    }
                    // A query may end early, with or without entries.
                    let most = if part == 1 { limit.min(2) } else { limit };
                    let more = found.get(most).copied();
                    found.truncate(most);
                    let next = more.map(|more| match direction {
                        Direction::OldestFirst => more - 1,
                        Direction::NewestFirst => more + 1,
                    });
                    let entries =
                        found.into_iter().map(|position| LoggedEntry { position, entry: entry.clone() });
                    page.add(AuditBatch { entries: entries.collect(), next, head: 50, end: 50, swept: 0 });
                    assert!(page.entries.len() <= limit);
                }
                seen.extend(page.entries.iter().map(|logged| logged.position));
                match (page.bound, direction) {
                    (None, _) => break,
                    (bound, Direction::OldestFirst) => query.after = bound,
                    (bound, Direction::NewestFirst) => query.before = bound,
                }
            }
            if direction == Direction::NewestFirst {
                seen.reverse();
            }
            assert_eq!(seen, all, "{direction:?}, pages of {limit}");
        }
    }

    #[test]
    fn no_query_has_too_many_subjects_and_together_they_have_all() {
        let clusters: Vec<_> = (0..1_000).map(|number| format!("#{number}")).collect();
        let objects = [
            ObjectCondition::Tenant("web".to_owned()),
            ObjectCondition::Machine("web/web_0".to_owned()),
            ObjectCondition::Host("h1".to_owned()),
            ObjectCondition::Event("E".to_owned()),
            ObjectCondition::Rollout(1),
        ];
        let tenants: BTreeSet<_> = (0..20).map(|number| format!("t{number}")).collect();
        for visibility in
            [Visibility::default(), Visibility::limited(clusters.iter().cloned().collect(), tenants)]
        {
            for many in 1..=objects.len() {
                let others = vec![Subject::By("socket".to_owned()), Subject::Kind("command".to_owned())];
                let conditions = AuditConditions { objects: objects[..many].to_vec(), others };
                let queries = conditions.queries(&visibility, &clusters);
                let subjects = |groups: &SubjectGroups| groups.iter().map(Vec::len).sum::<usize>();
                assert!(queries.iter().all(|groups| subjects(groups) <= SUBJECTS_PER_QUERY_MAX));
                for position in 0..many {
                    let asked: usize = queries.iter().map(|groups| groups[position].len()).sum();
                    assert_eq!(asked, clusters.len());
                }
                assert_eq!(conditions.queries(&visibility, &[]).len(), 1);
                assert!(conditions.queries(&visibility, &[])[0][0].is_empty());
            }
        }
        let none = AuditConditions::default().queries(&Visibility::default(), &clusters);
        assert_eq!(none, [SubjectGroups::new()]);
    }
}
