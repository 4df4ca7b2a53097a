//! `forewarn context`: servers with a name, in the configuration directory of the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::{Args, Subcommand};
use forewarn_cli_support::table::{Table, Width};
use forewarn_cli_support::visible::visible;
use serde_json::{Value, json};

use crate::client::Client;
use crate::context_file::{self, Contexts, NO_CONTEXT, ServerContext, check_name};
use crate::exit_code::ExitError;
use crate::findings::print_report;
use crate::operator::GlobalOptions;

const SET_EXAMPLES: &str = "\
Examples:
  forewarn context set prod --api https://forewarn.internal:1339 --token-file ~/.config/forewarn/prod.token
  forewarn context set prod --ca ca.pem --cluster west      changes only these
  forewarn context set prod --ca \"\"                         the system store again";

const USE_EXAMPLES: &str = "\
Examples:
  forewarn context use prod
  forewarn context use none         no context: the socket of the service, or the default port
  forewarn --context prod vm ls     for one command; FOREWARN_CONTEXT=prod for a shell";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Create a context, or change one: address (--api), CA certificates (--ca), token file, cluster (--cluster)
    #[command(before_help = SET_EXAMPLES)]
    Set(ContextArgs),
    /// Select the context of all further commands
    #[command(before_help = USE_EXAMPLES)]
    Use {
        /// Context, or `none`
        name: String,
    },
    /// List contexts
    Ls,
    /// Show a context, or the server that commands use and the source of its address
    Show {
        /// Context [default: the server that commands use]
        name: Option<String>,
    },
    /// Delete contexts; their token files and CA certificates stay
    #[command(before_help = "Example:\n  forewarn context delete lab")]
    Delete {
        /// Contexts
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

#[derive(Args)]
pub(crate) struct ContextArgs {
    /// Name of the context
    name: String,
    /// File with the API token, read by each command [default: none]
    #[arg(long, value_name = "FILE")]
    token_file: Option<OsString>,
}

pub(crate) fn run(command: &Command, options: &GlobalOptions) -> Result<()> {
    let Some(file) = context_file::path() else {
        bail!("no home directory for contexts\n  hint: set XDG_CONFIG_HOME to a directory");
    };
    match command {
        Command::Set(arguments) => set(&file, arguments, options),
        Command::Use { name } => select(&file, name, options),
        Command::Ls => list(&Contexts::read(&file)?, options),
        Command::Show { name: Some(name) } => {
            let contexts = Contexts::read(&file)?;
            let context = contexts.find(name)?;
            print_report(options, &view(&contexts, name, context), |_| facts(name, context).to_string())
        }
        Command::Show { name: None } => show_server(options),
        Command::Delete { names } => delete(&file, names, options),
    }
}

fn set(file: &Path, arguments: &ContextArgs, options: &GlobalOptions) -> Result<()> {
    let ContextArgs { name, token_file } = arguments;
    check_name(name).map_err(ExitError::usage)?;
    if options.token_option().is_some() {
        return Err(ExitError::usage(anyhow!(
            "a context has no token, but a token file: --token\n  hint: write the token to a file and use --token-file FILE"
        ))
        .into());
    }
    let api = options.api_option().map(stored_address).transpose()?;
    let ca = options.ca_option().map(Path::new).map(stored_path).transpose()?;
    let token_file = token_file.as_deref().map(Path::new).map(stored_path).transpose()?;
    let cluster = options.cluster_option();
    let changed = Contexts::change(file, |contexts| {
        let context = match (contexts.all.get_mut(name), &api) {
            (Some(context), _) => context,
            (None, Some(api)) => {
                let new = ServerContext { api: api.clone(), ca: None, token_file: None, cluster: None };
                contexts.all.entry(name.clone()).or_insert(new)
            }
            (None, None) => {
                let wrong = anyhow!("a new context needs an address: {name}\n  hint: --api URL");
                return Err(ExitError::usage(wrong).into());
            }
        };
        if let Some(api) = api {
            context.api = api;
        }
        replace(&mut context.ca, ca);
        replace(&mut context.token_file, token_file);
        replace(
            &mut context.cluster,
            cluster.map(|text| Some(text.to_owned()).filter(|text| !text.is_empty())),
        );
        Ok(contexts.clone())
    })?;
    let context = changed.find(name)?;
    for path in [&context.ca, &context.token_file].into_iter().flatten().filter(|path| !path.exists()) {
        eprintln!("forewarn: {}", visible(&format!("warning: no such file yet: {}", path.display())));
    }
    let hint = if changed.current.as_deref() == Some(name) {
        String::new()
    } else {
        format!("`forewarn context use {name}` selects it for all further commands.\n")
    };
    let text = format!("Context {name}: {}\n{hint}", context.api);
    print_report(options, &view(&changed, name, context), |_| text)
}

/// Replaces a field that was given.
fn replace<T>(field: &mut Option<T>, given: Option<Option<T>>) {
    if let Some(value) = given {
        *field = value;
    }
}

fn select(file: &Path, name: &str, options: &GlobalOptions) -> Result<()> {
    let selected = (name != NO_CONTEXT).then_some(name);
    Contexts::change(file, |contexts| {
        if let Some(name) = selected {
            contexts.find(name)?;
        }
        contexts.current = selected.map(str::to_owned);
        Ok(())
    })?;
    let text = match selected {
        Some(name) => format!("Commands use context {name}.\n"),
        None => "Commands use no context.\n".to_owned(),
    };
    print_report(options, &json!({ "current": selected }), |_| text)
}

fn list(contexts: &Contexts, options: &GlobalOptions) -> Result<()> {
    let items: Vec<_> = contexts.all.iter().map(|(name, context)| view(contexts, name, context)).collect();
    print_report(options, &json!({ "items": items }), |width| table(contexts, width))
}

/// The contexts as a table.
fn table(contexts: &Contexts, width: Width) -> String {
    let mut table = Table::new(width, &["current", "name", "api", "cluster", "token file", "ca"])
        .dropping(&["ca", "token file", "cluster"]);
    for (name, context) in &contexts.all {
        let mark = if contexts.current.as_ref() == Some(name) { "*" } else { "" };
        table.row([
            mark.to_owned(),
            name.clone(),
            context.api.clone(),
            context.cluster.clone().unwrap_or_default(),
            shown(context.token_file.as_deref()),
            shown(context.ca.as_deref()),
        ]);
    }
    table.to_string()
}

/// Shows the server that a command with these options uses.
fn show_server(options: &GlobalOptions) -> Result<()> {
    let target = options.target()?;
    let origin = target.origin.name().unwrap_or_else(|| "from --api".to_owned());
    let token =
        match (options.token(), target.context.as_ref().and_then(|context| context.token_file.as_ref())) {
            (Some(_), _) => "from --token or FOREWARN_TOKEN".to_owned(),
            (None, Some(file)) => file.display().to_string(),
            (None, None) => String::new(),
        };
    let ca = options.ca(&target);
    let cluster = options.cluster()?;
    let json = json!({
        "context": target.context_name(),
        "api": target.url,
        "source": origin,
        "token_file": target.context.as_ref().and_then(|context| context.token_file.as_ref()),
        "ca": ca,
        "cluster": cluster,
    });
    let facts = [
        ("context", target.context_name().unwrap_or_default().to_owned()),
        ("api", format!("{} ({origin})", target.url)),
        ("token", token),
        ("ca", shown(ca.as_deref())),
        ("cluster", cluster.unwrap_or_default()),
    ];
    print_report(options, &json, |_| Table::facts(facts).to_string())
}

fn delete(file: &Path, names: &[String], options: &GlobalOptions) -> Result<()> {
    Contexts::change(file, |contexts| {
        for name in names {
            contexts.find(name)?;
        }
        contexts.all.retain(|name, _| !names.contains(name));
        contexts.current.take_if(|current| names.contains(current));
        Ok(())
    })?;
    let text = names.iter().map(|name| format!("Context {name} deleted.\n")).collect::<String>();
    print_report(options, &json!({ "deleted": names }), |_| text)
}

/// A context as JSON.
fn view(contexts: &Contexts, name: &str, context: &ServerContext) -> Value {
    let ServerContext { api, ca, token_file, cluster } = context;
    let current = contexts.current.as_deref() == Some(name);
    json!({ "name": name, "api": api, "ca": ca, "token_file": token_file, "cluster": cluster, "current": current })
}

fn facts(name: &str, context: &ServerContext) -> Table {
    Table::facts([
        ("name", name.to_owned()),
        ("api", context.api.clone()),
        ("token file", shown(context.token_file.as_deref())),
        ("ca", shown(context.ca.as_deref())),
        ("cluster", context.cluster.clone().unwrap_or_default()),
    ])
}

fn shown(path: Option<&Path>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// An address as the file has it: complete, and with an absolute path of a socket.
fn stored_address(url: &str) -> Result<String> {
    let address = Client::new(url)?.to_string();
    match address.strip_prefix("unix:") {
        Some(path) => Ok(format!("unix:{}", absolute(Path::new(path))?)),
        None => Ok(address),
    }
}

/// A path as the file has it. None for an empty one, which removes it.
fn stored_path(path: &Path) -> Result<Option<PathBuf>> {
    if path.as_os_str().is_empty() { Ok(None) } else { Ok(Some(absolute(path)?.into())) }
}

fn absolute(path: &Path) -> Result<String> {
    let absolute = std::path::absolute(path).with_context(|| format!("invalid path: {}", path.display()))?;
    let text = absolute.to_str().map(str::to_owned);
    let text = text.with_context(|| format!("the path is not UTF-8: {}", absolute.display()))?;
    ensure!(!text.contains(char::is_control), "invalid path: {text:?}");
    Ok(text)
}
