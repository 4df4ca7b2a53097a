//! Receipts: what was answered to a request that carried a key, so that the same request again gets the same answer.
//!
//! They are kept for a day, and not many of them: whenever one comes, those that are too old go. Nothing is due at any
//! moment, so that receipts need no deadline.
//!
//! Callers share the room. When it is full, the caller that has the most loses its oldest receipt. So the quota of a caller is
//! its share: the room divided by the number of callers that have receipts. A caller within its quota loses nothing, whatever
//! the others do; one that is over it has room as long as the others leave it.

use std::fmt;
use std::sync::Arc;

use forewarn_lifecycle::Steady;
use forewarn_lifecycle::paged::{PagedMap, PagedSet};

use crate::shared::limits::{RECEIPT_KEPT_FOR, RECEIPTS_BYTES_MAX, RECEIPTS_MAX};

/// What was answered, to whom, and to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Who asked. Another's key is another key.
    pub by: String,
    /// The key that came with the request.
    pub key: String,
    /// A hash of the request: the same key with another request is a mistake.
    pub fingerprint: [u8; 32],
    /// When it was answered.
    pub at: Steady,
    /// The answer.
    pub answer: Answer,
}

/// The bytes of an answer. They may hold what is not for everybody, and do not show themselves; copies share them.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer(pub Arc<[u8]>);

/// All that are kept, by their number: the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Receipts {
    kept: PagedMap<u64, Arc<Receipt>>,
    callers: PagedMap<Arc<str>, Caller>,
    bytes: usize,
}

/// The receipts of one caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Caller {
    /// Their numbers: the oldest first.
    numbers: PagedSet<u64>,
    /// The number of the latest of each key.
    keys: PagedMap<Arc<str>, u64>,
    bytes: usize,
}

impl fmt::Debug for Answer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Answer({} bytes)", self.0.len())
    }
}

impl Receipt {
    /// Whether it is still good.
    pub(crate) fn is_fresh(&self, now: Steady) -> bool {
        now.since(self.at) < RECEIPT_KEPT_FOR
    }

    fn bytes(&self) -> usize {
        self.by.len() + self.key.len() + self.fingerprint.len() + self.answer.0.len()
    }
}

impl Receipts {
    pub(crate) fn find(&self, by: &str, key: &str, now: Steady) -> Option<&Receipt> {
        let number = self.callers.get(by)?.keys.get(key)?;
        self.kept.get(number).map(Arc::as_ref).filter(|receipt| receipt.is_fresh(now))
    }

    /// Keeps another one. Those that are too old go, then the oldest of the caller that has the most.
    pub(crate) fn keep(&mut self, number: u64, receipt: Receipt) {
        let now = receipt.at;
        self.put(number, receipt);
        while let Some((&oldest, _)) = self.kept.first().filter(|(_, oldest)| !oldest.is_fresh(now)) {
            self.remove(oldest);
        }
        while let Some(largest) = self.largest_if_full() {
            self.remove_oldest_of(&largest);
        }
    }

    /// Takes one as it is; those before it stay.
    pub(crate) fn put(&mut self, number: u64, receipt: Receipt) {
        self.bytes += receipt.bytes();
        let caller = self.callers.get_or_default(&receipt.by.as_str().into());
        caller.bytes += receipt.bytes();
        caller.numbers.insert(number);
        caller.keys.insert(receipt.key.as_str().into(), number);
        self.kept.insert(number, Arc::new(receipt));
    }

    pub(crate) fn last_number(&self) -> Option<u64> {
        self.kept.last().map(|(number, _)| *number)
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn into_rows(self) -> impl Iterator<Item = (u64, Receipt)> + Send + 'static {
        self.kept.into_iter().map(|(number, receipt)| (number, Arc::unwrap_or_clone(receipt)))
    }

    /// The caller with the most receipts if there are too many in all, or with the most bytes if those are too many.
    fn largest_if_full(&self) -> Option<Arc<str>> {
        let size: fn(&Caller) -> usize = if self.bytes > RECEIPTS_BYTES_MAX {
            |caller| caller.bytes
        } else if self.kept.len() > RECEIPTS_MAX {
            |caller| caller.numbers.len()
        } else {
            return None;
        };
        self.callers.iter().max_by_key(|(_, caller)| size(caller)).map(|(by, _)| Arc::clone(by))
    }

    fn remove_oldest_of(&mut self, by: &str) {
        if let Some(oldest) = self.callers.get(by).and_then(|caller| caller.numbers.first().copied()) {
            self.remove(oldest);
        }
    }

    fn remove(&mut self, number: u64) {
        let Some(receipt) = self.kept.remove(&number) else { return };
        self.bytes -= receipt.bytes();
        let Some(caller) = self.callers.get_mut(receipt.by.as_str()) else { return };
        caller.bytes -= receipt.bytes();
        caller.numbers.remove(&number);
        // A later one may have the same key.
        if caller.keys.get(receipt.key.as_str()) == Some(&number) {
            caller.keys.remove(receipt.key.as_str());
        }
        if caller.numbers.is_empty() {
            self.callers.remove(receipt.by.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(key: &str, at: u64, bytes: usize) -> Receipt {
        receipt_of("socket", key, at, bytes)
    }

    fn receipt_of(by: &str, key: &str, at: u64, bytes: usize) -> Receipt {
        Receipt {
            by: by.to_owned(),
            key: key.to_owned(),
            fingerprint: [1; 32],
            at: Steady::from_millis(at),
            answer: Answer(vec![b'x'; bytes].into()),
        }
    }

    #[test]
    fn a_receipt_does_not_show_what_was_answered() {
        let shown = format!("{:?}", receipt("a", 5, 3));
        assert!(shown.ends_with("at: Steady(5), answer: Answer(3 bytes) }"), "{shown}");
    }

    #[test]
    fn the_same_key_later_finds_the_later_one() {
        let mut receipts = Receipts::default();
        receipts.keep(0, receipt("a", 0, 1));
        receipts.keep(1, receipt("a", 1, 2));
        let found =
            |receipts: &Receipts| receipts.find("socket", "a", Steady::from_millis(1)).map(|it| it.at);
        assert_eq!(found(&receipts), Some(Steady::from_millis(1)));
        receipts.remove(0);
        assert_eq!(found(&receipts), Some(Steady::from_millis(1)));
        assert_eq!(receipts.find("token a", "a", Steady::START), None);
    }

    #[test]
    fn there_is_room_for_the_last_one_even_if_all_are_as_large_as_can_be() {
        let mut receipts = Receipts::default();
        for number in 0..200 {
            receipts.keep(number, receipt(&number.to_string(), 0, crate::shared::limits::ANSWER_BYTES_MAX));
            assert!(receipts.bytes() <= RECEIPTS_BYTES_MAX);
            assert!(receipts.find("socket", &number.to_string(), Steady::START).is_some());
        }
        assert_eq!(receipts.len(), 63);
        assert!(receipts.find("socket", "136", Steady::START).is_none());
    }

    #[test]
    fn a_flood_of_one_caller_costs_no_other_caller_a_receipt() {
        let mut receipts = Receipts::default();
        receipts.keep(0, receipt_of("token admin", "k", 0, 300));
        for number in 1..=10_400 {
            receipts.keep(number, receipt_of("token web", &number.to_string(), 0, 300));
        }
        assert!(receipts.find("token admin", "k", Steady::START).is_some());
        assert_eq!(receipts.len(), RECEIPTS_MAX);
        let found = |number: u64| receipts.find("token web", &number.to_string(), Steady::START).is_some();
        assert!(found(10_400) && !found(1), "its own oldest go");
    }

    #[test]
    fn a_flood_of_long_answers_costs_no_other_caller_a_receipt() {
        let mut receipts = Receipts::default();
        for number in 0..100 {
            receipts.keep(number, receipt_of("token admin", &number.to_string(), 0, 10_000));
        }
        for number in 100..300 {
            receipts.keep(number, receipt_of("token web", "k", 0, crate::shared::limits::ANSWER_BYTES_MAX));
        }
        for number in 0..100 {
            assert!(receipts.find("token admin", &number.to_string(), Steady::START).is_some(), "{number}");
        }
    }

    #[test]
    fn a_caller_within_its_share_keeps_its_receipts_whatever_the_others_do() {
        const CALLERS: usize = 20;
        let mut receipts = Receipts::default();
        let share = RECEIPTS_MAX / CALLERS;
        let mut number = 0;
        let mut keep = |receipts: &mut Receipts, by: &str, key: usize| {
            receipts.keep(number, receipt_of(by, &key.to_string(), 0, 1));
            number += 1;
        };
        for key in 0..share {
            keep(&mut receipts, "token small", key);
        }
        for caller in 1..CALLERS {
            for key in 0..2 * share {
                keep(&mut receipts, &format!("token {caller}"), key);
            }
        }
        assert_eq!(receipts.len(), RECEIPTS_MAX);
        for key in 0..share {
            assert!(receipts.find("token small", &key.to_string(), Steady::START).is_some(), "{key}");
        }
    }
}
