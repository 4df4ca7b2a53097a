//! `forewarn realm dev`: a realm on this computer, to see what happens when its parts are lost.
//!
//! ```text
//!   this process ──starts──▶ 3 members of etcd, servers (`forewarn serve`)
//!     ├── reads owners and the leader from etcd
//!     ├── writes to each cluster through all servers, which shows gaps
//!     └── prints changes, and on a terminal a table
//! ```
//!
//! Everything it has started ends with it, and its directory is removed.

mod board;
mod etcd_program;
mod observation;
mod process;
mod screen;
mod site;
mod writes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use forewarn_cli_support::log::{self, Detail, Format};
use forewarn_control::ClusterId;
use forewarn_server::REALM_SPEED_MAX;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::operator::{self, GlobalOptions, RealmCommand};
use board::{BoardChange, OwnerView, RealmBoard};
use etcd_program::EtcdProgram;
use observation::EtcdReader;
use process::{ProcessRole, end_in_words};
use screen::Screen;
use site::RealmSite;
use writes::ClusterWriter;

/// Clusters besides the default one, so that each server owns something.
const MORE_CLUSTERS: [&str; 2] = ["east", "west"];

/// Interval of looks at processes, and of drawing.
const TICK: Duration = Duration::from_millis(100);

/// Longest start of etcd.
const ETCD_START_MAX: Duration = Duration::from_secs(30);

/// Events that wait to be shown.
const EVENTS_MAX: usize = 1_000;

#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Operator(RealmCommand),
    Dev(RealmDevArgs),
}

/// Run a realm on this computer: three members of etcd and several servers, to try the loss of any of them
///
/// Shows the owner and the term of each cluster, and for how long no write was acknowledged. Nothing that was killed is
/// started again, unless --restart is given. Ctrl-C ends everything and removes its temporary directory.
#[derive(Args, Debug)]
#[command(before_help = "\
Examples:
  forewarn realm dev                            then, in another terminal, what it prints
  forewarn realm dev --speed 1 --restart 10s    the real clock; what was killed comes back
  forewarn realm dev --json | jq -r 'select(.kind == \"gap\")'")]
pub(crate) struct RealmDevArgs {
    /// Speed of the clock of all servers, in seconds per second: 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = parse_speed)]
    speed: u32,
    /// Number of servers: 1 to 9
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = parse_servers)]
    servers: usize,
    /// Start a process that has ended again, after this time [default: never]
    #[arg(long, value_name = "DURATION", value_parser = parse_restart)]
    restart: Option<Duration>,
    /// Program of etcd [default: `etcd` on the path]
    #[arg(long, value_name = "PROGRAM")]
    etcd: Option<PathBuf>,
}

/// Something that has happened in the realm.
enum RealmEvent {
    Owners(BTreeMap<ClusterId, OwnerView>),
    Leader(Option<usize>),
    /// A write to a cluster was acknowledged.
    Written(ClusterId),
}

fn parse_speed(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse().ok();
    let wrong = || format!("not a whole number from 1 to {REALM_SPEED_MAX}: write 60 or 60x");
    number.filter(|speed| (1..=REALM_SPEED_MAX).contains(speed)).ok_or_else(wrong)
}

fn parse_servers(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=9).contains(number));
    number.ok_or_else(|| "not a whole number from 1 to 9: write 3".to_owned())
}

fn parse_restart(text: &str) -> Result<Duration, String> {
    forewarn_types::parse_duration(text).ok_or_else(|| "not a duration: write 5s or 1m".to_owned())
}

/// `forewarn realm`: commands for a running realm, and a realm for one person.
pub(crate) fn run(command: Command, options: &GlobalOptions) -> Result<()> {
    match command {
        Command::Operator(command) => operator::run(options, operator::Command::Realm(command)),
        Command::Dev(arguments) => dev(&arguments, options),
    }
}

fn dev(arguments: &RealmDevArgs, options: &GlobalOptions) -> Result<()> {
    log::start(Format::Text, Detail::Warn);
    let etcd = EtcdProgram::find(arguments.etcd.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // From here on signals are queued: none ends this program while its processes run.
        let mut signals = EndSignals::watch()?;
        let mut site = RealmSite::plan(&etcd, arguments.servers, arguments.speed)?;
        let mut screen = Screen::new(options.output());
        let outcome = tokio::select! {
            outcome = live(arguments, &etcd, &mut site, &mut screen) => outcome,
            () = signals.next() => Ok(()),
        };
        screen.close(site.directory.path());
        tokio::select! {
            () = site.end() => {}
            // Whatever still runs is killed.
            () = signals.next() => {}
        }
        outcome
    })
}

/// Signals that end the program.
struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl EndSignals {
    fn watch() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// Starts everything, and shows it. Returns an error if the start fails, or the output is closed.
async fn live(
    arguments: &RealmDevArgs,
    etcd: &EtcdProgram,
    site: &mut RealmSite,
    screen: &mut Screen,
) -> Result<()> {
    let clusters: Vec<_> = std::iter::once("default").chain(MORE_CLUSTERS).map(str::to_owned).collect();
    let clusters: Vec<_> = (0..).map(ClusterId).zip(clusters).collect();
    let sockets: Vec<_> = site.servers.iter().map(|server| server.socket.clone()).collect();
    let writer = |(cluster, name): &(ClusterId, String)| ClusterWriter {
        cluster: *cluster,
        name: name.clone(),
        sockets: sockets.clone(),
    };
    let writers: Vec<_> = clusters.iter().map(writer).collect();
    let reader = EtcdReader::new(&site.endpoints)?;
    let mut realm = LiveRealm { site, screen, board: RealmBoard::new(&clusters), begin: Instant::now() };
    realm.screen.note(&format!("starting etcd {} and {} servers", etcd.version, arguments.servers))?;
    realm.start_role(ProcessRole::Member)?;
    realm.wait_for_etcd(&reader).await?;
    realm.start_role(ProcessRole::Server)?;
    tokio::select! {
        created = create(&writers) => created?,
        lost = realm.lose_one() => return Err(lost),
    }
    let (events, inbox) = mpsc::channel(EVENTS_MAX);
    tokio::spawn(reader.report(events.clone()));
    writers.into_iter().for_each(|writer| drop(tokio::spawn(writer.write(events.clone()))));
    realm.show(inbox, arguments).await
}

/// Creates all clusters, one after the other: their numbers follow that order.
async fn create(writers: &[ClusterWriter]) -> Result<()> {
    for writer in writers {
        writer.create().await?;
    }
    Ok(())
}

/// A realm that runs.
struct LiveRealm<'a> {
    site: &'a mut RealmSite,
    screen: &'a mut Screen,
    board: RealmBoard,
    begin: Instant,
}

impl LiveRealm<'_> {
    fn start_role(&mut self, role: ProcessRole) -> Result<()> {
        for process in self.site.of_role(role) {
            process.start()?;
            if let Some(pid) = process.pid() {
                self.board.started(role, &process.name, pid);
            }
        }
        Ok(())
    }

    async fn wait_for_etcd(&mut self, reader: &EtcdReader) -> Result<()> {
        let deadline = Instant::now() + ETCD_START_MAX;
        while reader.leader().await.is_none() {
            if let Some(lost) = self.lost() {
                return Err(lost);
            }
            if Instant::now() > deadline {
                bail!("etcd has no leader after {} seconds", ETCD_START_MAX.as_secs());
            }
            sleep(TICK).await;
        }
        Ok(())
    }

    /// The error of a process that has ended during the start.
    fn lost(&mut self) -> Option<anyhow::Error> {
        let mut processes = self.site.processes.iter_mut();
        processes.find_map(|process| {
            let (_, status) = process.end()?;
            Some(anyhow::anyhow!(
                "{} {} before the realm was ready\n  {}",
                process.name,
                end_in_words(status),
                process.last_lines()
            ))
        })
    }

    /// Waits until a process ends.
    async fn lose_one(&mut self) -> anyhow::Error {
        loop {
            if let Some(lost) = self.lost() {
                return lost;
            }
            sleep(TICK).await;
        }
    }

    /// Shows changes, until the output is closed.
    async fn show(&mut self, mut events: mpsc::Receiver<RealmEvent>, arguments: &RealmDevArgs) -> Result<()> {
        let (mut tick, mut is_ready) = (tokio::time::interval(TICK), false);
        loop {
            let changes = tokio::select! {
                event = events.recv() => self.changes(event.context("the realm is not observed any more")?),
                _ = tick.tick() => self.look_at_processes(arguments.restart)?,
            };
            let now = self.begin.elapsed();
            for change in changes {
                self.screen.change(now, &change)?;
            }
            if !is_ready && self.board.is_ready() {
                is_ready = true;
                self.screen.ready(self.site, &self.board, arguments.speed)?;
            }
            if is_ready {
                self.screen.draw(now, &self.board)?;
            }
        }
    }

    fn changes(&mut self, event: RealmEvent) -> Vec<BoardChange> {
        match event {
            RealmEvent::Owners(owners) => self.board.set_owners(owners),
            RealmEvent::Leader(leader) => self.board.set_leader(leader).into_iter().collect(),
            RealmEvent::Written(cluster) => {
                self.board.written(cluster, self.begin.elapsed()).into_iter().collect()
            }
        }
    }

    /// Takes note of processes that have ended, and starts them again if that is wanted.
    fn look_at_processes(&mut self, restart: Option<Duration>) -> Result<Vec<BoardChange>> {
        let mut changes = Vec::new();
        for process in &mut self.site.processes {
            if let Some((pid, status)) = process.end() {
                changes.push(self.board.ended(&process.name, pid, end_in_words(status)));
            }
            if restart.is_some_and(|after| process.is_down_for(after)) {
                process.start()?;
                let pid = process.pid();
                changes.extend(pid.map(|pid| self.board.started(process.role, &process.name, pid)));
            }
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_the_command_line_have_limits() {
        assert_eq!((parse_speed("1"), parse_speed("60x"), parse_speed("1000")), (Ok(1), Ok(60), Ok(1_000)));
        for wrong in ["0", "1001", "", "x", "-1", "fast"] {
            assert!(parse_speed(wrong).is_err(), "{wrong}");
        }
        assert_eq!((parse_servers("1"), parse_servers("9")), (Ok(1), Ok(9)));
        assert!(["0", "10", "three"].into_iter().all(|wrong| parse_servers(wrong).is_err()));
        assert_eq!(parse_restart("5s"), Ok(Duration::from_secs(5)));
        assert!(parse_restart("soon").is_err());
    }
}
