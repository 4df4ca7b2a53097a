//! Authentication of a connection, and the limit of connections with one token.

use std::sync::Arc;

use axum::extract::Request;
use forewarn_control::Permit;

use super::connection_state::ConnectionState;
use super::listener_shared::ListenerShared;

/// The connection of a request, as an extension of the request.
#[derive(Clone, Debug)]
pub(super) struct ConnectionHandle {
    listener: Arc<ListenerShared>,
    state: Arc<ConnectionState>,
}

/// A token has as many connections as it may have, and all of them are busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the token has too many connections\n  hint: close some, use another token, or raise connection.per_token"
)]
pub struct TooManyConnections;

impl ConnectionHandle {
    pub(super) fn new(listener: &Arc<ListenerShared>, state: &Arc<ConnectionState>) -> Self {
        Self { listener: Arc::clone(listener), state: Arc::clone(state) }
    }

    fn authenticate(&self, permit: &Arc<Permit>) -> Result<(), TooManyConnections> {
        let Self { listener, state } = self;
        if state.token() != permit.token {
            match listener.table.hold(&listener.limits(), state, permit.token) {
                Ok(None) => {}
                Ok(Some(reason)) => listener.counts.dropped(reason),
                Err(reason) => {
                    listener.counts.refused(reason);
                    listener.warn(reason);
                    return Err(TooManyConnections);
                }
            }
        }
        state.authenticate(permit);
        Ok(())
    }
}

/// Records that the connection of a request has authenticated.
///
/// # Errors
/// Fails if the token has too many connections. The connection should be closed after the response.
pub fn authenticate_connection(request: &Request, permit: &Arc<Permit>) -> Result<(), TooManyConnections> {
    let connection = request.extensions().get::<ConnectionHandle>();
    connection.map_or(Ok(()), |connection| connection.authenticate(permit))
}
