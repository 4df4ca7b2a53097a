//! What the last request of a connection meant, and who sent it.
//!
//! Whoever polls sends the same bytes again and again. Who is calling, and what is asked for, depends on those bytes, the
//! connection, the settings and the directory of callers alone: as long as none of them is another, neither is the meaning.

use crate::request::Body;
use crate::route::Asked;
use crate::terms::Terms;

/// Bytes of a head that is remembered. A longer one is read anew each time.
const HEAD_BYTES_MAX: usize = 1_024;

/// A head, and what it means. A caller is whatever the front takes for one.
#[derive(Debug)]
pub(crate) struct Memory<C> {
    requests: u64,
    head: Vec<u8>,
    meaning: Option<Meaning<C>>,
}

/// Who sent a head, and what it asks for.
#[derive(Debug)]
pub(crate) struct Meaning<C> {
    /// Of the directory in which the caller was found.
    generation: u64,
    pub(crate) caller: C,
    pub(crate) asked: Asked,
    pub(crate) terms: Terms,
}

impl<C> Default for Memory<C> {
    fn default() -> Self {
        Self { requests: 0, head: Vec::new(), meaning: None }
    }
}

impl<C: Clone> Memory<C> {
    /// What these bytes mean, if they are exactly the head that came last, and the directory is what it was.
    pub(crate) fn recall(&self, input: &[u8], generation: u64) -> Option<&Meaning<C>> {
        self.meaning.as_ref().filter(|meaning| meaning.generation == generation && self.head == input)
    }

    /// Keeps what a head means, if it is a poll, and if it is not the first request: many connections have only one.
    pub(crate) fn keep(&mut self, head: &[u8], generation: u64, caller: &C, asked: &Asked, terms: Terms) {
        self.requests += 1;
        self.meaning = None;
        let is_poll = matches!(asked, Asked::Events { .. }) && terms.body == Body::NONE;
        if is_poll && self.requests > 1 && head.len() <= HEAD_BYTES_MAX {
            self.head.clear();
            self.head.extend_from_slice(head);
            let (caller, asked) = (caller.clone(), asked.clone());
            self.meaning = Some(Meaning { generation, caller, asked, terms });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Shown;
    use crate::counts::Path;
    use crate::request::{After, Known};
    use forewarn_imds::Edition;

    const TERMS: Terms = Terms {
        after: After::KeepAlive,
        shown: Shown::Whole,
        body: Body::NONE,
        expects_continue: false,
        path: Path::Events,
        machine: None,
    };

    fn poll(edition: Edition) -> Asked {
        Asked::Events { edition, known: Known::default(), wait: None }
    }

    fn recalled(memory: &Memory<&str>, input: &[u8]) -> Option<Asked> {
        memory.recall(input, 7).map(|meaning| meaning.asked.clone())
    }

    #[test]
    fn a_poll_is_remembered_from_the_second_on_until_something_else_comes() {
        let mut memory = Memory::default();
        assert_eq!(recalled(&memory, b""), None);
        memory.keep(b"old", 7, &"solo", &poll(Edition::V2017_08_01), TERMS);
        assert_eq!(recalled(&memory, b"old"), None);
        memory.keep(b"new", 7, &"solo", &poll(Edition::V2020_07_01), TERMS);
        assert_eq!(recalled(&memory, b"new"), Some(poll(Edition::V2020_07_01)));
        for other in [b"old".as_slice(), b"ne", b"new+", b""] {
            assert_eq!(recalled(&memory, other), None);
        }
        assert!(memory.recall(b"new", 8).is_none(), "the directory is another one");
        memory.keep(b"versions", 7, &"solo", &Asked::Versions, TERMS);
        assert_eq!(recalled(&memory, b"new"), None);
        assert_eq!(recalled(&memory, b"versions"), None);
    }

    #[test]
    fn a_head_that_is_very_long_is_not_remembered() {
        let mut memory = Memory::default();
        for (bytes, is_kept) in [(HEAD_BYTES_MAX, true), (HEAD_BYTES_MAX + 1, false)] {
            let head = vec![b'a'; bytes];
            memory.keep(&head, 7, &"solo", &poll(Edition::V2020_07_01), TERMS);
            memory.keep(&head, 7, &"solo", &poll(Edition::V2020_07_01), TERMS);
            assert_eq!(recalled(&memory, &head).is_some(), is_kept);
        }
    }
}
