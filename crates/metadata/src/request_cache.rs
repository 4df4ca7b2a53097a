//! Cache of the last request of a connection.
//!
//! A polling client sends the same bytes again and again. The caller and the action depend only on those bytes, the
//! connection, the settings and the directory, so a cached result stays valid until one of these changes.

use crate::request::Body;
use crate::response_rules::ResponseRules;
use crate::route::Action;

/// Maximum length of a cached head. A longer one is parsed each time.
const HEAD_BYTES_MAX: usize = 1_024;

/// A head with its parsed request. `C` is the type of a caller.
#[derive(Debug)]
pub(crate) struct RequestCache<C> {
    requests: u64,
    head: Vec<u8>,
    request: Option<CachedRequest<C>>,
}

/// Parsed request of a cached head.
#[derive(Debug)]
pub(crate) struct CachedRequest<C> {
    /// Generation of the directory in which the caller was found.
    generation: u64,
    pub(crate) caller: C,
    pub(crate) action: Action,
    pub(crate) rules: ResponseRules,
}

impl<C> Default for RequestCache<C> {
    fn default() -> Self {
        Self { requests: 0, head: Vec::new(), request: None }
    }
}

impl<C: Clone> RequestCache<C> {
    /// The cached request, if the input is exactly the cached head and the directory has not changed.
    pub(crate) fn get(&self, input: &[u8], generation: u64) -> Option<&CachedRequest<C>> {
        self.request.as_ref().filter(|request| request.generation == generation && self.head == input)
    }

    /// Stores a parsed head, if it is a poll and not the first request: many connections have only one.
    pub(crate) fn store(
        &mut self,
        head: &[u8],
        generation: u64,
        caller: &C,
        action: &Action,
        rules: ResponseRules,
    ) {
        self.requests += 1;
        self.request = None;
        let is_poll = matches!(action, Action::Events { .. }) && rules.body == Body::NONE;
        if is_poll && self.requests > 1 && head.len() <= HEAD_BYTES_MAX {
            self.head.clear();
            self.head.extend_from_slice(head);
            let (caller, action) = (caller.clone(), action.clone());
            self.request = Some(CachedRequest { generation, caller, action, rules });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Path;
    use crate::request::{ConnectionMode, KnownIncarnations};
    use crate::response::BodyMode;
    use forewarn_imds::Edition;

    const RULES: ResponseRules = ResponseRules {
        connection_mode: ConnectionMode::KeepAlive,
        body_mode: BodyMode::Whole,
        body: Body::NONE,
        expects_continue: false,
        path: Path::Events,
        caller: None,
    };

    fn poll(edition: Edition) -> Action {
        Action::Events { edition, known: KnownIncarnations::default(), wait: None }
    }

    fn recalled(cache: &RequestCache<&str>, input: &[u8]) -> Option<Action> {
        cache.get(input, 7).map(|request| request.action.clone())
    }

    #[test]
    fn a_poll_is_remembered_from_the_second_on_until_something_else_comes() {
        let mut cache = RequestCache::default();
        assert_eq!(recalled(&cache, b""), None);
        cache.store(b"old", 7, &"solo", &poll(Edition::V2017_08_01), RULES);
        assert_eq!(recalled(&cache, b"old"), None);
        cache.store(b"new", 7, &"solo", &poll(Edition::V2020_07_01), RULES);
        assert_eq!(recalled(&cache, b"new"), Some(poll(Edition::V2020_07_01)));
        for other in [b"old".as_slice(), b"ne", b"new+", b""] {
            assert_eq!(recalled(&cache, other), None);
        }
        assert!(cache.get(b"new", 8).is_none(), "the directory is another one");
        cache.store(b"versions", 7, &"solo", &Action::Versions, RULES);
        assert_eq!(recalled(&cache, b"new"), None);
        assert_eq!(recalled(&cache, b"versions"), None);
    }

    #[test]
    fn a_head_that_is_very_long_is_not_remembered() {
        let mut cache = RequestCache::default();
        for (bytes, is_kept) in [(HEAD_BYTES_MAX, true), (HEAD_BYTES_MAX + 1, false)] {
            let head = vec![b'a'; bytes];
            cache.store(&head, 7, &"solo", &poll(Edition::V2020_07_01), RULES);
            cache.store(&head, 7, &"solo", &poll(Edition::V2020_07_01), RULES);
            assert_eq!(recalled(&cache, &head).is_some(), is_kept);
        }
    }
}
