//! Tokens of a user: one for all calls, renewed when a member rejects it.

use std::sync::{Mutex, PoisonError};

use tokio::sync::MutexGuard;
use tonic::metadata::{Ascii, MetadataValue};

use crate::settings::EtcdLogin;

/// The token of a user.
#[derive(Debug)]
pub(crate) struct TokenCell {
    login: EtcdLogin,
    state: Mutex<TokenState>,
    /// The turn to renew the token: one call at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug, Default)]
struct TokenState {
    /// Number of renewals: 0 if there has been none.
    generation: u64,
    /// None if authentication is switched off in etcd.
    value: Option<MetadataValue<Ascii>>,
}

/// A token as a call uses it.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenLoan {
    generation: u64,
    /// None if authentication is switched off in etcd.
    pub(crate) value: Option<MetadataValue<Ascii>>,
}

impl TokenCell {
    pub(crate) fn new(login: EtcdLogin) -> Self {
        Self { login, state: Mutex::default(), turn: tokio::sync::Mutex::new(()) }
    }

    pub(crate) fn login(&self) -> &EtcdLogin {
        &self.login
    }

    /// The token, if the user has logged in.
    pub(crate) fn borrow(&self) -> Option<TokenLoan> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (state.generation > 0).then_some(TokenLoan { generation: state.generation, value: state.value })
    }

    /// Waits for the turn to renew the token.
    pub(crate) async fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The token, if another call has renewed the rejected one meanwhile.
    pub(crate) fn newer_than(&self, rejected: Option<&TokenLoan>) -> Option<TokenLoan> {
        let seen = rejected.map_or(0, |rejected| rejected.generation);
        self.borrow().filter(|token| token.generation > seen)
    }

    /// Stores a new token.
    pub(crate) fn store(&self, value: Option<MetadataValue<Ascii>>) -> TokenLoan {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = TokenState { generation: state.generation + 1, value };
        TokenLoan { generation: state.generation, value: state.value.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_once_for_all_calls_that_it_failed() {
        let cell = TokenCell::new(EtcdLogin::new("root", "s3cret"));
        assert!(cell.borrow().is_none() && cell.newer_than(None).is_none());
        let first = cell.store(Some(MetadataValue::from_static("first")));
        assert!(cell.newer_than(None).is_some(), "the first login of another call");
        assert!(cell.newer_than(Some(&first)).is_none());
        cell.store(Some(MetadataValue::from_static("second")));
        let newer = cell.newer_than(Some(&first)).and_then(|token| token.value);
        assert_eq!(newer.unwrap(), "second");
    }
}
