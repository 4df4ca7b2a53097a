//! Codes and sessions of the proxy. A code works once, within a minute; a session lasts until the command ends, or twelve
//! hours.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use data_encoding::HEXLOWER;

/// The time in which a code works.
const CODE_TIME_MAX: Duration = Duration::from_secs(60);

/// The longest time of a session.
pub(super) const SESSION_TIME_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Sessions at once. A further one ends the oldest.
const SESSIONS_MAX: usize = 20;

/// Random bytes of a code or of a session.
const SECRET_BYTES: usize = 32;

/// The code and the sessions.
#[derive(Default)]
pub(super) struct Entrance(Mutex<Secrets>);

/// Secrets with the times at which they were made.
#[derive(Default)]
struct Secrets {
    /// The last code, until it is used.
    code: Option<(String, Instant)>,
    /// The oldest first.
    sessions: VecDeque<(String, Instant)>,
}

impl Entrance {
    /// A new code. None while the last one still works.
    pub(super) fn renew_code(&self, now: Instant) -> Result<Option<String>> {
        let mut secrets = self.lock();
        if secrets.code.as_ref().is_some_and(|(_, made)| now.saturating_duration_since(*made) < CODE_TIME_MAX)
        {
            return Ok(None);
        }
        let code = secret()?;
        secrets.code = Some((code.clone(), now));
        Ok(Some(code))
    }

    /// Exchanges the code for a session. None for another code, and for one that is used or too old.
    pub(super) fn exchange(&self, code: &str, now: Instant) -> Result<Option<String>> {
        let mut secrets = self.lock();
        let works = secrets.code.as_ref().is_some_and(|(known, made)| {
            is_same(known, code) && now.saturating_duration_since(*made) < CODE_TIME_MAX
        });
        if !works {
            return Ok(None);
        }
        secrets.code = None;
        let session = secret()?;
        if secrets.sessions.len() >= SESSIONS_MAX {
            secrets.sessions.pop_front();
        }
        secrets.sessions.push_back((session.clone(), now));
        Ok(Some(session))
    }

    /// Returns true for a session that is not over.
    pub(super) fn admits(&self, session: &str, now: Instant) -> bool {
        self.lock().sessions.iter().any(|(known, begun)| {
            is_same(known, session) && now.saturating_duration_since(*begun) < SESSION_TIME_MAX
        })
    }

    /// Ends a session.
    pub(super) fn end(&self, session: &str) {
        self.lock().sessions.retain(|(known, _)| !is_same(known, session));
    }

    fn lock(&self) -> MutexGuard<'_, Secrets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn secret() -> Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).context("cannot get random bytes from the operating system")?;
    Ok(HEXLOWER.encode(&bytes))
}

/// Compares in a time that does not depend on the first difference.
fn is_same(known: &str, presented: &str) -> bool {
    let pairs = known.bytes().zip(presented.bytes());
    known.len() == presented.len()
        && pairs.fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_code_works_once_within_a_minute() {
        let (entrance, start) = (Entrance::default(), Instant::now());
        assert_eq!(entrance.exchange("", start).unwrap(), None, "there is no code yet");
        let code = entrance.renew_code(start).unwrap().unwrap();
        assert_eq!(entrance.renew_code(start).unwrap(), None, "it still works");
        for wrong in ["", "0", &code[1..], &code.to_uppercase().replace('0', "1")] {
            assert_eq!(entrance.exchange(wrong, start).unwrap(), None, "{wrong}");
        }
        let session = entrance.exchange(&code, start + MINUTE - Duration::from_millis(1)).unwrap().unwrap();
        assert_eq!(entrance.exchange(&code, start).unwrap(), None, "it is used");
        assert!(entrance.admits(&session, start) && !entrance.admits(&code, start));
        let other = entrance.renew_code(start).unwrap().unwrap();
        assert_ne!(code, other);
        assert_eq!(entrance.exchange(&other, start + MINUTE).unwrap(), None, "it is too old");
        assert!(entrance.renew_code(start + MINUTE).unwrap().is_some());
    }

    #[test]
    fn sessions_end_with_their_time_with_a_logout_and_when_there_are_too_many() {
        let (entrance, start) = (Entrance::default(), Instant::now());
        let begin = || {
            let code = entrance.renew_code(start).unwrap().unwrap();
            entrance.exchange(&code, start).unwrap().unwrap()
        };
        let (first, second) = (begin(), begin());
        assert!(entrance.admits(&first, start + SESSION_TIME_MAX - MINUTE));
        assert!(!entrance.admits(&first, start + SESSION_TIME_MAX) && !entrance.admits("", start));
        entrance.end(&second);
        assert!(entrance.admits(&first, start) && !entrance.admits(&second, start));
        let more: Vec<_> = (0..SESSIONS_MAX).map(|_| begin()).collect();
        assert!(
            !entrance.admits(&first, start) && more.iter().all(|session| entrance.admits(session, start))
        );
    }
}
