//! `forewarn dev`: a local server with a virtual clock and simulated machines, in memory by default.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use forewarn_azure::http::{ArmPlan, Credentials, LISTENER};
use forewarn_control::{EnrolmentWord, Fleet, find_machine};
use forewarn_metadata::{FirstAnswer, Limits, Settings};
use forewarn_server::State;
use forewarn_server::tls::Source;
use forewarn_server::{
    CLOCK_END, ClockPlan, HostWorker, Hypervisor, Plan, REMINDER, Service, Speed, WebhookSettings,
};
use forewarn_types::{Moment, TcpAddress};
use forewarn_url::{OwnHosts, parse_host_name};

use super::config::{DIRECTORY, TLS_DIRECTORY, parse_first_answer};
use super::greeting::{FleetSummary, ServerUrls};
use super::local::{LocalServer, seed, wall};
use super::log::{Detail, Format};
use super::machine_names::find_in_clusters;
use super::open_listeners::OpenListenerArgs;
use super::resources::{cores, take_files};
use super::{
    HangupAction, dashboard_url, log, random_seed, read_fleet, run, with_fleet_line, with_port_hint,
    write_addresses,
};
use crate::clock_speed::parse_speed;
use crate::exit_code::ExitError;
use crate::requested_events::{RequestedEvent, check_order, parse_after};
use crate::server_lookup;
use crate::service::{Installation, installation};
use crate::state_directory::StateDirectory;

/// Run a local server for development: in memory, on loopback, with a demo fleet, simulated machines and a virtual
/// clock
#[derive(Args, Debug)]
#[command(mut_args(|option| forewarn_cli_support::help::with_variable(VARIABLES, option)))]
#[command(before_help = "\
Examples:
  forewarn dev                              the demo fleet, on ports 1338 to 1340
  forewarn dev --clock frozen               time moves only with `forewarn clock advance 15m`
  forewarn dev --clock 60x                  a notice of 15 minutes lasts 15 seconds
  forewarn dev --fleet mine.toml            your own fleet; `forewarn fleet show` prints a template
  FOREWARN_DEV_CLOCK=60x forewarn dev       every option may be an environment variable")]
pub(crate) struct DevArgs {
    /// Fleet file (TOML), or `none` [default: demo fleet]
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Enrol all tenants of the fleet from the start, so that their machines get events without a first poll
    #[arg(long)]
    enrolled: bool,
    /// Data directory; --fleet is read only if it is empty [default: in memory]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address of the metadata endpoint for machines; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1338")]
    metadata_listen: TcpAddress,
    /// Address of the operator API; port 0 selects a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1339")]
    api_listen: TcpAddress,
    /// Address of the Azure-compatible API (TLS), or `off`; port 0 selects a free port
    #[arg(long, value_name = "ADDR|off", default_value = "127.0.0.1:1340", value_parser = parse_arm)]
    arm_listen: ArmListen,
    /// Announce an event once its machine has polled: Freeze, Reboot, Redeploy, Preempt or Terminate; repeatable, one
    /// after the other [default machine: that of --default-vm]
    #[arg(long, value_name = "TYPE[:VM]", value_delimiter = ',')]
    event: Vec<RequestedEvent>,
    /// Announce each --event this long after the first poll, or after the end of the event before it
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_after)]
    after: Duration,
    /// Host name with dots that clients may use for this server; repeatable. Addresses, `localhost` and names without
    /// dots need no entry
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_host_name)]
    host_name: Vec<String>,
    #[command(flatten)]
    open: OpenListenerArgs,
    /// File to which the listener addresses are written, as JSON, when the server is ready
    #[arg(long, value_name = "FILE")]
    addresses_file: Option<PathBuf>,
    /// Speed of the virtual clock: `frozen`, `real`, or a factor such as `60` or `60x`
    #[arg(long, value_name = "SPEED", default_value = "real", value_parser = speed)]
    clock: Speed,
    /// Start time of the virtual clock [default: the last time in the data directory, or the current time]
    #[arg(long, value_name = "TIME")]
    clock_start: Option<Moment>,
    /// Seed for reproducible event ids [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Steps on hosts: simulated, or by a person, who ends each with `forewarn host done`
    #[arg(long, value_enum, default_value_t)]
    host_work: HostWorkArg,
    /// Request limits per machine
    #[arg(long, value_enum, default_value_t)]
    limits: LimitsArg,
    /// First response to a tenant: `now` (its events), `empty`, or a delay such as `90s`
    #[arg(long, value_name = "MODE", default_value = "now", value_parser = parse_first_answer)]
    first_answer: FirstAnswer,
    /// Machine that requests without /vm/NAME come from; outside of the default cluster, CLUSTER/TENANT/NAME [default: solo]
    #[arg(long, value_name = "NAME")]
    default_vm: Option<String>,
    /// Number of threads of the metadata endpoint [default: one per core]
    #[arg(long, value_name = "N")]
    metadata_threads: Option<NonZeroUsize>,
    /// Additional CA certificates to trust for webhooks (PEM file)
    #[arg(long, value_name = "FILE")]
    webhook_ca: Option<PathBuf>,
    /// Log format
    #[arg(long, value_enum, default_value_t)]
    log: Format,
    /// Log level
    #[arg(long, value_enum, default_value_t = Detail::Warn)]
    log_level: Detail,
}

/// The beginning of the environment variables of the options: `FOREWARN_DEV_CLOCK` is that of `--clock`.
const VARIABLES: &str = "FOREWARN_DEV_";

/// The listener for Azure clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArmListen {
    /// No TLS listener; the operator API also serves Azure clients, without TLS.
    Off,
    At(SocketAddr),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LimitsArg {
    /// No limits
    #[default]
    Off,
    /// The limits of Azure: 5 requests per second
    Cloud,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum HostWorkArg {
    /// Steps take the announced time
    #[default]
    Simulated,
    /// Steps end with `forewarn host done`
    Manual,
}

impl HostWorkArg {
    fn worker(self) -> HostWorker {
        match self {
            Self::Simulated => HostWorker::Driver,
            Self::Manual => HostWorker::Person { reminder: REMINDER },
        }
    }
}

/// The addresses of all listeners.
fn listeners(arguments: &DevArgs) -> impl Iterator<Item = SocketAddr> {
    let arm = match arguments.arm_listen {
        ArmListen::Off => None,
        ArmListen::At(address) => Some(address),
    };
    [arguments.metadata_listen.0, arguments.api_listen.0].into_iter().chain(arm)
}

pub(crate) fn command(arguments: &DevArgs) -> Result<()> {
    log::start(arguments.log, arguments.log_level);
    arguments.open.check(listeners(arguments)).map_err(ExitError::usage)?;
    let state = state_directory(arguments)?;
    let plan = take_files(plan(arguments, state.as_ref())?);
    let default = arguments.default_vm.clone().or_else(|| default_vm(&plan.fleet));
    let ready = async |service: &Service| {
        if let Some(name) = &arguments.default_vm {
            check_default(service, name).map_err(ExitError::usage)?;
        }
        if let Some(file) = &arguments.addresses_file {
            write_addresses(file, service)?;
        }
        request_events(arguments, service, default.as_deref()).map_err(ExitError::usage)?;
        let summarise = move |state: &State<'_>| FleetSummary::of(state, default.as_deref());
        let summary = service.control().look(summarise)?;
        let urls = ServerUrls {
            metadata: service.metadata_url().unwrap_or_default(),
            api: service.api_url(),
            arm: service.extension_url(LISTENER),
            program: &std::env::args().next().unwrap_or_else(|| "forewarn".to_owned()),
            looked_up: &server_lookup::usual_url(),
            data_dir: arguments.data_dir.as_deref(),
        };
        let dashboard = dashboard_url(urls.api);
        let members = [
            ("metadata", Some(urls.metadata)),
            ("api", Some(urls.api)),
            ("dashboard", dashboard.as_deref()),
            ("arm", urls.arm),
        ];
        let members: Vec<_> = members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        log::print(&summary.greeting(arguments.clock, &urls), "server ready", &members);
        Ok(())
    };
    let started = run(plan, ready, HangupAction::End);
    started.map_err(|error| {
        let error = match &arguments.fleet {
            Some(file) => with_fleet_line(error, file),
            None => error,
        };
        let other = match installation() {
            Installation::Installed => "the service of this computer, or another `forewarn dev`,",
            Installation::Absent => "another `forewarn dev`",
        };
        let hint = format!(
            "{other} may be running: --metadata-listen 127.0.0.1:0, --api-listen 127.0.0.1:0 and --arm-listen \
             127.0.0.1:0 select free ports"
        );
        with_port_hint(error, &hint)
    })
}

/// Requests events, one after the other, while the server runs.
fn request_events(arguments: &DevArgs, service: &Service, default: Option<&str>) -> Result<()> {
    let (events, after, control) = (arguments.event.clone(), arguments.after, service.control().clone());
    let default = match default {
        Some(name) => name.to_owned(),
        None if events.iter().all(|event| event.machine.is_some()) => String::new(),
        None => bail!("--event needs a machine\n  hint: write --event TYPE:VM, or add --default-vm"),
    };
    check_order(&events, &default)?;
    for event in &events {
        let name = event.machine(&default);
        let found = control.look(|state| find_machine(state.cluster, name).map(drop))?;
        found.with_context(|| format!("--event {event}"))?;
    }
    tokio::spawn(async move {
        for event in events {
            if let Err(error) = event.happen(&control, &default, after).await {
                tracing::warn!(%event, error = format!("{error:#}"), "cannot announce the requested event");
            }
        }
    });
    Ok(())
}

/// Checks that the default machine exists. Without any machine it may be created later.
fn check_default(service: &Service, name: &str) -> Result<()> {
    let has_machines = |state: &State<'_>| {
        state.all.clusters().any(|(_, cluster)| cluster.rules().machines().next().is_some())
    };
    let find = |state: &State<'_>| match has_machines(state) {
        true => find_in_clusters(state.all, name).map(drop),
        false => Ok(()),
    };
    service.control().look(find)?.context("--default-vm")
}

/// The directory of the CA, for a server without a data directory. None if no CA is needed.
fn state_directory(arguments: &DevArgs) -> Result<Option<StateDirectory>> {
    if arguments.arm_listen == ArmListen::Off || arguments.data_dir.is_some() {
        return Ok(None);
    }
    let directory = StateDirectory::open()?;
    if directory.is_temporary() {
        let path = directory.path().display();
        tracing::warn!(%path, "no home directory: the CA for Azure clients changes at every start");
    }
    Ok(Some(directory))
}

/// Host names of all listeners.
fn hosts(arguments: &DevArgs) -> OwnHosts {
    OwnHosts {
        names: arguments.host_name.clone(),
        container_names: arguments.open.container_names(),
        advice: Some("start the server with --host-name NAME"),
    }
}

/// The listener for Azure clients. There is no authentication, so issued tokens need no storage.
fn arm(arguments: &DevArgs, state: Option<&StateDirectory>) -> ArmPlan {
    let parent = arguments.data_dir.as_deref().or(state.map(StateDirectory::path));
    let listen = match (arguments.arm_listen, parent) {
        (ArmListen::At(address), Some(parent)) => {
            let directory = parent.join(TLS_DIRECTORY);
            let names = arguments.host_name.clone();
            let source = Source::SelfSigned { directory, names, address: Some(address.ip()) };
            Some((address, source))
        }
        (ArmListen::Off | ArmListen::At(_), _) => None,
    };
    ArmPlan {
        listen,
        hosts: hosts(arguments),
        credentials: Credentials::Anyone,
        key_dir: None,
        directory: DIRECTORY.to_owned(),
    }
}

fn plan(arguments: &DevArgs, state: Option<&StateDirectory>) -> Result<Plan> {
    let fleet = match &arguments.fleet {
        None => Fleet::parse(include_str!("demo.toml"))?,
        Some(none) if none.as_os_str() == "none" => Fleet::default(),
        Some(file) => read_fleet(file)?,
    };
    let enrolment = if arguments.enrolled { Some(EnrolmentWord::Always) } else { fleet.enrolment };
    let fleet = Fleet { enrolment, ..fleet };
    // A clock at real speed starts at the current time; another one continues from the stored time.
    let current = (arguments.clock == Speed(1)).then(wall);
    let start = arguments.clock_start.map(|Moment(start)| start).or(current);
    if start.is_some_and(|start| start > CLOCK_END) {
        bail!("invalid --clock-start: the clock ends with the year 9989");
    }
    let default = arguments.default_vm.clone().or_else(|| default_vm(&fleet));
    let limits = match arguments.limits {
        LimitsArg::Off => None,
        LimitsArg::Cloud => Some(Limits::default()),
    };
    let first_answer = arguments.first_answer;
    if let Some(file) = &arguments.webhook_ca {
        forewarn_server::tls::certificates(file).context("--webhook-ca")?;
    }
    let webhooks =
        WebhookSettings { authorities: arguments.webhook_ca.clone(), ..WebhookSettings::default() };
    let local = LocalServer {
        mode: "dev",
        fleet,
        seed: arguments.seed.map_or_else(random_seed, |number| Ok(seed(number)))?,
        clock: ClockPlan::Virtual { start, speed: arguments.clock },
        metadata_listen: arguments.metadata_listen.0,
        api_listen: arguments.api_listen.0,
        default_vm: default,
        hosts: hosts(arguments),
    };
    let plan = local.plan();
    Ok(Plan {
        data_dir: arguments.data_dir.clone(),
        hypervisor: Hypervisor { hosts: arguments.host_work.worker(), ..Hypervisor::simulated() },
        settings: Settings { first_answer, limits, ..plan.settings },
        threads: arguments.metadata_threads.unwrap_or_else(cores),
        extensions: vec![arm(arguments, state).extension()],
        webhooks,
        ..plan
    })
}

fn default_vm(fleet: &Fleet) -> Option<String> {
    fleet.vms.iter().any(|vm| vm.name == "solo").then(|| "solo".to_owned())
}

fn parse_arm(text: &str) -> Result<ArmListen, String> {
    if text == "off" {
        return Ok(ArmListen::Off);
    }
    let address = text.parse().map(|TcpAddress(address)| ArmListen::At(address));
    address.map_err(|_| "write an address such as 127.0.0.1:1340, localhost:1340 or :1340; or off".to_owned())
}

fn speed(text: &str) -> Result<Speed, String> {
    parse_speed(text).map(Speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_fleet_is_valid() {
        let fleet = Fleet::parse(include_str!("demo.toml")).unwrap();
        assert_eq!(default_vm(&fleet).as_deref(), Some("solo"));
        assert_eq!(default_vm(&Fleet::default()), None);
    }

    #[test]
    fn the_azure_listener_is_an_address_or_off() {
        assert_eq!(parse_arm("off"), Ok(ArmListen::Off));
        assert_eq!(parse_arm("[::1]:0"), Ok(ArmListen::At("[::1]:0".parse().unwrap())));
        assert_eq!(parse_arm(":1340"), Ok(ArmListen::At("127.0.0.1:1340".parse().unwrap())));
        assert!(parse_arm("on").is_err() && parse_arm("").is_err());
    }

    #[test]
    fn a_seed_depends_on_its_number() {
        assert_ne!(seed(1), seed(2));
        assert_eq!(seed(7), seed(7));
    }
}
