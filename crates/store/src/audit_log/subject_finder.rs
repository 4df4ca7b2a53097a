//! Finds entries by subject.

use forewarn_control::Subject;
use rusqlite::{Connection, OptionalExtension, params};

use super::search::SearchStep;
use super::{Direction, ReadError};

/// Index lookups that one query may do: a commit waits for no more.
const SEEKS_PER_QUERY_MAX: usize = 4_000;

/// Finds the next position that is under a subject of every group: each group in turn names its next position, until
/// all agree. That takes about as many lookups as the rarest group has entries.
pub(super) struct SubjectFinder<'a> {
    connection: &'a Connection,
    direction: Direction,
    groups: Vec<Vec<String>>,
    seeks: usize,
}

impl<'a> SubjectFinder<'a> {
    pub(super) fn new(connection: &'a Connection, direction: Direction, groups: &[Vec<Subject>]) -> Self {
        let keys = |group: &Vec<_>| group.iter().map(ToString::to_string).collect();
        let groups = groups.iter().map(keys).collect();
        Self { connection, direction, groups, seeks: SEEKS_PER_QUERY_MAX }
    }

    pub(super) fn next(&mut self, from: u64) -> Result<SearchStep, ReadError> {
        let mut position = from;
        let mut agreed = 0;
        let mut turn = 0;
        while agreed < self.groups.len() {
            if self.seeks < self.groups[turn].len() {
                return Ok(SearchStep::LimitReached(position));
            }
            match self.seek(turn, position)? {
                None => return Ok(SearchStep::End),
                Some(found) if found == position => agreed += 1,
                Some(found) => (position, agreed) = (found, 1),
            }
            turn = (turn + 1) % self.groups.len();
        }
        Ok(SearchStep::At(position))
    }

    /// The nearest position, from there on, under a subject of a group.
    fn seek(&mut self, group: usize, from: u64) -> rusqlite::Result<Option<u64>> {
        let sql = match self.direction {
            Direction::OldestFirst => {
                "SELECT position FROM subject WHERE subject = ?1 AND position >= ?2 ORDER BY position LIMIT 1"
            }
            Direction::NewestFirst => {
                "SELECT position FROM subject WHERE subject = ?1 AND position <= ?2 ORDER BY position DESC LIMIT 1"
            }
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut nearest: Option<u64> = None;
        for key in &self.groups[group] {
            self.seeks -= 1;
            let found: Option<i64> =
                statement.query_row(params![key, from.cast_signed()], |row| row.get(0)).optional()?;
            let Some(found) = found.map(i64::cast_unsigned) else { continue };
            nearest = Some(match (nearest, self.direction) {
                (None, _) => found,
                (Some(best), Direction::OldestFirst) => best.min(found),
                (Some(best), Direction::NewestFirst) => best.max(found),
            });
        }
        Ok(nearest)
    }
}
