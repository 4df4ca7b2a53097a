//! Receipts: what was answered to a request that carried a key, so that the same request again gets the same answer.
//!
//! They are kept for a day, and not many of them: whenever one comes, those that are too old go, and then the oldest
//! until there is room. Nothing is due at any moment, so that receipts need no deadline.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use forewarn_lifecycle::Steady;

use crate::limits::{RECEIPT_KEPT_FOR, RECEIPTS_BYTES_MAX, RECEIPTS_MAX};

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
    kept: BTreeMap<u64, Receipt>,
    /// The number of the latest of each key, by who asked.
    keys: BTreeMap<(String, String), u64>,
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
        let number = self.keys.get(&(by.to_owned(), key.to_owned()))?;
        self.kept.get(number).filter(|receipt| receipt.is_fresh(now))
    }

    /// Keeps another one, and lets go what is too old or too much.
    pub(crate) fn keep(&mut self, number: u64, receipt: Receipt) {
        let now = receipt.at;
        self.put(number, receipt);
        while self.is_too_much() || self.kept.values().next().is_some_and(|oldest| !oldest.is_fresh(now)) {
            self.drop_oldest();
        }
    }

    /// Takes one as it is; those before it stay.
    pub(crate) fn put(&mut self, number: u64, receipt: Receipt) {
        self.bytes += receipt.bytes();
        self.keys.insert((receipt.by.clone(), receipt.key.clone()), number);
        self.kept.insert(number, receipt);
    }

    pub(crate) fn last_number(&self) -> Option<u64> {
        self.kept.last_key_value().map(|(number, _)| *number)
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn into_rows(self) -> impl Iterator<Item = (u64, Receipt)> + Send + 'static {
        self.kept.into_iter()
    }

    fn is_too_much(&self) -> bool {
        self.kept.len() > RECEIPTS_MAX || self.bytes > RECEIPTS_BYTES_MAX
    }

    fn drop_oldest(&mut self) {
        let Some((number, receipt)) = self.kept.pop_first() else { return };
        self.bytes -= receipt.bytes();
        let key = (receipt.by, receipt.key);
        // A later one may have the same key.
        if self.keys.get(&key) == Some(&number) {
            self.keys.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt(key: &str, at: u64, bytes: usize) -> Receipt {
        Receipt {
            by: "socket".to_owned(),
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
        receipts.drop_oldest();
        assert_eq!(found(&receipts), Some(Steady::from_millis(1)));
        assert_eq!(receipts.find("token a", "a", Steady::START), None);
    }

    #[test]
    fn there_is_room_for_the_last_one_even_if_all_are_as_large_as_can_be() {
        let mut receipts = Receipts::default();
        for number in 0..200 {
            receipts.keep(number, receipt(&number.to_string(), 0, crate::limits::ANSWER_BYTES_MAX));
            assert!(receipts.bytes() <= RECEIPTS_BYTES_MAX);
            assert!(receipts.find("socket", &number.to_string(), Steady::START).is_some());
        }
        assert_eq!(receipts.len(), 63);
        assert!(receipts.find("socket", "136", Steady::START).is_none());
    }
}
