//! Sessions of the dashboard: a random id in a cookie stands for a token.
//!
//! They are in memory: after a restart of the server, users log in again. A session never allows more than its token,
//! which is checked with every request, and ends with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use data_encoding::HEXLOWER;
use forewarn_control::Permit;
use forewarn_control::shared::SharedState;
use forewarn_lifecycle::Timestamp;

use super::token::{PresentedToken, hash};

/// The longest time of a session.
pub(super) const SESSION_TIME_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Sessions of one token. A further one ends the oldest.
const SESSIONS_PER_TOKEN_MAX: usize = 20;

/// Random bytes in an id.
const ID_BYTES: usize = 32;

/// Sessions of all users.
#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<IdHash, Session>>);

/// SHA-256 of the id of a session.
type IdHash = [u8; 32];

/// A session. Its id is stored as a hash.
#[derive(Clone)]
struct Session {
    token: PresentedToken,
    begun: Instant,
}

/// The id of a session, which a browser presents. It is as secret as a token.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SessionId(String);

/// The session of a request. A response that takes long ends with it.
#[derive(Clone, Debug)]
pub(super) struct OpenSession {
    sessions: Arc<Sessions>,
    id: IdHash,
}

impl SessionId {
    /// The id that a request has.
    pub(super) fn presented(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text for the cookie.
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    fn hash(&self) -> IdHash {
        hash(&self.0).0
    }

    fn new() -> io::Result<Self> {
        let mut bytes = [0; ID_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(HEXLOWER.encode(&bytes)))
    }
}

impl Sessions {
    /// Begins a session for a valid token.
    ///
    /// # Errors
    /// Returns an error if no random numbers are available.
    pub(super) fn begin(&self, token: PresentedToken, now: Instant) -> io::Result<SessionId> {
        let id = SessionId::new()?;
        let mut sessions = self.lock();
        sessions.retain(|_, session| !session.is_over(now));
        let mut of_token: Vec<_> = sessions
            .iter()
            .filter(|(_, session)| session.token == token)
            .map(|(id, session)| (session.begun, *id))
            .collect();
        of_token.sort_unstable_by_key(|(begun, _)| *begun);
        let surplus = (of_token.len() + 1).saturating_sub(SESSIONS_PER_TOKEN_MAX);
        for (_, id) in of_token.iter().take(surplus) {
            sessions.remove(id);
        }
        sessions.insert(id.hash(), Session { token, begun: now });
        Ok(id)
    }

    /// Ends a session. Returns false if there is none.
    pub(super) fn end(&self, id: &SessionId) -> bool {
        self.lock().remove(&id.hash()).is_some()
    }

    /// The permit of the token behind a session. None if the session is over, or its token is.
    pub(super) fn admit(
        self: &Arc<Self>,
        id: &SessionId,
        shared: &SharedState,
        (now, wall): (Instant, Timestamp),
    ) -> Option<(Permit, OpenSession)> {
        let id = id.hash();
        let session = self.lock().get(&id).filter(|session| !session.is_over(now)).cloned()?;
        let token = shared.find_token(session.token.number)?;
        let is_valid = token.hash == session.token.hash && !token.is_expired(wall);
        is_valid.then(|| (Permit::of(token), OpenSession { sessions: Arc::clone(self), id }))
    }

    /// A panic between two changes is impossible: nothing is called in between.
    fn lock(&self) -> MutexGuard<'_, HashMap<IdHash, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Sessions({})", self.lock().len())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SessionId(secret)")
    }
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) >= SESSION_TIME_MAX
    }
}

impl OpenSession {
    /// Returns false once the session is over, by time or by a logout.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.sessions.lock().get(&self.id).is_some_and(|session| !session.is_over(now))
    }
}

#[cfg(test)]
mod tests {
    use forewarn_control::shared::{Command, Role, Scope};
    use forewarn_lifecycle::{Name, Now, Seed};

    use super::super::token::Secret;
    use super::*;

    const HOUR: Duration = Duration::from_secs(60 * 60);
    const WALL: Timestamp = Timestamp::from_millis(0);

    /// The shared state, with sessions.
    struct Place {
        shared: SharedState,
        sessions: Arc<Sessions>,
        start: Instant,
    }

    impl Place {
        fn new() -> Self {
            let shared = SharedState::new(Seed([7; 16]));
            Self { shared, sessions: Arc::default(), start: Instant::now() }
        }

        fn run(&mut self, command: &Command) {
            let changes = self.shared.decide(Now::at_millis(0), command).unwrap();
            changes.iter().for_each(|change| drop(self.shared.apply(Now::at_millis(0), change)));
        }

        /// Issues a token, and presents it.
        fn issue(&mut self, name: &str, expires: Option<Timestamp>) -> PresentedToken {
            let number = self.shared.next_token();
            let token = PresentedToken::parse(&Secret::new().unwrap().text(number)).unwrap();
            self.run(&Command::IssueToken {
                number,
                name: Name::new(name).unwrap(),
                role: Role::Viewer,
                scope: Scope::default(),
                hash: token.hash,
                expires,
                by: "socket".to_owned(),
            });
            token
        }

        fn begin(&self, token: &PresentedToken, after: Duration) -> SessionId {
            self.sessions.begin(token.clone(), self.start + after).unwrap()
        }

        fn admits(&self, id: &SessionId, after: Duration, wall: Timestamp) -> bool {
            self.sessions.admit(id, &self.shared, (self.start + after, wall)).is_some()
        }
    }

    /// promise: S2
    #[test]
    fn a_session_lasts_twelve_hours_at_most() {
        let mut place = Place::new();
        let token = place.issue("ci", None);
        let id = place.begin(&token, HOUR);
        let (permit, open) = place.sessions.admit(&id, &place.shared, (place.start, WALL)).unwrap();
        assert_eq!((permit.by.as_str(), permit.role), ("token ci", Role::Viewer));
        let last = 13 * HOUR - Duration::from_millis(1);
        assert!(place.admits(&id, last, WALL) && open.is_open(place.start + last));
        assert!(!place.admits(&id, 13 * HOUR, WALL) && !open.is_open(place.start + 13 * HOUR));
        // The next login removes it.
        place.begin(&token, 13 * HOUR);
        assert_eq!(place.sessions.lock().len(), 1);
    }

    /// promise: S2
    #[test]
    fn a_session_ends_with_its_token() {
        let mut place = Place::new();
        let (day, later) = (Timestamp::from_millis(86_400_000), Timestamp::from_millis(86_400_001));
        let (short, long) = (place.issue("short", Some(later)), place.issue("long", None));
        let (of_short, of_long) = (place.begin(&short, HOUR), place.begin(&long, HOUR));
        assert!(place.admits(&of_short, HOUR, day) && place.admits(&of_long, HOUR, day));
        assert!(!place.admits(&of_short, HOUR, later) && place.admits(&of_long, HOUR, later));
        place.run(&Command::RevokeToken(Name::new("long").unwrap()));
        assert!(!place.admits(&of_long, HOUR, day));
        assert!(!place.admits(&SessionId::new().unwrap(), HOUR, day), "nobody has begun it");
    }

    /// A server that is restored from a backup may give the number of a token to another one.
    ///
    /// promise: S2
    #[test]
    fn a_session_is_not_for_another_token_of_the_same_number() {
        let mut place = Place::new();
        let old = place.issue("old", None);
        let id = place.begin(&old, HOUR);
        let mut restored = Place { sessions: Arc::clone(&place.sessions), ..Place::new() };
        let new = restored.issue("new", None);
        assert_eq!(new.number, old.number);
        assert!(place.admits(&id, HOUR, WALL) && !restored.admits(&id, HOUR, WALL));
    }

    /// promise: S2
    #[test]
    fn a_logout_ends_one_session_and_what_it_receives() {
        let mut place = Place::new();
        let token = place.issue("ci", None);
        let (one, other) = (place.begin(&token, HOUR), place.begin(&token, HOUR));
        let (_, open) = place.sessions.admit(&one, &place.shared, (place.start, WALL)).unwrap();
        assert!(place.sessions.end(&one) && !place.sessions.end(&one));
        assert!(!place.admits(&one, HOUR, WALL) && !open.is_open(place.start));
        assert!(place.admits(&other, HOUR, WALL));
    }

    #[test]
    fn a_token_has_a_limit_of_sessions_and_the_oldest_ends_first() {
        let mut place = Place::new();
        let (token, other) = (place.issue("ci", None), place.issue("other", None));
        let first = place.begin(&other, Duration::ZERO);
        let ids: Vec<_> = (0..25).map(|second| place.begin(&token, Duration::from_secs(second))).collect();
        let open: Vec<_> = ids.iter().map(|id| place.admits(id, HOUR, WALL)).collect();
        assert_eq!(open.iter().filter(|is_open| **is_open).count(), SESSIONS_PER_TOKEN_MAX);
        assert!(open[5..].iter().all(|is_open| *is_open), "{open:?}");
        assert!(place.admits(&first, HOUR, WALL), "another token has its own");
    }

    /// promise: S4
    #[test]
    fn an_id_is_random_and_stored_and_shown_nowhere() {
        let mut place = Place::new();
        let token = place.issue("ci", None);
        let (id, other) = (place.begin(&token, HOUR), place.begin(&token, HOUR));
        assert_eq!(id.text().len(), 2 * ID_BYTES);
        assert_ne!(id.text(), other.text());
        let stored: Vec<_> = place.sessions.lock().keys().copied().collect();
        assert!(stored.iter().all(|hash| HEXLOWER.encode(hash) != id.text()));
        let (_, open) = place.sessions.admit(&id, &place.shared, (place.start, WALL)).unwrap();
        assert_eq!(format!("{id:?} {:?}", place.sessions), "SessionId(secret) Sessions(2)");
        assert!(!format!("{open:?}").contains(id.text()));
    }
}
