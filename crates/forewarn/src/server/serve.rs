//! `forewarn serve`: a server for real machines, on the real clock.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use forewarn_azure::http::{ArmPlan, LISTENER};
use forewarn_cli_support::log::log_format;
use forewarn_control::{Fleet, Unknown, find_machine};
use forewarn_metadata::{Door, Identity, Settings};
use forewarn_server::State;
use forewarn_server::{ApiDoor, ClockPlan, ControlHandle, Descriptors, Plan, Service, engine_with};

use super::config::{CONFIG_BYTES_MAX, Config, check_doors, check_hands, is_kept};
use super::log::Detail;
use super::reload::Reload;
use super::resources::{cores, take_files, warn_of_few_files};
use super::{OnHangup, advised, log, random_seed, read, read_fleet, run, with_fleet_line, write_addresses};

/// Run a server for real machines, on the real clock, as a file says.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The settings, as TOML.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Write where the server listens to this file, as JSON, once it does.
    #[arg(long, value_name = "FILE")]
    addresses_file: Option<PathBuf>,
    /// Only check the settings and the fleet.
    #[arg(long)]
    check: bool,
}

pub(crate) fn command(arguments: &Arguments) -> Result<()> {
    let file = &arguments.config;
    let text = read(file, CONFIG_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read the settings: {}", file.display()))?;
    if arguments.check {
        configured(file, &text)?;
        println!("{} is in order", file.display());
        return Ok(());
    }
    // Whatever is wrong with the settings is already said in the format that they ask for.
    let volume = log::start(log_format(&text), Detail::default());
    let (config, plan) = configured(file, &text)?;
    volume.set(config.log.level);
    let mut reload = Reload::new(file.clone(), &text, volume)?;
    let plan = take_files(plan);
    warn_of_few_files(&plan);
    let machines = machines(&plan);
    let ready = async |service: &Service| {
        for unknown in unknown(service.engine(), machines)? {
            tracing::warn!("a listener belongs to a machine that is not there: {unknown}");
        }
        if let Some(file) = &arguments.addresses_file {
            write_addresses(file, service)?;
        }
        if let Some(token) = service.first_token() {
            // The only time that it can be seen; it is not for the log.
            let text = format!("the first token, an admin's, shown once: {token}\n");
            log::print(&text, "the first token, an admin's, shown once", &[("token", token)]);
        }
        let api = service.api_urls().collect::<Vec<_>>().join(" ");
        tracing::info!(
            metadata = service.metadata_url(),
            api,
            arm = service.extension_url(LISTENER),
            "forewarn serves"
        );
        Ok(())
    };
    let started = run(plan, ready, OnHangup::Do(&mut |service| reload.run(service)));
    started.map_err(|problem| advised(problem, "another program listens there: `ss -lntp` shows which"))
}

/// The settings of a file, and what they come to.
fn configured(file: &Path, text: &str) -> Result<(Config, Plan)> {
    let config = Config::parse(text).with_context(|| format!("not settings: {}", file.display()))?;
    let plan = checked(&config).with_context(|| format!("in {}", file.display()))?;
    Ok((config, plan))
}

/// What the settings come to, each part for itself: for a look at what is wrong with them.
pub(crate) struct Parts {
    pub(crate) data_dir: Result<Option<PathBuf>>,
    pub(crate) settings: Result<Settings>,
    pub(crate) doors: Result<Vec<(Door, Identity)>>,
    pub(crate) api: Result<Vec<ApiDoor>>,
    pub(crate) arm: Result<Option<ArmPlan>>,
    pub(crate) hands: Result<forewarn_server::Hypervisor>,
    pub(crate) fleet: Option<(PathBuf, Result<Fleet>)>,
}

/// Reads settings.
pub(crate) fn parts(file: &Path) -> Result<Parts> {
    let text = read(file, CONFIG_BYTES_MAX);
    let text = text.with_context(|| format!("cannot read the settings: {}", file.display()))?;
    let config = Config::parse(&text).with_context(|| format!("not settings: {}", file.display()))?;
    let data_dir = config.data_dir();
    let kept = data_dir.as_ref().ok().and_then(Option::as_deref);
    Ok(Parts {
        settings: config.metadata.settings(),
        doors: config.metadata.doors(),
        api: config.api.doors(kept),
        arm: config.arm(),
        hands: config.hands.hands(),
        fleet: config.fleet.clone().map(|file| (file.clone(), read_fleet(&file))),
        data_dir,
    })
}

/// What the settings come to, as far as that can be known before a server starts.
fn checked(config: &Config) -> Result<Plan> {
    let plan = plan(config)?;
    let arm = plan.extensions.iter().find_map(|extension| extension.listen.as_ref());
    check_doors(&plan.doors, &plan.api, arm)?;
    check_hands(&plan.hands)?;
    if let Some(file) = &config.fleet {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let strangers = runtime.block_on(async {
            let engine = engine_with(&plan.fleet).await?;
            unknown(&engine, machines(&plan))
        });
        let strangers = strangers.map_err(|problem| with_fleet_line(problem, file));
        let strangers = strangers.with_context(|| format!("in the fleet {}", file.display()))?;
        // What is kept counts more than the file: a machine may have joined since.
        if !is_kept(plan.data_dir.as_ref())
            && let Some(stranger) = strangers.into_iter().next()
        {
            bail!("a listener belongs to nobody in {}: {}", file.display(), with_hint(&stranger));
        }
    }
    Ok(plan)
}

fn with_hint(stranger: &Unknown) -> String {
    match stranger {
        Unknown::Nothing { similar: None, .. } => {
            format!("{stranger}\n  hint: the fleet has to have it at first")
        }
        Unknown::Nothing { similar: Some(_), .. } | Unknown::Several { .. } => stranger.to_string(),
    }
}

/// The machines that listeners belong to.
fn machines(plan: &Plan) -> Vec<String> {
    let machines = plan.doors.iter().filter_map(|(_, identity)| match identity {
        Identity::Machine(name) => Some(name.clone()),
        Identity::Address | Identity::Prefix { .. } => None,
    });
    machines.collect()
}

/// Those of these machines that are not there.
fn unknown(engine: &ControlHandle, machines: Vec<String>) -> Result<Vec<Unknown>> {
    let find = move |state: &State<'_>| {
        machines.iter().filter_map(|name| find_machine(state.cluster, name).err()).collect()
    };
    Ok(engine.look(find)?)
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
        doors: config.metadata.doors()?,
        threads: config.metadata.threads.unwrap_or_else(cores),
        api: config.api.doors(data_dir.as_deref())?,
        api_host_names: config.api.host_names.clone(),
        api_limits: config.api.limits()?,
        extension_limits: config.arm_limits()?,
        descriptors: Descriptors::default(),
        extensions: config.arm()?.map(ArmPlan::extension).into_iter().collect(),
        hands: config.hands.hands()?,
        trail_keep: config.audit.keep()?,
        webhooks: config.webhooks.settings()?,
    })
}
