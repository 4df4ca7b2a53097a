//! One call: on one endpoint, within one time limit, with the token of the user.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::http::uri::PathAndQuery;
use prost::Message;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};

use crate::classify::error_of;
use crate::client::{ChosenEndpoint, EtcdClient};
use crate::codec::MessageCodec;
use crate::error::{Doubt, EtcdError, Obstacle, Rejection};
use crate::login::TokenLoan;
use crate::messages::{AuthenticateRequest, AuthenticateResponse};
use crate::method::{AUTHENTICATE, Method};

/// The longest time limit that a member is told; gRPC has no place for much longer ones.
const TOLD_LIMIT_MAX: Duration = Duration::from_hours(1);

/// The progress of a call, for the case that its time is over.
#[derive(Debug, Default)]
pub(crate) struct CallProgress {
    /// True from when the request may have been sent.
    is_sent: AtomicBool,
}

impl EtcdClient {
    /// Logs in now, instead of with the first call. Does nothing without a user in the settings.
    ///
    /// # Errors
    /// Fails if the member cannot be reached, or rejects the user or the password.
    pub async fn authenticate(&self) -> Result<(), EtcdError> {
        let chosen = self.chosen();
        let progress = CallProgress::default();
        let renewed = async { self.renew_token(&chosen, None).await.map(drop) };
        self.limited(&chosen, &progress, renewed).await
    }

    /// Makes a call on an endpoint.
    pub(crate) async fn call_at<Q, A>(
        &self,
        chosen: &ChosenEndpoint,
        method: Method,
        request: &Q,
    ) -> Result<A, EtcdError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        self.check_size(chosen, request)?;
        let progress = CallProgress::default();
        let answered = self.attempt(chosen, method, request, &progress);
        self.limited(chosen, &progress, answered).await
    }

    fn check_size(&self, chosen: &ChosenEndpoint, request: &impl Message) -> Result<(), EtcdError> {
        let (bytes, max) = (request.encoded_len(), self.limits().request_bytes);
        if bytes <= max {
            return Ok(());
        }
        let message = format!("{bytes} bytes, at most {max}");
        Err(EtcdError::not_sent(chosen.name(), Obstacle::TooLarge, &message))
    }

    /// Applies the time limit to a call, and goes on to the next endpoint if this one has failed.
    pub(crate) async fn limited<A>(
        &self,
        chosen: &ChosenEndpoint,
        progress: &CallProgress,
        answered: impl Future<Output = Result<A, EtcdError>>,
    ) -> Result<A, EtcdError> {
        let answer = match timeout(self.limit(), answered).await {
            Ok(answer) => answer,
            Err(_) => Err(self.time_over(chosen, progress)),
        };
        if answer.as_ref().is_err_and(EtcdError::is_of_endpoint) {
            self.leave(chosen);
        }
        answer
    }

    fn time_over(&self, chosen: &ChosenEndpoint, progress: &CallProgress) -> EtcdError {
        let message = format!("no answer within {} seconds", self.limit().as_secs_f32());
        chosen.suspect();
        if progress.is_sent.load(Ordering::Relaxed) {
            return EtcdError::unknown(chosen.name(), Doubt::TimedOut, &message);
        }
        EtcdError::not_sent(chosen.name(), Obstacle::TimedOut, &message)
    }

    async fn attempt<Q, A>(
        &self,
        chosen: &ChosenEndpoint,
        method: Method,
        request: &Q,
        progress: &CallProgress,
    ) -> Result<A, EtcdError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let token = self.token(chosen).await?;
        let value = token.as_ref().and_then(|token| token.value.as_ref());
        let answer = self.exchange(chosen, method, request.clone(), value, Some(progress)).await;
        if !answer.as_ref().is_err_and(|error| self.is_for_login(error)) {
            return answer;
        }
        // The request was rejected because of the token alone: it was not applied.
        progress.is_sent.store(false, Ordering::Relaxed);
        let token = self.renew_token(chosen, token.as_ref()).await?;
        self.exchange(chosen, method, request.clone(), token.value.as_ref(), Some(progress)).await
    }

    /// Returns true if a new token may help.
    pub(crate) fn is_for_login(&self, error: &EtcdError) -> bool {
        self.token_cell().is_some() && error.rejection() == Some(Rejection::NotAuthenticated)
    }

    /// The token of calls; none without a user.
    pub(crate) async fn token(&self, chosen: &ChosenEndpoint) -> Result<Option<TokenLoan>, EtcdError> {
        match self.token_cell() {
            None => Ok(None),
            Some(cell) => match cell.borrow() {
                Some(token) => Ok(Some(token)),
                None => self.renew_token(chosen, None).await.map(Some),
            },
        }
    }

    /// A token other than the rejected one.
    pub(crate) async fn renew_token(
        &self,
        chosen: &ChosenEndpoint,
        rejected: Option<&TokenLoan>,
    ) -> Result<TokenLoan, EtcdError> {
        let Some(cell) = self.token_cell() else { return Ok(TokenLoan::default()) };
        let _turn = cell.take_turn().await;
        if let Some(newer) = cell.newer_than(rejected) {
            return Ok(newer);
        }
        let login = cell.login();
        let request = AuthenticateRequest { name: login.user.clone(), password: login.password.clone() };
        let answer = self.exchange(chosen, AUTHENTICATE, request, None, None).await;
        let token: Result<AuthenticateResponse, _> = answer;
        match token {
            Ok(AuthenticateResponse { token, .. }) => match token.parse::<MetadataValue<Ascii>>() {
                Ok(mut value) => {
                    // Not displayed, and not kept by the compression of headers.
                    value.set_sensitive(true);
                    Ok(cell.store(Some(value)))
                }
                Err(_) => Err(not_logged_in(chosen.name(), "invalid token")),
            },
            Err(error) if error.rejection() == Some(Rejection::LoginDisabled) => Ok(cell.store(None)),
            Err(EtcdError::Unknown { endpoint, message, .. }) => Err(not_logged_in(endpoint, &message)),
            Err(error) => Err(error),
        }
    }

    /// Sends a request, and waits for the answer.
    async fn exchange<Q, A>(
        &self,
        chosen: &ChosenEndpoint,
        method: Method,
        request: Q,
        token: Option<&MetadataValue<Ascii>>,
        progress: Option<&CallProgress>,
    ) -> Result<A, EtcdError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let connection = chosen.enter().await?;
        let mut grpc = chosen.grpc(&connection);
        let mut request = method.request(request, token);
        request.set_timeout(self.limit().min(TOLD_LIMIT_MAX));
        if let Some(progress) = progress {
            progress.is_sent.store(true, Ordering::Relaxed);
        }
        let codec = MessageCodec::<Q, A>::new();
        let answer = grpc.unary(request, PathAndQuery::from_static(method.path), codec).await;
        answer.map(tonic::Response::into_inner).map_err(|status| error_of(&status, chosen.name()))
    }
}

/// The error of a request that was not sent, because the user could not log in.
fn not_logged_in(endpoint: String, message: &str) -> EtcdError {
    EtcdError::not_sent(endpoint, Obstacle::Unreachable, &format!("cannot log in: {message}"))
}
