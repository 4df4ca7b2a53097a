//! The server of a command: its address, from the first of several sources that has one, and its credentials.
//!
//! ```text
//!   --api  ▶  --context  ▶  FOREWARN_API  ▶  FOREWARN_CONTEXT  ▶  the current context
//!          ▶  the socket of the service, if it exists  ▶  the default port
//! ```
//!
//! The token, the CA certificates and the cluster of a context belong to its address: they are used only if the address
//! is that of the context.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

use anyhow::{Context, Result, anyhow, ensure};
use forewarn_cli_support::visible::visible;

use crate::client::{AddressSource, DEFAULT_URL};
use crate::context_file::{self, Contexts, NO_CONTEXT, ServerContext};
use crate::exit_code::ExitError;
use crate::service::{self, Installation};

pub(crate) const API_VARIABLE: &str = "FOREWARN_API";
pub(crate) const CONTEXT_VARIABLE: &str = "FOREWARN_CONTEXT";

/// Bytes of a token file.
const TOKEN_BYTES_MAX: u64 = 4096;

/// Mode bits that give other users access to a file.
const OTHERS: u32 = 0o077;

/// A server: its address, the source of the address, and the context if that is the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerTarget {
    pub(crate) url: String,
    pub(crate) origin: AddressOrigin,
    pub(crate) context: Option<ServerContext>,
}

/// The source of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressOrigin {
    /// `--api`
    Option,
    /// `FOREWARN_API`
    Variable,
    Context(String),
    /// The socket of the service.
    Socket,
    Default,
}

/// The places that a lookup examines.
pub(crate) struct LookupPlaces<'a> {
    /// `--api`
    pub(crate) api: Option<&'a str>,
    /// `--context`
    pub(crate) context: Option<&'a str>,
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The file of contexts. None without a home directory.
    pub(crate) contexts: Option<&'a Path>,
    pub(crate) socket: &'a Path,
}

/// The value of an environment variable. An empty one counts as unset.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
}

/// The address that commands use in a shell without variables. Empty if they find none.
pub(crate) fn usual_url() -> String {
    let contexts = context_file::path();
    let places = LookupPlaces {
        api: None,
        context: None,
        variable: &|_| None,
        contexts: contexts.as_deref(),
        socket: Path::new(service::SOCKET),
    };
    places.find().map(|target| target.url).unwrap_or_default()
}

impl LookupPlaces<'_> {
    /// The server of a command.
    pub(crate) fn find(&self) -> Result<ServerTarget> {
        let other = |url: &str, origin| ServerTarget { url: url.to_owned(), origin, context: None };
        match (self.api, self.context) {
            (Some(_), Some(_)) => {
                return Err(ExitError::usage(anyhow!("--api and --context exclude each other")).into());
            }
            (Some(url), None) => return Ok(other(url, AddressOrigin::Option)),
            (None, Some(name)) if name != NO_CONTEXT => return self.of_context(name).context("--context"),
            (None, Some(_) | None) => {}
        }
        if let Some(url) = (self.variable)(API_VARIABLE) {
            return Ok(other(&url, AddressOrigin::Variable));
        }
        if let Some(target) = self.selected()? {
            return Ok(target);
        }
        if service::exists(self.socket) {
            return Ok(other(&format!("unix:{}", self.socket.display()), AddressOrigin::Socket));
        }
        Ok(other(DEFAULT_URL, AddressOrigin::Default))
    }

    /// The context of the environment, or the current one.
    fn selected(&self) -> Result<Option<ServerTarget>> {
        let named = self.context.map(str::to_owned).or_else(|| (self.variable)(CONTEXT_VARIABLE));
        match named.as_deref() {
            Some(NO_CONTEXT) => Ok(None),
            Some(name) => self.of_context(name).context(CONTEXT_VARIABLE).map(Some),
            None => {
                let Some(file) = self.contexts else { return Ok(None) };
                let Some(name) = Contexts::read(file)?.current else { return Ok(None) };
                let target = self.of_context(&name).with_context(|| format!("current in {}", file.display()));
                target.map(Some)
            }
        }
    }

    fn of_context(&self, name: &str) -> Result<ServerTarget> {
        let contexts = self.contexts.map_or_else(|| Ok(Contexts::default()), Contexts::read)?;
        let context = contexts.find(name)?.clone();
        let origin = AddressOrigin::Context(name.to_owned());
        Ok(ServerTarget { url: context.api.clone(), origin, context: Some(context) })
    }
}

impl ServerTarget {
    /// The source for messages, and a hint for a server that cannot be reached.
    pub(crate) fn source(&self) -> AddressSource {
        AddressSource { name: self.origin.name(), hint: self.origin.hint(service::installation()) }
    }

    /// The name of the context that the address is from.
    pub(crate) fn context_name(&self) -> Option<&str> {
        match &self.origin {
            AddressOrigin::Context(name) => Some(name),
            AddressOrigin::Option
            | AddressOrigin::Variable
            | AddressOrigin::Socket
            | AddressOrigin::Default => None,
        }
    }

    /// The token of the context.
    pub(crate) fn token(&self) -> Result<Option<String>> {
        let Some(file) = self.context.as_ref().and_then(|context| context.token_file.as_deref()) else {
            return Ok(None);
        };
        let name = self.context_name().unwrap_or_default();
        read_token(file)
            .map(Some)
            .with_context(|| format!("cannot read the token file of context {name}: {}", file.display()))
    }

    /// The CA certificates of the context.
    pub(crate) fn ca(&self) -> Option<PathBuf> {
        self.context.as_ref()?.ca.clone()
    }

    /// The cluster of the context.
    pub(crate) fn cluster(&self) -> Option<String> {
        self.context.as_ref()?.cluster.clone()
    }
}

impl AddressOrigin {
    /// The source for messages. None for the command line, which the user sees.
    pub(crate) fn name(&self) -> Option<String> {
        Some(match self {
            Self::Option => return None,
            Self::Variable => format!("from {API_VARIABLE}"),
            Self::Context(name) => format!("from context {name}"),
            Self::Socket => "the socket of the service".to_owned(),
            Self::Default => "the default address".to_owned(),
        })
    }

    /// A hint for a server that cannot be reached. Where the service is installed, it never proposes `forewarn dev`.
    fn hint(&self, installation: Installation) -> String {
        match (self, installation) {
            (Self::Context(name), _) => {
                format!("check that the server is running; `forewarn context show {name}` shows its settings")
            }
            (Self::Socket, _) => "`systemctl status forewarn` shows the state of the service".to_owned(),
            (Self::Default, Installation::Installed) => {
                "start the service with `systemctl start forewarn`, or use --api URL".to_owned()
            }
            (Self::Option | Self::Variable | Self::Default, Installation::Absent) => {
                AddressSource::default().hint
            }
            (Self::Option | Self::Variable, Installation::Installed) => {
                "check the address, and that the server is running".to_owned()
            }
        }
    }
}

/// Reads a token. Warns once if other users can read it, too.
fn read_token(file: &Path) -> Result<String> {
    static WARNED: Once = Once::new();
    let about = fs::metadata(file)?;
    ensure!(about.is_file(), "not a file");
    let mut text = String::new();
    File::open(file)?.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text)?;
    ensure!(text.len() as u64 <= TOKEN_BYTES_MAX, "more than {TOKEN_BYTES_MAX} bytes");
    let token = text.trim();
    ensure!(!token.is_empty(), "the file is empty");
    if about.permissions().mode() & OTHERS != 0 {
        let path = file.display();
        let warning =
            format!("warning: other users can read the token file: {path}\n  hint: chmod 600 {path}");
        WARNED.call_once(|| eprintln!("forewarn: {}", visible(&warning)));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXTS: &str = "current = 'prod'\n[context.prod]\napi = 'https://p:1'\nca = '/ca.pem'\ncluster = 'west'\n\
                            [context.lab]\napi = 'http://l:1'\n";

    /// A lookup on a computer with these files: a directory, options, variables.
    fn find(
        directory: &Path,
        (api, context): (Option<&str>, Option<&str>),
        variables: &[(&str, &str)],
    ) -> Result<ServerTarget> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned()).filter(|value| !value.is_empty())
        };
        let (contexts, socket) = (directory.join("contexts.toml"), directory.join("api.sock"));
        let places =
            LookupPlaces { api, context, variable: &variable, contexts: Some(&contexts), socket: &socket };
        places.find()
    }

    fn url(target: Result<ServerTarget>) -> String {
        target.unwrap().url
    }

    #[test]
    fn the_first_source_with_an_address_counts() {
        let place = tempfile::tempdir().unwrap();
        let at = |options, variables: &[(&str, &str)]| find(place.path(), options, variables);
        assert_eq!(url(at((None, None), &[])), DEFAULT_URL);
        fs::write(place.path().join("api.sock"), "").unwrap();
        let socket = format!("unix:{}", place.path().join("api.sock").display());
        assert_eq!(url(at((None, None), &[])), socket);
        assert_eq!(at((None, None), &[]).unwrap().origin, AddressOrigin::Socket);
        fs::write(place.path().join("contexts.toml"), CONTEXTS).unwrap();
        let (api, context) = ((API_VARIABLE, "http://e:1"), (CONTEXT_VARIABLE, "lab"));
        assert_eq!(url(at((None, None), &[])), "https://p:1");
        assert_eq!(url(at((None, None), &[context])), "http://l:1");
        assert_eq!(url(at((None, None), &[context, api])), "http://e:1");
        assert_eq!(url(at((None, Some("prod")), &[context, api])), "https://p:1");
        assert_eq!(url(at((Some("http://o:1"), None), &[context, api])), "http://o:1");
        let both = at((Some("http://o:1"), Some("prod")), &[]).unwrap_err();
        assert_eq!(crate::exit_code::of(&both), std::process::ExitCode::from(2));
        // An empty variable counts as unset, and `none` stands for no context.
        assert_eq!(url(at((None, None), &[(API_VARIABLE, ""), (CONTEXT_VARIABLE, "")])), "https://p:1");
        assert_eq!(url(at((None, None), &[(CONTEXT_VARIABLE, "none")])), socket);
        assert_eq!(url(at((None, Some("none")), &[context])), socket);
        assert_eq!(url(at((None, Some("none")), &[context, api])), "http://e:1");
    }

    #[test]
    fn credentials_of_a_context_belong_to_its_address() {
        let place = tempfile::tempdir().unwrap();
        let token = place.path().join("token");
        let text = format!("{CONTEXTS}token_file = '{}'\n", token.display());
        fs::write(place.path().join("contexts.toml"), text.replace("'prod'", "'lab'")).unwrap();
        fs::write(&token, "fwt_0_00\n").unwrap();
        let lab = find(place.path(), (None, None), &[]).unwrap();
        assert_eq!((lab.token().unwrap().as_deref(), lab.ca()), (Some("fwt_0_00"), None));
        let prod = find(place.path(), (None, Some("prod")), &[]).unwrap();
        assert_eq!(
            (prod.token().unwrap(), prod.ca(), prod.cluster()),
            (None, Some("/ca.pem".into()), Some("west".into()))
        );
        // The same address from another source is not that of the context.
        for options in [(Some("http://l:1"), None), (None, None)] {
            let other = find(place.path(), options, &[(API_VARIABLE, "http://l:1")]).unwrap();
            assert_eq!((other.token().unwrap(), other.ca(), other.cluster()), (None, None, None));
        }
    }

    #[test]
    fn a_missing_context_or_a_damaged_file_is_an_error_unless_an_address_is_given() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("contexts.toml");
        let problem = |options, variables: &[(&str, &str)]| {
            format!("{:#}", find(place.path(), options, variables).unwrap_err())
        };
        assert!(
            problem((None, Some("prod")), &[])
                .starts_with("--context: no such context: prod\n  hint: there are none")
        );
        let of_variable = problem((None, None), &[(CONTEXT_VARIABLE, "prod")]);
        assert!(of_variable.starts_with("FOREWARN_CONTEXT: no such context: prod"), "{of_variable}");
        fs::write(&file, "current = 'gone'").unwrap();
        let current = problem((None, None), &[]);
        assert!(
            current.starts_with(&format!("current in {}: no such context: gone", file.display())),
            "{current}"
        );
        fs::write(&file, "current").unwrap();
        assert!(
            problem((None, None), &[]).starts_with(&format!("invalid file of contexts: {}", file.display()))
        );
        assert_eq!(url(find(place.path(), (Some("http://o:1"), None), &[])), "http://o:1");
        assert_eq!(url(find(place.path(), (None, None), &[(API_VARIABLE, "http://e:1")])), "http://e:1");
    }

    #[test]
    fn a_token_file_has_one_token() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("token");
        assert!(
            read_token(&file).is_err() && read_token(place.path()).unwrap_err().to_string() == "not a file"
        );
        for wrong in ["", " \n", &"x".repeat(5000)] {
            fs::write(&file, wrong).unwrap();
            assert!(read_token(&file).is_err(), "{} bytes", wrong.len());
        }
        fs::write(&file, "  fwt_1\n\n").unwrap();
        assert_eq!(read_token(&file).unwrap(), "fwt_1");
    }

    #[test]
    fn no_hint_proposes_a_server_for_development_where_the_service_is_installed() {
        let context = AddressOrigin::Context("prod".to_owned());
        let all = [
            AddressOrigin::Option,
            AddressOrigin::Variable,
            context,
            AddressOrigin::Socket,
            AddressOrigin::Default,
        ];
        for origin in all {
            assert!(!origin.hint(Installation::Installed).contains("dev"), "{origin:?}");
        }
        assert!(AddressOrigin::Default.hint(Installation::Absent).contains("`forewarn dev`"));
    }
}
