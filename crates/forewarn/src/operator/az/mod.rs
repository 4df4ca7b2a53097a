//! `forewarn az env`: what makes `az`, and programs with Azure's SDKs, ask a running server instead of the cloud.
//!
//! ```text
//!   the server ──▶ ca.pem, endpoints.json, a directory for az ──▶ lines that a shell evaluates
//!                  (below the directory of the user, one for each server)
//! ```
//!
//! What `az` remembers about the cloud stays where it is: it gets a directory of its own.

mod login;
mod shell;
mod stale;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use forewarn_control::ServerView;
use forewarn_http_client::{Bytes, Method};
use serde_json::{Value, json};

use super::session::{Session, print};
use super::{Options, Output};
use crate::client::Client;
use crate::state;
use login::Secret;
use shell::Shell;

const EXAMPLES: &str = "\
Examples:
  eval \"$(forewarn az env)\"; az login --identity          with a server for one person
  forewarn az env --service-principal                     logs in with every version of az
  forewarn az env --shell fish | source
  forewarn az env --shell powershell | Out-String | Invoke-Expression
  eval \"$(forewarn az env --unset)\"                       az asks the cloud again";

/// What a server says where things are, in the shape that `az` reads from `ARM_CLOUD_METADATA_URL`.
const ENDPOINTS: &str = "/metadata/endpoints?api-version=2019-05-01";

/// What `az` remembers of that; it would not look again.
const REMEMBERED: &str = "cloudEndpoints.json";

/// The variables that are ever set, but for those about proxies, which are somebody else's.
const VARIABLES: [&str; 10] = [
    "AZURE_CONFIG_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "ARM_CLOUD_METADATA_URL",
    "AZURE_CORE_INSTANCE_DISCOVERY",
    "AZURE_CORE_COLLECT_TELEMETRY",
    "AZURE_CORE_LOGIN_EXPERIENCE_V2",
    "AZURE_CORE_SURVEY_MESSAGE",
    MSAL_IDENTITY,
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
];

/// Makes az 2.71 to 2.74 ask the managed identity that `AZURE_POD_IDENTITY_AUTHORITY_HOST` names; later versions do so anyway.
const MSAL_IDENTITY: &str = "AZURE_CORE_USE_MSAL_MANAGED_IDENTITY";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print lines for a shell that point `az` and the SDKs at this server; with --unset, that point them away from it.
    #[command(after_help = EXAMPLES)]
    Env(Environment),
}

#[derive(Args)]
pub(crate) struct Environment {
    /// The shell.
    #[arg(long, value_enum, default_value_t)]
    shell: Shell,
    /// Print lines that take everything back; no server is asked.
    #[arg(long)]
    unset: bool,
    /// End with commands that log in as a service principal, which every version of az can do.
    #[arg(long, conflicts_with = "unset")]
    service_principal: bool,
    /// The same as --output json.
    #[arg(long)]
    json: bool,
}

/// What is set, and how to log in then.
#[derive(Debug, PartialEq, Eq)]
struct Set {
    variables: Vec<(&'static str, String)>,
    login: String,
    /// Commands for az 2.53 and earlier.
    older_login: Option<String>,
}

/// The files of one server.
struct Files {
    authority: Option<PathBuf>,
    endpoints: PathBuf,
    config: PathBuf,
}

pub(super) fn run(session: &Session, options: &Options, command: &Command) -> Result<()> {
    let Command::Env(environment) = command;
    let Environment { shell, unset, json, .. } = environment;
    if *unset {
        return print(&VARIABLES.iter().map(|name| shell.unset(name)).collect::<String>());
    }
    let set = set(session, options, environment)?;
    match session.output() {
        Output::Table | Output::Wide if !json => print(&set.lines(*shell)),
        Output::Table | Output::Wide | Output::Json => print(&format!("{:#}\n", set.json())),
    }
}

/// Where the clients of Azure find a server, by what it says and by the host by which it is asked.
pub(crate) fn place(arm: &str, client: &Client) -> Result<String> {
    let Some((host, port)) = arm.trim_start_matches("https://").rsplit_once(':') else {
        bail!("not an address: {arm}");
    };
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let host = match (address, client.host()) {
        (Some(address), _) if address.is_loopback() => host,
        (_, Some(asked)) => asked,
        (Some(address), None) if address.is_unspecified() => "localhost",
        (_, None) => host,
    };
    Ok(format!("https://{host}:{port}"))
}

fn set(session: &Session, options: &Options, environment: &Environment) -> Result<Set> {
    let server: ServerView = session.get("/v1/server")?;
    let Some(arm) = &server.arm else {
        bail!(
            "this server has no listener for clients of Azure\n  \
             hint: `forewarn dev` has one unless it is told --arm-listen off; `forewarn serve` has one with [arm]"
        );
    };
    let place = place(arm, session.client())?;
    let files = Files::write(session, options, &place)?;
    let path = |path: &Path| path.display().to_string();
    let mut variables = vec![("AZURE_CONFIG_DIR", path(&files.config))];
    if let Some(authority) = &files.authority {
        variables.push(("REQUESTS_CA_BUNDLE", path(authority)));
        variables.push(("NODE_EXTRA_CA_CERTS", path(authority)));
    }
    variables.push(("ARM_CLOUD_METADATA_URL", file_url(&files.endpoints)));
    // Nothing that is asked here is any business of the cloud.
    for name in VARIABLES.iter().filter(|name| name.starts_with("AZURE_CORE_") && **name != MSAL_IDENTITY) {
        variables.push((name, "false".to_owned()));
    }
    if let Some(hosts) =
        no_proxy(&[Some(host_of(&place)), session.client().host()], |name| std::env::var(name).ok())
    {
        variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, hosts.clone())));
    }
    let is_dev = server.mode == "dev";
    if is_dev {
        variables.push((MSAL_IDENTITY, "true".to_owned()));
        variables.push(("AZURE_POD_IDENTITY_AUTHORITY_HOST", session.client().to_string()));
    }
    let secret = if is_dev { Secret::Any } else { Secret::Token };
    let principal = login::service_principal(secret, environment.shell);
    let older = || login::older_service_principal(secret, &place, environment.shell);
    let login = if is_dev && !environment.service_principal { login::IDENTITY.to_owned() } else { principal };
    Ok(Set { variables, login, older_login: environment.service_principal.then(older) })
}

/// Who is asked without a proxy, where there is one that would be asked for these hosts otherwise.
fn no_proxy(hosts: &[Option<&str>], variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let either = |name: &str| {
        let said = variable(&name.to_lowercase()).or_else(|| variable(name));
        said.filter(|value| !value.is_empty())
    };
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].iter().find_map(|name| either(name))?;
    let said = either("NO_PROXY").unwrap_or_default();
    let mut all: Vec<_> = said.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    let before = all.len();
    for host in hosts.iter().flatten() {
        if !all.contains(host) && !all.contains(&"*") {
            all.push(host);
        }
    }
    (all.len() > before).then(|| all.join(","))
}

/// The host of `https://HOST:PORT`, as lists of hosts have it.
fn host_of(place: &str) -> &str {
    let authority = place.trim_start_matches("https://");
    authority.rsplit_once(':').map_or(authority, |(host, _)| host).trim_matches(['[', ']'])
}

impl Set {
    fn lines(&self, shell: Shell) -> String {
        let lines = self.variables.iter().map(|(name, value)| shell.set(name, value));
        // A comment is the last line: a shell that is given all in one line reads the rest before it.
        let last = match &self.older_login {
            None => format!("# then: {}\n", self.login),
            Some(older) => {
                format!("# then, az 2.54 and later: {}\n# then, az 2.53 and earlier: {older}\n", self.login)
            }
        };
        lines.chain([last]).collect()
    }

    fn json(&self) -> Value {
        let variables: serde_json::Map<_, _> =
            self.variables.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let mut set = json!({ "variables": variables, "login": self.login });
        if let Some(older) = &self.older_login {
            set["login_before_2_54"] = json!(older);
        }
        set
    }
}

impl Files {
    /// Asks the server for what clients need, and writes it down. Whoever gets here has spoken to the server as they will.
    fn write(session: &Session, options: &Options, place: &str) -> Result<Self> {
        let directory = state::below(&format!("az/{}", folder(place)))?;
        stale::remove_stale(&directory);
        let (status, pem) = session.client().send(Method::GET, "/ca.pem", &[], Bytes::new())?;
        let (authority, client) = match status {
            200 => {
                let file = directory.join("ca.pem");
                write(&file, &pem)?;
                (Some(file), Client::new(place)?.with_authority(pem.to_vec()))
            }
            // Somebody else's certificate: whoever knows their authority says so.
            _ => {
                let file = options.ca().map(|file| fs::canonicalize(&file).unwrap_or(file));
                (file.clone(), Client::new(place)?.with_authorities(file))
            }
        };
        let endpoints = directory.join("endpoints.json");
        let found: Value = client.get(ENDPOINTS)?;
        write(&endpoints, format!("{found:#}\n").as_bytes())?;
        let config = directory.join("config");
        match fs::remove_file(config.join(REMEMBERED)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context("what az remembers")
            }
            Ok(()) | Err(_) => Ok(Self { authority, endpoints, config }),
        }
    }
}

/// The file appears whole, or not at all.
fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = file.with_extension("new");
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, file));
    written.with_context(|| format!("cannot write: {}", file.display()))
}

/// What the directory of a server is called: its host and port, in letters that every file system has.
fn folder(place: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    place.trim_start_matches("https://").chars().map(letter).collect()
}

fn file_url(path: &Path) -> String {
    let parts: Vec<_> = path.display().to_string().split('/').map(super::session::escaped).collect();
    format!("file://{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_call_the_server_as_it_is_called_here_unless_that_leads_elsewhere() {
        for (arm, api, expected) in [
            ("https://127.0.0.1:1340", "http://127.0.0.1:1339", "https://127.0.0.1:1340"),
            ("https://127.0.0.1:1340", "http://10.0.0.1:1339", "https://127.0.0.1:1340"),
            ("https://0.0.0.0:1340", "http://forewarn.internal", "https://forewarn.internal:1340"),
            ("https://0.0.0.0:1340", "unix:/run/s", "https://localhost:1340"),
            ("https://10.0.0.1:1340", "unix:/run/s", "https://10.0.0.1:1340"),
            ("https://10.0.0.1:1340", "https://forewarn.internal:1339", "https://forewarn.internal:1340"),
            ("https://[::1]:1340", "unix:/run/s", "https://[::1]:1340"),
            ("https://[::]:1340", "http://[fd00::1]:1339", "https://[fd00::1]:1340"),
        ] {
            assert_eq!(place(arm, &Client::new(api).unwrap()).unwrap(), expected, "{arm} {api}");
        }
    }

    #[test]
    fn a_server_has_a_directory_of_its_own() {
        assert_eq!(folder("https://127.0.0.1:1340"), "127.0.0.1-1340");
        assert_eq!(folder("https://[::1]:1340"), "---1--1340");
        assert_eq!(file_url(Path::new("/a b/ä")), "file:///a%20b/%C3%A4");
    }

    #[test]
    fn no_proxy_is_asked_for_the_server() {
        let list = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            no_proxy(&[Some(host_of("https://[::1]:1340")), Some("localhost")], variable)
        };
        assert_eq!(list(&[]), None);
        assert_eq!(list(&[("https_proxy", ""), ("NO_PROXY", "a")]), None, "there is no proxy");
        assert_eq!(list(&[("HTTPS_PROXY", "p")]).as_deref(), Some("::1,localhost"));
        assert_eq!(
            list(&[("all_proxy", "p"), ("no_proxy", "a, localhost")]).as_deref(),
            Some("a,localhost,::1")
        );
        assert_eq!(list(&[("http_proxy", "p"), ("NO_PROXY", "*")]), None);
    }

    #[test]
    fn how_to_log_in_is_the_last_thing_that_is_said() {
        let variables = vec![("A", "b c".to_owned())];
        let mut set = Set { variables, login: "az login".to_owned(), older_login: None };
        assert_eq!(set.lines(Shell::Sh), "export A='b c';\n# then: az login\n");
        assert_eq!(set.json(), json!({ "variables": { "A": "b c" }, "login": "az login" }));
        set.older_login = Some("az cloud".to_owned());
        assert_eq!(
            set.lines(Shell::Fish),
            "set -gx A 'b c';\n# then, az 2.54 and later: az login\n# then, az 2.53 and earlier: az cloud\n"
        );
        assert_eq!(set.json()["login_before_2_54"], "az cloud");
    }
}
