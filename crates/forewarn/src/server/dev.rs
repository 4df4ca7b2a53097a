//! `forewarn dev`: a server for one person, in memory, with a virtual clock and pretend machines.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use forewarn_azure::http::{ArmPlan, Credentials, LISTENER};
use forewarn_control::{Fleet, find_machine};
use forewarn_lifecycle::{Seed, Timestamp};
use forewarn_metadata::{Door, FirstAnswer, Identity, IdentityToken, Limits, Settings};
use forewarn_server::State;
use forewarn_server::tls::Source;
use forewarn_server::{
    ApiDoor, CLOCK_END, ClientLimits, ClockPlan, Descriptors, Hypervisor, Plan, Service, Speed,
    WebhookSettings,
};
use forewarn_types::Moment;

use super::config::{DIRECTORY, TLS_DIRECTORY, parse_first_answer};
use super::greeting::{Facts, Places};
use super::log::{Detail, Format};
use super::resources::{cores, take_files};
use super::{OnHangup, advised, log, random_seed, read_fleet, run, with_fleet_line, write_addresses};
use crate::state::Place;

/// Run a server for one person: in memory, on loopback, with a demo fleet, pretend machines and a virtual clock.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  forewarn dev                              a demo fleet, at http://127.0.0.1:1338 and :1339
  forewarn dev --clock frozen               time passes when you say so: `forewarn clock advance 15m`
  forewarn dev --clock 60x                  fifteen minutes of notice in fifteen seconds
  forewarn dev --fleet mine.toml            your own fleet; `forewarn fleet show` prints one to start from")]
pub(crate) struct Arguments {
    /// The fleet to start with: a file, or `none`. Without it, a demo fleet.
    #[arg(long, value_name = "FILE")]
    fleet: Option<PathBuf>,
    /// Keep everything in this directory; without it, in memory. A fleet is read only where nothing is kept yet.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Where machines come in; port 0 is any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1338")]
    metadata_listen: SocketAddr,
    /// Where operators come in; port 0 is any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:1339")]
    api_listen: SocketAddr,
    /// Where clients of Azure come in, with TLS; port 0 is any free one, and `off` is none.
    #[arg(long, value_name = "ADDR|off", default_value = "127.0.0.1:1340", value_parser = parse_arm)]
    arm_listen: ArmListen,
    /// Listen beyond loopback although anybody who can connect may do anything.
    #[arg(long)]
    i_know_this_is_open: bool,
    /// Write where the server listens to this file, as JSON, once it does.
    #[arg(long, value_name = "FILE")]
    addresses_file: Option<PathBuf>,
    /// How the virtual clock runs: `frozen`, `real` (as fast as a real one), or a speed such as `60x`.
    #[arg(long, value_name = "SPEED", default_value = "real", value_parser = parse_speed)]
    clock: Speed,
    /// What the virtual clock shows at first; without it, what it last showed in the data directory, or the time of day.
    #[arg(long, value_name = "TIME")]
    clock_start: Option<Moment>,
    /// Makes event ids the same in every run; any number.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Limits on what one machine may ask: none, or those of the cloud (5 requests a second).
    #[arg(long, value_enum, default_value_t)]
    limits: LimitsWord,
    /// What the first request of a tenant is answered: `now`, `empty`, or after a length of time such as `90s`.
    #[arg(long, value_name = "WHEN", default_value = "now", value_parser = parse_first_answer)]
    first_answer: FirstAnswer,
    /// The machine that a caller is taken for who does not say `/vm/NAME/…`; without it `solo`, if there is one.
    #[arg(long, value_name = "NAME")]
    default_vm: Option<String>,
    /// Threads that answer machines; without it, one for each core.
    #[arg(long, value_name = "N")]
    metadata_threads: Option<NonZeroUsize>,
    /// Believe these authorities of webhooks, as PEM, besides those of the system.
    #[arg(long, value_name = "FILE")]
    webhook_ca: Option<PathBuf>,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t)]
    log: Format,
    /// How much is logged.
    #[arg(long, value_enum, default_value_t = Detail::Warn)]
    log_level: Detail,
}

/// Where clients of Azure come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArmListen {
    /// Only where operators do, in clear.
    Off,
    /// There.
    At(SocketAddr),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum LimitsWord {
    /// None.
    #[default]
    Off,
    /// Those of the cloud.
    Cloud,
}

/// Nobody else can come in, unless that is meant.
fn check_open(arguments: &Arguments) -> Result<()> {
    let arm = match arguments.arm_listen {
        ArmListen::Off => None,
        ArmListen::At(address) => Some(address),
    };
    for address in [arguments.metadata_listen, arguments.api_listen].into_iter().chain(arm) {
        if !address.ip().is_loopback() && !arguments.i_know_this_is_open {
            bail!(
                "anybody who can connect may do anything: {address} is not loopback\n  \
                 hint: if that is what you want, say --i-know-this-is-open"
            );
        }
    }
    Ok(())
}

pub(crate) fn command(arguments: &Arguments) -> Result<()> {
    log::start(arguments.log, arguments.log_level);
    check_open(arguments)?;
    let keeper = keeper(arguments)?;
    let plan = take_files(plan(arguments, keeper.as_ref())?);
    let default = arguments.default_vm.clone().or_else(|| default_vm(&plan.fleet));
    let ready = async |service: &Service| {
        if let Some(name) = &arguments.default_vm {
            check_default(service, name.clone())?;
        }
        if let Some(file) = &arguments.addresses_file {
            write_addresses(file, service)?;
        }
        let look = move |state: &State<'_>| Facts::of(state.cluster, default.as_deref());
        let facts = service.engine().look(look)?;
        let places = Places {
            metadata: service.metadata_url().unwrap_or_default(),
            api: service.api_url(),
            arm: service.extension_url(LISTENER),
            own: &std::env::args().next().unwrap_or_else(|| "forewarn".to_owned()),
            data_dir: arguments.data_dir.as_deref(),
        };
        let members = [("metadata", Some(places.metadata)), ("api", Some(places.api)), ("arm", places.arm)];
        let members: Vec<_> = members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        log::print(&facts.greeting(arguments.clock, &places), "forewarn serves", &members);
        Ok(())
    };
    let started = run(plan, ready, OnHangup::End);
    started.map_err(|problem| {
        let problem = match &arguments.fleet {
            Some(file) => with_fleet_line(problem, file),
            None => problem,
        };
        advised(
            problem,
            "another `forewarn dev` may run: --metadata-listen 127.0.0.1:0, --api-listen 127.0.0.1:0 and --arm-listen 127.0.0.1:0 \
             take free ports",
        )
    })
}

/// Callers can be taken for that machine. Where there are no machines yet, it may be the first.
fn check_default(service: &Service, name: String) -> Result<()> {
    let find = move |state: &State<'_>| match state.cluster.machines().next() {
        Some(_) => find_machine(state.cluster, &name).map(drop),
        None => Ok(()),
    };
    service.engine().look(find)?.context("--default-vm")
}

/// Where an authority is kept for a server that keeps nothing itself, if it needs one.
fn keeper(arguments: &Arguments) -> Result<Option<Place>> {
    if arguments.arm_listen == ArmListen::Off || arguments.data_dir.is_some() {
        return Ok(None);
    }
    let place = Place::open()?;
    if place.is_temporary() {
        let path = place.path().display();
        tracing::warn!(%path, "there is no home directory: the authority for clients of Azure is a new one at every start");
    }
    Ok(Some(place))
}

/// How clients of Azure come in. Everybody is let in, so nothing that they get needs to be kept.
fn arm(arguments: &Arguments, keeper: Option<&Place>) -> ArmPlan {
    let kept = arguments.data_dir.as_deref().or(keeper.map(Place::path));
    let listen = match (arguments.arm_listen, kept) {
        (ArmListen::At(address), Some(kept)) => {
            let directory = kept.join(TLS_DIRECTORY);
            let source = Source::SelfSigned { directory, names: Vec::new(), address: Some(address.ip()) };
            Some((address, source))
        }
        (ArmListen::Off | ArmListen::At(_), _) => None,
    };
    ArmPlan {
        listen,
        host_names: Vec::new(),
        credentials: Credentials::Anyone,
        key_dir: None,
        directory: DIRECTORY.to_owned(),
    }
}

fn plan(arguments: &Arguments, keeper: Option<&Place>) -> Result<Plan> {
    let fleet = match &arguments.fleet {
        None => Fleet::parse(include_str!("demo.toml"))?,
        Some(none) if none.as_os_str() == "none" => Fleet::default(),
        Some(file) => read_fleet(file)?,
    };
    // A clock that runs as a real one does shows the time of day; another goes on from where it stood.
    let of_day = (arguments.clock == Speed(1)).then(wall);
    let start = arguments.clock_start.map(|Moment(start)| start).or(of_day);
    if start.is_some_and(|start| start > CLOCK_END) {
        bail!("the clock cannot start that late: it ends with the year 9989");
    }
    let default = arguments.default_vm.clone().or_else(|| default_vm(&fleet));
    let limits = match arguments.limits {
        LimitsWord::Off => None,
        LimitsWord::Cloud => Some(Limits::default()),
    };
    let identity_token = IdentityToken::Unsigned { directory: DIRECTORY.to_owned() };
    let first_answer = arguments.first_answer;
    if let Some(file) = &arguments.webhook_ca {
        forewarn_server::tls::certificates(file).context("--webhook-ca")?;
    }
    let webhooks =
        WebhookSettings { authorities: arguments.webhook_ca.clone(), ..WebhookSettings::default() };
    Ok(Plan {
        mode: "dev",
        seed: arguments.seed.map_or_else(random_seed, |number| Ok(seed(number)))?,
        clock: ClockPlan::Virtual { start, speed: arguments.clock },
        data_dir: arguments.data_dir.clone(),
        hands: Hypervisor::Simulated,
        fleet,
        settings: Settings { first_answer, limits, identity_token, ..Settings::default() },
        doors: vec![(Door::Tcp(arguments.metadata_listen), Identity::Prefix { default })],
        threads: arguments.metadata_threads.unwrap_or_else(cores),
        api: vec![ApiDoor::Open(arguments.api_listen)],
        api_host_names: Vec::new(),
        api_limits: ClientLimits::default(),
        extension_limits: ClientLimits::default(),
        descriptors: Descriptors::default(),
        extensions: vec![arm(arguments, keeper).extension()],
        trail_keep: forewarn_store::TRAIL_KEEP,
        webhooks,
    })
}

fn default_vm(fleet: &Fleet) -> Option<String> {
    fleet.vms.iter().any(|vm| vm.name == "solo").then(|| "solo".to_owned())
}

fn seed(number: u64) -> Seed {
    let mut seed = *b"forewarn dev 000";
    seed[8..].copy_from_slice(&number.to_le_bytes());
    Seed(seed)
}

/// The time of day, down to a whole second.
fn wall() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_secs()).unwrap_or(i64::MAX).saturating_mul(1_000))
}

fn parse_arm(text: &str) -> Result<ArmListen, String> {
    if text == "off" {
        return Ok(ArmListen::Off);
    }
    let address = text.parse().map(ArmListen::At);
    address.map_err(|_| "write an address such as 127.0.0.1:1340, or off".to_owned())
}

/// The fastest clock: a year in half a minute.
const SPEED_MAX: u32 = 1_000_000;

fn parse_speed(text: &str) -> Result<Speed, String> {
    match text {
        "frozen" => Ok(Speed(0)),
        "real" => Ok(Speed(1)),
        _ => {
            let number = text.strip_suffix('x').and_then(|number| number.parse().ok());
            let speed = number.filter(|speed| (1..=SPEED_MAX).contains(speed));
            speed.map(Speed).ok_or_else(|| "write frozen, real, or a speed such as 60x".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_fleet_is_a_fleet() {
        let fleet = Fleet::parse(include_str!("demo.toml")).unwrap();
        assert_eq!(default_vm(&fleet).as_deref(), Some("solo"));
        assert_eq!(default_vm(&Fleet::default()), None);
    }

    #[test]
    fn a_clock_is_frozen_real_or_so_many_times_as_fast() {
        assert_eq!(parse_speed("frozen"), Ok(Speed(0)));
        assert_eq!(parse_speed("real"), Ok(Speed(1)));
        assert_eq!(parse_speed("60x"), Ok(Speed(60)));
        for wrong in ["", "x", "0x", "60", "-1x", "1000001x", "fast"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn clients_of_azure_come_in_somewhere_or_not_at_all() {
        assert_eq!(parse_arm("off"), Ok(ArmListen::Off));
        assert_eq!(parse_arm("[::1]:0"), Ok(ArmListen::At("[::1]:0".parse().unwrap())));
        assert!(parse_arm("1340").is_err() && parse_arm("").is_err());
    }

    #[test]
    fn a_seed_is_as_good_as_its_number() {
        assert_ne!(seed(1), seed(2));
        assert_eq!(seed(7), seed(7));
    }
}
