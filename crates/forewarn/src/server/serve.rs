//! `forewarn serve`: a production server, with the real clock.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use forewarn_azure::http::{ArmPlan, LISTENER};
use forewarn_cli_support::log::log_format;
use forewarn_control::{Fleet, LookupError};
use forewarn_metadata::{Identity, ListenAddress, Settings};
use forewarn_server::State;
use forewarn_server::tls::Source;
use forewarn_server::{
    ApiListener, ClockPlan, ControlHandle, Descriptors, Plan, RealmPlan, Service, control_with_fleet,
};
use serde_json::json;

use super::address_listeners::AddressListeners;
use super::config::{
    CONFIG_BYTES_MAX, Config, check_data_directory, check_driver, check_listeners, has_data,
};
use super::log::Detail;
use super::machine_names::{find_in_clusters, split_cluster};
use super::reload::ConfigReloader;
use super::resources::{cores, take_files, warn_of_few_files};
use super::{
    HangupAction, dashboard_url, log, random_seed, read, read_fleet, run, with_fleet_line, with_port_hint,
    write_addresses,
};
use crate::operator::{GlobalOptions, OutputFormat, names, print, print_data, visible};

/// The message that names the file of the first token.
const FIRST_TOKEN: &str = "first token (admin) is in a file";

/// Run a production server with the real clock, from a configuration file
#[derive(Args, Debug)]
#[command(before_help = "\
Examples:
  forewarn serve --config /etc/forewarn/serve.toml
  forewarn serve --config /etc/forewarn/serve.toml --check")]
pub(crate) struct ServeArgs {
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// File to which the listener addresses are written, as JSON, when the server is ready
    #[arg(long, value_name = "FILE")]
    addresses_file: Option<PathBuf>,
    /// Only check the configuration and the fleet
    #[arg(long)]
    check: bool,
}

pub(crate) fn command(arguments: &ServeArgs, options: &GlobalOptions) -> Result<()> {
    let file = &arguments.config;
    let text = read(file, CONFIG_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read the configuration: {}", file.display()))?;
    if arguments.check {
        let (config, _) = configured(file, &text)?;
        if let Some(directory) = config.data_dir()? {
            check_data_directory(&directory)?;
        }
        return match options.output() {
            OutputFormat::Text(_) => print(&visible(&format!("{} is valid\n", file.display()))),
            OutputFormat::Data(format) => {
                print_data(format, &json!({ "name": file.display().to_string(), "valid": true }), names)
            }
        };
    }
    // Errors in the configuration are already logged in its own format.
    let volume = log::start(log_format(&text), Detail::default());
    let (config, plan) = configured(file, &text)?;
    volume.set(config.log.level);
    let mut reload = ConfigReloader::new(file.clone(), &text, volume)?;
    let plan = take_files(plan);
    warn_of_few_files(&plan);
    let (machines, by_address) = (machines(&plan), AddressListeners::of(&plan));
    let ready = async |service: &Service| {
        for unknown in unknown(service.control(), machines)? {
            tracing::warn!(error = %unknown, "listener of an unknown machine");
        }
        by_address.log(service.control())?;
        if let Some(file) = &arguments.addresses_file {
            write_addresses(file, service)?;
        }
        if let Some(file) = service.first_token_file() {
            // Standard output may be the system's log: it gets the name of the file, never the token.
            let file = file.display().to_string();
            log::print(
                &format!("first token (admin) is in the file {file}\n"),
                FIRST_TOKEN,
                &[("file", &file)],
            );
        }
        let api = service.api_urls().collect::<Vec<_>>().join(" ");
        tracing::info!(
            metadata = service.metadata_url(),
            api,
            dashboard = service.api_urls().find_map(dashboard_url),
            arm = service.extension_url(LISTENER),
            "server ready"
        );
        Ok(())
    };
    let started = run(plan, ready, HangupAction::Do(&mut |service| reload.run(service)));
    started.map_err(|error| with_port_hint(error, "another program uses this address: `ss -lntp` shows it"))
}

/// Parses and checks the configuration.
fn configured(file: &Path, text: &str) -> Result<(Config, Plan)> {
    let config = Config::parse(text).with_context(|| format!("invalid configuration: {}", file.display()))?;
    let plan = checked(&config).with_context(|| format!("in {}", file.display()))?;
    Ok((config, plan))
}

/// The parts of the configuration, checked separately, so that the doctor can report several errors.
pub(crate) struct SettingsParts {
    pub(crate) data_dir: Result<Option<PathBuf>>,
    pub(crate) settings: Result<Settings>,
    pub(crate) listeners: Result<Vec<(ListenAddress, Identity)>>,
    pub(crate) api: Result<Vec<ApiListener>>,
    pub(crate) arm: Result<Option<ArmPlan>>,
    pub(crate) driver: Result<forewarn_server::Hypervisor>,
    pub(crate) fleet: Option<(PathBuf, Result<Fleet>)>,
    pub(crate) realm: Result<Option<RealmPlan>>,
    /// The certificate of this server for etcd.
    pub(crate) engine_certificate: Option<Source>,
}

/// Reads a configuration file.
pub(crate) fn parts(file: &Path) -> Result<SettingsParts> {
    let text = read(file, CONFIG_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read the configuration: {}", file.display()))?;
    let config =
        Config::parse(&text).with_context(|| format!("invalid configuration: {}", file.display()))?;
    let data_dir = config.data_dir();
    let directory = data_dir.as_ref().ok().and_then(Option::as_deref);
    Ok(SettingsParts {
        settings: config.metadata.settings(),
        listeners: config.metadata.listeners(),
        api: config.api.listeners(directory),
        arm: config.arm(),
        driver: config.driver.driver(),
        fleet: config.fleet.clone().map(|file| (file.clone(), read_fleet(&file))),
        realm: config.realm(),
        engine_certificate: config.engine_certificate(),
        data_dir,
    })
}

/// The data directory and the realm of a configuration file.
pub(crate) fn realm_settings(file: &Path) -> Result<(PathBuf, RealmPlan)> {
    let text = read(file, CONFIG_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read the configuration: {}", file.display()))?;
    let config =
        Config::parse(&text).with_context(|| format!("invalid configuration: {}", file.display()))?;
    let realm = config.realm().with_context(|| format!("in {}", file.display()))?;
    match (config.data_dir()?, realm) {
        (Some(directory), Some(realm)) => Ok((directory, realm)),
        (None, _) | (_, None) => bail!(
            "the configuration is that of a single server: {}\n  hint: add [engine] and [server]",
            file.display()
        ),
    }
}

/// The plan of the server, checked as far as possible before it starts.
fn checked(config: &Config) -> Result<Plan> {
    let plan = plan(config)?;
    let arm = plan.extensions.iter().find_map(|extension| extension.listen.as_ref());
    check_listeners(&plan.metadata_listeners, &plan.api, arm)?;
    check_driver(&plan.hypervisor)?;
    if let Some(file) = &config.fleet {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let unknown = runtime.block_on(async {
            let control = control_with_fleet(&plan.fleet).await?;
            // A fleet file has machines of the default cluster only.
            let machines = machines(&plan).into_iter().filter(|name| split_cluster(name).is_none());
            unknown(&control, machines.collect())
        });
        let unknown = unknown.map_err(|error| with_fleet_line(error, file));
        let unknown = unknown.with_context(|| format!("in the fleet file {}", file.display()))?;
        // With a data directory the file is not read: the machine may have been created since.
        if !has_data(plan.data_dir.as_ref())
            && let Some(machine) = unknown.into_iter().next()
        {
            bail!("listener of a machine that is not in {}: {}", file.display(), with_hint(&machine));
        }
    }
    Ok(plan)
}

fn with_hint(machine: &LookupError) -> String {
    match machine {
        LookupError::Nothing { similar: None, .. } => {
            format!("{machine}\n  hint: add the machine to the fleet file")
        }
        LookupError::Nothing { similar: Some(_), .. } | LookupError::Several { .. } => machine.to_string(),
    }
}

/// The machines of listeners.
fn machines(plan: &Plan) -> Vec<String> {
    let machines = plan.metadata_listeners.iter().filter_map(|(_, identity)| match identity {
        Identity::Machine(name) => Some(name.clone()),
        Identity::Address { .. } | Identity::Prefix { .. } | Identity::AddressOrPrefix { .. } => None,
    });
    machines.collect()
}

/// The machines that do not exist.
fn unknown(control: &ControlHandle, machines: Vec<String>) -> Result<Vec<LookupError>> {
    let find = move |state: &State<'_>| {
        machines.iter().filter_map(|name| find_in_clusters(state.all, name).err()).collect()
    };
    Ok(control.look(find)?)
}

fn plan(config: &Config) -> Result<Plan> {
    let data_dir = config.data_dir()?;
    Ok(Plan {
        mode: "serve",
        seed: random_seed()?,
        clock: ClockPlan::Real,
        data_dir: data_dir.clone(),
        fleet: config.fleet.as_deref().map_or_else(|| Ok(Fleet::default()), read_fleet)?,
        settings: config.metadata.settings()?,
        metadata_listeners: config.metadata.listeners()?,
        threads: config.metadata.threads.unwrap_or_else(cores),
        api: config.api.listeners(data_dir.as_deref())?,
        api_hosts: config.api.hosts(),
        first_token_file: config.first_token_file(),
        api_limits: config.api.limits()?,
        extension_limits: config.arm_limits()?,
        descriptors: Descriptors::default(),
        extensions: config.arm()?.map(ArmPlan::extension).into_iter().collect(),
        hypervisor: config.driver.driver()?,
        audit_keep: config.audit.keep()?,
        webhooks: config.webhooks.settings()?,
        realm: config.realm()?,
    })
}
