//! `forewarn az env`: environment variables with which `az` and the Azure SDKs use a running server instead of the
//! cloud.
//!
//! ```text
//!   the server ──▶ ca.pem, endpoints.json, a directory for az ──▶ lines that a shell evaluates
//!                  (below the directory of the user, one for each server)
//! ```
//!
//! `az` gets a configuration directory of its own; the one for the cloud does not change.

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

use super::session::{Session, print, print_data};
use super::{GlobalOptions, OutputFormat};
use crate::client::Client;
use crate::state_directory;
use login::PrincipalSecret;
use shell::Shell;

const EXAMPLES: &str = "\
Examples:
  eval \"$(forewarn az env)\"; az login --identity          with `forewarn dev`
  forewarn az env --service-principal                     login for every version of az
  forewarn az env --shell fish | source
  forewarn az env --shell powershell | Out-String | Invoke-Expression
  eval \"$(forewarn az env --unset)\"                       use the cloud again";

/// The path of the cloud metadata that `az` reads from `ARM_CLOUD_METADATA_URL`.
const ENDPOINTS: &str = "/metadata/endpoints?api-version=2019-05-01";

/// The file in which `az` caches the cloud metadata; it must be removed, or `az` does not read them again.
const CACHED_ENDPOINTS: &str = "cloudEndpoints.json";

/// The variables that this command may set, except the proxy variables, which `--unset` must not remove.
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

/// Makes az 2.71 to 2.74 use the managed identity at `AZURE_POD_IDENTITY_AUTHORITY_HOST`; later versions do so by
/// default.
const MSAL_IDENTITY: &str = "AZURE_CORE_USE_MSAL_MANAGED_IDENTITY";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Print shell commands that make `az` and the Azure SDKs use this server
    #[command(before_help = EXAMPLES)]
    Env(AzEnvArgs),
}

#[derive(Args)]
pub(crate) struct AzEnvArgs {
    /// Shell that evaluates the commands
    #[arg(long, value_enum, default_value_t)]
    shell: Shell,
    /// Print commands that undo the settings; needs no server
    #[arg(long)]
    unset: bool,
    /// Add login commands for a service principal, which work with every version of az
    #[arg(long, conflicts_with = "unset")]
    service_principal: bool,
}

/// The variables and the login command.
#[derive(Debug, PartialEq, Eq)]
struct AzEnvironment {
    variables: Vec<(&'static str, String)>,
    login: String,
    /// Commands for az 2.53 and earlier.
    older_login: Option<String>,
}

/// The files that clients of one server need.
struct AzFiles {
    ca: Option<PathBuf>,
    endpoints: PathBuf,
    config: PathBuf,
}

pub(super) fn run(session: &Session, options: &GlobalOptions, command: &Command) -> Result<()> {
    let Command::Env(environment) = command;
    let AzEnvArgs { shell, unset, .. } = environment;
    if *unset {
        return match session.output() {
            OutputFormat::Text(_) => {
                print(&VARIABLES.iter().map(|name| shell.unset(name)).collect::<String>())
            }
            OutputFormat::Data(format) => {
                let names = VARIABLES.map(str::to_owned).to_vec();
                print_data(format, &json!({ "unset": VARIABLES }), |_| names)
            }
        };
    }
    let set = set(session, options, environment)?;
    match session.output() {
        OutputFormat::Text(_) => print(&set.lines(*shell)),
        OutputFormat::Data(format) => print_data(format, &set.json(), |_| set.names()),
    }
}

/// The URL for Azure clients: the port of the listener, on the host with which this client reaches the server.
pub(crate) fn arm_url(arm: &str, client: &Client) -> Result<String> {
    let Some((host, port)) = arm.trim_start_matches("https://").rsplit_once(':') else {
        bail!("invalid address of the Azure listener: {arm}");
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

fn set(session: &Session, options: &GlobalOptions, environment: &AzEnvArgs) -> Result<AzEnvironment> {
    let server: ServerView = session.get("/v1/server")?;
    let Some(arm) = &server.arm else {
        let hint = match server.mode.as_str() {
            "serve" => "add [arm] to the settings of the server, and restart it",
            _ => "start the server without --arm-listen off",
        };
        bail!("this server has no listener for Azure clients\n  hint: {hint}");
    };
    let url = arm_url(arm, session.client())?;
    let files = AzFiles::write(session, options, &url)?;
    let path = |path: &Path| path.display().to_string();
    let mut variables = vec![("AZURE_CONFIG_DIR", path(&files.config))];
    if let Some(ca) = &files.ca {
        variables.push(("REQUESTS_CA_BUNDLE", path(ca)));
        variables.push(("NODE_EXTRA_CA_CERTS", path(ca)));
    }
    variables.push(("ARM_CLOUD_METADATA_URL", file_url(&files.endpoints)));
    // No telemetry and no discovery: nothing of this must reach the cloud.
    for name in VARIABLES.iter().filter(|name| name.starts_with("AZURE_CORE_") && **name != MSAL_IDENTITY) {
        variables.push((name, "false".to_owned()));
    }
    if let Some(hosts) =
        no_proxy(&[Some(host_of(&url)), session.client().host()], |name| std::env::var(name).ok())
    {
        variables.extend(["NO_PROXY", "no_proxy"].map(|name| (name, hosts.clone())));
    }
    let is_dev = server.mode == "dev";
    if is_dev {
        variables.push((MSAL_IDENTITY, "true".to_owned()));
        variables.push(("AZURE_POD_IDENTITY_AUTHORITY_HOST", session.client().to_string()));
    }
    let secret = if is_dev { PrincipalSecret::Any } else { PrincipalSecret::Token };
    let principal = login::service_principal(secret, environment.shell);
    let older = || login::older_service_principal(secret, &url, environment.shell);
    let login = if is_dev && !environment.service_principal { login::IDENTITY.to_owned() } else { principal };
    Ok(AzEnvironment { variables, login, older_login: environment.service_principal.then(older) })
}

/// The value of `NO_PROXY` that includes these hosts. None if there is no proxy, or the hosts are already excluded.
fn no_proxy(hosts: &[Option<&str>], variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let either = |name: &str| {
        let value = variable(&name.to_lowercase()).or_else(|| variable(name));
        value.filter(|value| !value.is_empty())
    };
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].iter().find_map(|name| either(name))?;
    let excluded = either("NO_PROXY").unwrap_or_default();
    let mut all: Vec<_> = excluded.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    let before = all.len();
    for host in hosts.iter().flatten() {
        if !all.contains(host) && !all.contains(&"*") {
            all.push(host);
        }
    }
    (all.len() > before).then(|| all.join(","))
}

/// The host of `https://HOST:PORT`, without brackets.
fn host_of(url: &str) -> &str {
    let authority = url.trim_start_matches("https://");
    authority.rsplit_once(':').map_or(authority, |(host, _)| host).trim_matches(['[', ']'])
}

impl AzEnvironment {
    fn names(&self) -> Vec<String> {
        self.variables.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn lines(&self, shell: Shell) -> String {
        let lines = self.variables.iter().map(|(name, value)| shell.set(name, value));
        // The comment is last: a shell that gets all lines joined into one would skip everything after it.
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

impl AzFiles {
    /// Downloads the files. This uses the Azure listener as clients will, so that errors appear here.
    fn write(session: &Session, options: &GlobalOptions, url: &str) -> Result<Self> {
        let directory = state_directory::below(&format!("az/{}", folder(url)))?;
        stale::remove_stale(&directory);
        let (status, pem) = session.client().send(Method::GET, "/ca.pem", &[], Bytes::new())?;
        let (ca, client) = match status {
            200 => {
                let file = directory.join("ca.pem");
                write(&file, &pem)?;
                (Some(file), Client::new(url)?.with_ca(pem.to_vec()))
            }
            // The certificate is from another CA, which --ca may name.
            _ => {
                let file = options.ca(&options.target()?).map(|file| fs::canonicalize(&file).unwrap_or(file));
                (file.clone(), Client::new(url)?.with_ca_file(file))
            }
        };
        let endpoints = directory.join("endpoints.json");
        let found: Value = client.get(ENDPOINTS)?;
        write(&endpoints, format!("{found:#}\n").as_bytes())?;
        let config = directory.join("config");
        match fs::remove_file(config.join(CACHED_ENDPOINTS)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context("cannot remove the cached cloud metadata of az")
            }
            Ok(()) | Err(_) => Ok(Self { ca, endpoints, config }),
        }
    }
}

/// Writes a file atomically.
fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let unfinished = file.with_extension("new");
    let written = fs::write(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, file));
    written.with_context(|| format!("cannot write the file: {}", file.display()))
}

/// The name of a server's directory: host and port, in characters that every file system allows.
fn folder(url: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
    url.trim_start_matches("https://").chars().map(letter).collect()
}

fn file_url(path: &Path) -> String {
    let parts: Vec<_> = path.display().to_string().split('/').map(super::session::escaped).collect();
    format!("file://{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn azure_clients_use_the_host_of_this_client_unless_it_is_loopback() {
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
            assert_eq!(arm_url(arm, &Client::new(api).unwrap()).unwrap(), expected, "{arm} {api}");
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
        assert_eq!(list(&[("https_proxy", ""), ("NO_PROXY", "a")]), None, "no proxy");
        assert_eq!(list(&[("HTTPS_PROXY", "p")]).as_deref(), Some("::1,localhost"));
        assert_eq!(
            list(&[("all_proxy", "p"), ("no_proxy", "a, localhost")]).as_deref(),
            Some("a,localhost,::1")
        );
        assert_eq!(list(&[("http_proxy", "p"), ("NO_PROXY", "*")]), None);
    }

    #[test]
    fn the_login_command_is_the_last_line() {
        let variables = vec![("A", "b c".to_owned())];
        let mut set = AzEnvironment { variables, login: "az login".to_owned(), older_login: None };
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
