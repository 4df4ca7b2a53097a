//! Settings of a client, checked when it is made.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use forewarn_url::Url;

use crate::tls::{ClientCertificate, TlsError};

/// Maximum number of endpoints.
pub const ENDPOINTS_MAX: usize = 16;

/// Settings of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdSettings {
    /// Client URLs of members, 1 to [`ENDPOINTS_MAX`]. Calls begin with the first.
    pub endpoints: Vec<Url>,
    /// PEM file with the trusted authorities; those of the system without it. Read for every connection.
    pub authorities: Option<PathBuf>,
    /// Certificate of the client, if members demand one. Read for every connection.
    pub certificate: Option<ClientCertificate>,
    /// User and password, if members demand them.
    pub login: Option<EtcdLogin>,
    /// Time and size limits.
    pub limits: EtcdLimits,
}

/// User of etcd with a password, which is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct EtcdLogin {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// Time and size limits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtcdLimits {
    /// Time limit of a call, connecting and logging in included.
    pub call: Duration,
    /// Time limit of connecting, the TLS handshake included. It goes on when the call that began it has ended.
    pub connect: Duration,
    /// Interval at which a connection with unanswered calls or watches is examined.
    pub examination_interval: Duration,
    /// Time in which a member has to answer an examination; then its connection is closed.
    pub examination: Duration,
    /// Maximum bytes of a request.
    pub request_bytes: usize,
    /// Maximum bytes of an answer, and of the events of one revision.
    pub answer_bytes: usize,
}

/// Reason why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// No endpoint, or too many.
    #[error("etcd needs 1 to {ENDPOINTS_MAX} endpoints, not {0}")]
    Endpoints(usize),
    /// The URL of an endpoint has a path or a query.
    #[error(
        "endpoint of etcd with a path: {0}\n  hint: only scheme, host and port, as in https://etcd-1:2379"
    )]
    Path(String),
    /// An endpoint appears twice.
    #[error("endpoint of etcd given twice: {0}")]
    Repeated(String),
    /// Certificates cannot be read or used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl EtcdSettings {
    /// Settings with these endpoints and the default limits, without a client certificate and without a user.
    #[must_use]
    pub fn new(endpoints: Vec<Url>) -> Self {
        let limits = EtcdLimits::default();
        Self { endpoints, authorities: None, certificate: None, login: None, limits }
    }

    pub(crate) fn check(&self) -> Result<(), SettingsError> {
        if !(1..=ENDPOINTS_MAX).contains(&self.endpoints.len()) {
            return Err(SettingsError::Endpoints(self.endpoints.len()));
        }
        if let Some(url) = self.endpoints.iter().find(|url| url.target() != "/") {
            return Err(SettingsError::Path(url.redacted_to_host()));
        }
        let place = |url: &Url| (url.host().to_ascii_lowercase(), url.port());
        let repeated = (1..self.endpoints.len())
            .find(|at| self.endpoints[..*at].iter().any(|url| place(url) == place(&self.endpoints[*at])));
        match repeated {
            Some(at) => Err(SettingsError::Repeated(self.endpoints[at].redacted_to_host())),
            None => Ok(()),
        }
    }
}

impl EtcdLogin {
    /// A user with a password.
    #[must_use]
    pub fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: password.into() }
    }
}

impl fmt::Debug for EtcdLogin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EtcdLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Default for EtcdLimits {
    /// 300 ms for a call, 1 s to connect, a lost member noticed after 1.2 s, requests of 2 MiB, answers of 16 MiB.
    fn default() -> Self {
        Self {
            call: Duration::from_millis(300),
            connect: Duration::from_secs(1),
            examination_interval: Duration::from_millis(400),
            examination: Duration::from_millis(800),
            request_bytes: 2 * 1024 * 1024,
            answer_bytes: 16 * 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(endpoints: &[&str]) -> Result<(), String> {
        let endpoints = endpoints.iter().map(|url| Url::parse(url).unwrap()).collect();
        EtcdSettings::new(endpoints).check().map_err(|error| error.to_string())
    }

    #[test]
    fn endpoints_are_1_to_16_different_hosts_without_path() {
        assert_eq!(checked(&["http://a:2379", "https://b:2379/"]), Ok(()));
        assert_eq!(checked(&[]), Err("etcd needs 1 to 16 endpoints, not 0".to_owned()));
        let many: Vec<_> = (0..17).map(|number| format!("http://h{number}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert_eq!(checked(&many), Err("etcd needs 1 to 16 endpoints, not 17".to_owned()));
        assert_eq!(checked(&many[..16]), Ok(()));
        let twice = checked(&["http://a:2379", "http://A:2379/"]);
        assert_eq!(twice, Err("endpoint of etcd given twice: http://A:2379/".to_owned()));
        assert!(
            checked(&["http://a/s3cret"])
                .unwrap_err()
                .starts_with("endpoint of etcd with a path: http://a/…")
        );
    }

    #[test]
    fn a_password_is_not_displayed() {
        let mut settings = EtcdSettings::new(vec![Url::parse("http://a").unwrap()]);
        settings.login = Some(EtcdLogin::new("root", "s3cret"));
        let text = format!("{settings:?}");
        assert!(text.contains("root") && !text.contains("s3cret"), "{text}");
    }
}
