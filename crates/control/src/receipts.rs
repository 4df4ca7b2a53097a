//! Receipts: responses to requests that carried an idempotency key, so that a repeated request gets the same response.
//!
//! Each cluster has receipts of the requests to it, and the shared state has those of the requests to itself. A
//! receipt is stored for a day. Receipts that are too old are removed when another one is stored, so that receipts
//! need no deadline.
//!
//! Callers share the room. When it is full, the caller that has the most loses its oldest receipt. So the quota of a
//! caller is its share: the room divided by the number of callers that have receipts. A caller within its quota loses
//! nothing, whatever the others do; one that is over it has room as long as the others leave it.
//!
//! Requests that a server of a realm has forwarded without a key have receipts too: those of one caller of their own,
//! so that they take no room from the keys of operators. Such a request is repeated within a minute, or not at all.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use forewarn_lifecycle::paged::{PagedMap, PagedSet};
use forewarn_lifecycle::{BadRows, Steady};
use serde::{Deserialize, Serialize};

use crate::limits::{
    ANSWER_BYTES_MAX, BY_BYTES_MAX, CLUSTER_RECEIPTS_BYTES_MAX, CLUSTER_RECEIPTS_MAX,
    FORWARDED_RECEIPT_KEPT_FOR, KEY_BYTES_MAX, RECEIPT_KEPT_FOR, RECEIPTS_BYTES_MAX, RECEIPTS_MAX,
};
use crate::refusal::Refusal;
use crate::rows::check_number_known;
use crate::view::Outcome;

/// The caller of receipts of forwarded requests. No other caller has this name.
pub(crate) const FORWARDED: &str = "forwarded";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The caller. The same key of another caller is another key.
    pub by: String,
    /// The key of the request.
    pub key: String,
    /// A hash of the request: the same key with another request is an error.
    pub fingerprint: [u8; 32],
    /// Time of the response.
    pub at: Steady,
    pub answer: StoredResponse,
}

/// A receipt that is about to be stored: its time is that of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReceipt {
    pub by: String,
    /// The key of the request.
    pub key: String,
    /// A hash of the request.
    pub fingerprint: [u8; 32],
    /// The response, without secrets: those are shown once.
    pub answer: StoredResponse,
}

/// The bytes of a response. `Debug` does not show them: they may be confidential. Copies share them.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredResponse(pub Arc<[u8]>);

/// A response as a receipt has it, in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReceiptContent {
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
    /// Name of the operation that a transaction has opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) operation: Option<String>,
}

/// The receipts of one cluster, or of the shared state, by number: the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipts {
    kept: PagedMap<u64, Arc<Receipt>>,
    callers: PagedMap<Arc<str>, Caller>,
    bytes: usize,
    next: u64,
}

/// Room for receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiptRoom {
    count: usize,
    bytes: usize,
}

impl ReceiptRoom {
    pub(crate) const SHARED: Self = Self { count: RECEIPTS_MAX, bytes: RECEIPTS_BYTES_MAX };
    pub(crate) const CLUSTER: Self = Self { count: CLUSTER_RECEIPTS_MAX, bytes: CLUSTER_RECEIPTS_BYTES_MAX };
}

/// One row of the stored form of receipts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiptRow {
    /// A receipt and its number. They ascend.
    Receipt(u64, Receipt),
    /// The number of the next receipt. It follows the receipts.
    Next(u64),
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

impl fmt::Debug for StoredResponse {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "StoredResponse({} bytes)", self.0.len())
    }
}

impl ReceiptContent {
    /// Reads the content of a receipt. None if another version has written something else.
    pub(crate) fn read(stored: &StoredResponse) -> Option<Self> {
        serde_json::from_slice(&stored.0).ok()
    }

    /// The content as it is stored. Of many events that are too long for a receipt, only the number of changes is left.
    pub(crate) fn into_stored(mut self) -> StoredResponse {
        let bytes = |content: &Self| serde_json::to_vec(content).unwrap_or_default();
        let mut written = bytes(&self);
        if written.len() > ANSWER_BYTES_MAX {
            let Outcome { events, unnotified, starts, .. } = &mut self.outcome;
            (*events, *unnotified, *starts) = (Vec::new(), Vec::new(), Vec::new());
            written = bytes(&self);
        }
        StoredResponse(written.into())
    }
}

impl Receipt {
    fn is_fresh(&self, now: Steady) -> bool {
        now.since(self.at) < self.kept_for()
    }

    fn kept_for(&self) -> Duration {
        if self.by == FORWARDED { FORWARDED_RECEIPT_KEPT_FOR } else { RECEIPT_KEPT_FOR }
    }

    fn bytes(&self) -> usize {
        self.by.len() + self.key.len() + self.fingerprint.len() + self.answer.0.len()
    }
}

impl Receipts {
    /// The receipt of a caller under a key, unless it is older than a day.
    #[must_use]
    pub fn find(&self, by: &str, key: &str, now: Steady) -> Option<&Receipt> {
        let number = self.callers.get(by)?.keys.get(key)?;
        self.kept.get(number).map(Arc::as_ref).filter(|receipt| receipt.is_fresh(now))
    }

    /// The number of receipts, and their size in bytes.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.kept.len(), self.bytes)
    }

    /// Checks that a receipt can be stored. Returns false if the same request has one: the first response stands.
    ///
    /// # Errors
    /// Fails if a part of it is invalid or too long, or another request has used the key.
    pub fn check(&self, now: Steady, new: &NewReceipt) -> Result<bool, Refusal> {
        let NewReceipt { by, key, fingerprint, answer } = new;
        check_by(by)?;
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Refusal::BadKey);
        }
        if answer.0.len() > ANSWER_BYTES_MAX {
            return Err(Refusal::AnswerTooLong { max: ANSWER_BYTES_MAX });
        }
        match self.find(by, key, now) {
            Some(former) if former.fingerprint == *fingerprint => Ok(false),
            Some(_) => Err(Refusal::KeyUsed(key.clone())),
            None => Ok(true),
        }
    }

    /// Stores a receipt. Removes those that are too old, then the oldest of the caller that has the most.
    pub(crate) fn keep(&mut self, room: ReceiptRoom, at: Steady, new: &NewReceipt) {
        let NewReceipt { by, key, fingerprint, answer } = new.clone();
        let number = self.next;
        self.next = self.next.saturating_add(1);
        self.put(number, Receipt { by, key, fingerprint, at, answer });
        while let Some(old) = self.first_old(at) {
            self.remove(old);
        }
        while let Some(largest) = self.largest_if_full(room) {
            self.remove_oldest_of(&largest);
        }
    }

    /// The first receipt that is too old: of all callers, or of forwarded requests.
    fn first_old(&self, now: Steady) -> Option<u64> {
        let is_old = |number: &u64| self.kept.get(number).is_some_and(|receipt| !receipt.is_fresh(now));
        let first = self.kept.first().map(|(number, _)| *number).filter(is_old);
        first.or_else(|| self.callers.get(FORWARDED)?.numbers.first().copied().filter(is_old))
    }

    fn put(&mut self, number: u64, receipt: Receipt) {
        self.bytes += receipt.bytes();
        let caller = self.callers.get_or_default(&receipt.by.as_str().into());
        caller.bytes += receipt.bytes();
        caller.numbers.insert(number);
        caller.keys.insert(receipt.key.as_str().into(), number);
        self.kept.insert(number, Arc::new(receipt));
    }

    /// The receipts as rows.
    pub(crate) fn into_rows(self) -> impl Iterator<Item = ReceiptRow> + Send + 'static {
        let next = self.next;
        let row = |(number, receipt)| ReceiptRow::Receipt(number, Arc::unwrap_or_clone(receipt));
        self.kept.into_iter().map(row).chain(std::iter::once(ReceiptRow::Next(next)))
    }

    /// Takes the next row.
    pub(crate) fn restore(&mut self, row: ReceiptRow) -> Result<(), BadRows> {
        let last = self.kept.last().map(|(number, _)| *number);
        match row {
            ReceiptRow::Receipt(number, receipt) => {
                if last.is_some_and(|last| last >= number) {
                    return Err(BadRows("receipts do not ascend"));
                }
                self.put(number, receipt);
            }
            ReceiptRow::Next(next) => {
                last.map_or(Ok(()), |last| check_number_known(&last, &next))?;
                self.next = next;
            }
        }
        Ok(())
    }

    /// The caller with the most receipts if there are too many in all, or with the most bytes if those are too many.
    fn largest_if_full(&self, room: ReceiptRoom) -> Option<Arc<str>> {
        let size: fn(&Caller) -> usize = if self.bytes > room.bytes {
            |caller| caller.bytes
        } else if self.kept.len() > room.count {
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

/// Checks the name of a caller.
pub(crate) fn check_by(by: &str) -> Result<(), Refusal> {
    let fits = (1..=BY_BYTES_MAX).contains(&by.len()) && !by.chars().any(char::is_control);
    if fits { Ok(()) } else { Err(Refusal::BadBy) }
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
            answer: StoredResponse(vec![b'x'; bytes].into()),
        }
    }

    fn keep(receipts: &mut Receipts, receipt: Receipt) {
        let Receipt { by, key, fingerprint, at, answer } = receipt;
        receipts.keep(ReceiptRoom::SHARED, at, &NewReceipt { by, key, fingerprint, answer });
    }

    /// promise: S4
    #[test]
    fn a_receipt_does_not_show_what_was_answered() {
        let shown = format!("{:?}", receipt("a", 5, 3));
        assert!(shown.ends_with("at: Steady(5), answer: StoredResponse(3 bytes) }"), "{shown}");
    }

    #[test]
    fn the_same_key_later_finds_the_later_one() {
        let mut receipts = Receipts::default();
        keep(&mut receipts, receipt("a", 0, 1));
        keep(&mut receipts, receipt("a", 1, 2));
        let found =
            |receipts: &Receipts| receipts.find("socket", "a", Steady::from_millis(1)).map(|it| it.at);
        assert_eq!(found(&receipts), Some(Steady::from_millis(1)));
        receipts.remove(0);
        assert_eq!(found(&receipts), Some(Steady::from_millis(1)));
        assert_eq!(receipts.find("token a", "a", Steady::START), None);
    }

    /// promise: C2
    #[test]
    fn there_is_room_for_the_last_one_even_if_all_are_as_large_as_can_be() {
        let mut receipts = Receipts::default();
        for number in 0..200 {
            keep(&mut receipts, receipt(&number.to_string(), 0, crate::limits::ANSWER_BYTES_MAX));
            assert!(receipts.bytes <= RECEIPTS_BYTES_MAX);
            assert!(receipts.find("socket", &number.to_string(), Steady::START).is_some());
        }
        assert_eq!(receipts.kept.len(), 63);
        assert!(receipts.find("socket", "136", Steady::START).is_none());
    }

    /// promise: C2
    #[test]
    fn a_flood_of_one_caller_costs_no_other_caller_a_receipt() {
        let mut receipts = Receipts::default();
        keep(&mut receipts, receipt_of("token admin", "k", 0, 300));
        for number in 1..=10_400 {
            keep(&mut receipts, receipt_of("token web", &number.to_string(), 0, 300));
        }
        assert!(receipts.find("token admin", "k", Steady::START).is_some());
        assert_eq!(receipts.kept.len(), RECEIPTS_MAX);
        let found = |number: u64| receipts.find("token web", &number.to_string(), Steady::START).is_some();
        assert!(found(10_400) && !found(1), "its own oldest go");
    }

    /// promise: C2
    #[test]
    fn a_flood_of_long_answers_costs_no_other_caller_a_receipt() {
        let mut receipts = Receipts::default();
        for number in 0..100 {
            keep(&mut receipts, receipt_of("token admin", &number.to_string(), 0, 10_000));
        }
        for _ in 100..300 {
            keep(&mut receipts, receipt_of("token web", "k", 0, crate::limits::ANSWER_BYTES_MAX));
        }
        for number in 0..100 {
            assert!(receipts.find("token admin", &number.to_string(), Steady::START).is_some(), "{number}");
        }
    }

    /// promise: C2
    #[test]
    fn a_caller_within_its_share_keeps_its_receipts_whatever_the_others_do() {
        const CALLERS: usize = 20;
        let mut receipts = Receipts::default();
        let share = RECEIPTS_MAX / CALLERS;
        let keep = |receipts: &mut Receipts, by: &str, key: usize| {
            keep(receipts, receipt_of(by, &key.to_string(), 0, 1));
        };
        for key in 0..share {
            keep(&mut receipts, "token small", key);
        }
        for caller in 1..CALLERS {
            for key in 0..2 * share {
                keep(&mut receipts, &format!("token {caller}"), key);
            }
        }
        assert_eq!(receipts.kept.len(), RECEIPTS_MAX);
        for key in 0..share {
            assert!(receipts.find("token small", &key.to_string(), Steady::START).is_some(), "{key}");
        }
    }

    /// promise: C2
    #[test]
    fn a_cluster_has_less_room_than_the_shared_state() {
        let mut receipts = Receipts::default();
        for number in 0..=CLUSTER_RECEIPTS_MAX {
            let new = NewReceipt {
                by: "socket".to_owned(),
                key: number.to_string(),
                fingerprint: [0; 32],
                answer: StoredResponse([].into()),
            };
            receipts.keep(ReceiptRoom::CLUSTER, Steady::START, &new);
        }
        assert_eq!(receipts.kept.len(), CLUSTER_RECEIPTS_MAX);
        assert!(receipts.find("socket", "0", Steady::START).is_none());
        assert!(receipts.find("socket", "1", Steady::START).is_some());
    }

    /// promise: C2
    #[test]
    fn forwarded_requests_take_no_receipt_of_a_caller_within_its_share() {
        let mut receipts = Receipts::default();
        let share = RECEIPTS_MAX / 2;
        for number in 0..share {
            keep(&mut receipts, receipt_of("token web", &number.to_string(), 0, 300));
        }
        for number in 0..2 * RECEIPTS_MAX {
            keep(&mut receipts, receipt_of(FORWARDED, &number.to_string(), 0, 300));
        }
        for number in 0..share {
            let found = receipts.find("token web", &number.to_string(), Steady::START);
            assert!(found.is_some(), "{number}");
        }
        let last = (2 * RECEIPTS_MAX - 1).to_string();
        assert!(receipts.find(FORWARDED, &last, Steady::START).is_some());
    }

    #[test]
    fn forwarded_requests_give_their_room_back_before_the_keys_of_callers_are_old() {
        let mut receipts = Receipts::default();
        keep(&mut receipts, receipt_of("token web", "k", 0, 1));
        for number in 0..3 {
            keep(&mut receipts, receipt_of(FORWARDED, &number.to_string(), 1, 1));
        }
        let hour = Steady::START.plus(FORWARDED_RECEIPT_KEPT_FOR).plus(Duration::from_millis(1));
        assert!(receipts.find(FORWARDED, "2", hour).is_none());
        assert!(receipts.find("token web", "k", hour).is_some());
        keep(&mut receipts, receipt_of("token web", "l", hour.millis(), 1));
        assert_eq!(receipts.size().0, 2);
        let day = Steady::START.plus(RECEIPT_KEPT_FOR);
        assert!(receipts.find("token web", "k", day).is_none());
    }
}
