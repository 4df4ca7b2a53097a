//! Fail-over of a primary: a real PostgreSQL pair, and no commit is lost.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::{file, settings};
use forewarn_testkit::agents::Agent;
use forewarn_testkit::agents::Units;
use forewarn_testkit::agents::{AgentNetwork, RunningAgents};
use forewarn_testkit::command::stdout_of;
use forewarn_testkit::wait_until;

const UNIT: &str = "postgresql@15-main.service";

/// One server of the pair.
struct Postgres<'a> {
    agent: &'a Agent<'a>,
    bin: PathBuf,
}

impl<'a> Postgres<'a> {
    fn new(agent: &'a Agent<'a>) -> Self {
        let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
        let newest = versions.filter_map(Result::ok).map(|entry| entry.path()).max().expect("a version");
        Self { agent, bin: newest.join("bin") }
    }

    /// A program of PostgreSQL, as its owner, in its machine.
    fn program(&self, name: &str) -> Command {
        let mut command = self.agent.namespace().command("runuser");
        command.args(["-u", "postgres", "--"]).arg(self.bin.join(name)).current_dir("/");
        command
    }

    /// What the recipe needs of it, and a unit.
    fn install(&self, units: &Units<'_>, peer: &str) {
        let bin = self.bin.to_str().expect("a path that is text");
        let conf = file("fail-over", "failover.conf")
            .replace("/usr/lib/postgresql/15/bin", bin)
            .replace("/var/lib/postgresql/15/main", "DIR/data")
            .replace("/var/run/postgresql", "DIR/socket")
            .replace("10.0.0.5", peer);
        self.agent.script("failover.conf", &conf);
        self.agent.script("lib/failover", &file("fail-over", "failover"));
        let owner = "setpriv --reuid=postgres --regid=postgres --clear-groups";
        units.add(UNIT, &format!("#!/bin/sh\ncd / && exec {owner} {bin}/postgres -D DIR/data\n"));
        // A fast end, as the unit of Debian has it.
        units.stops_by(UNIT, "INT");
        self.make_directories();
    }

    fn make_directories(&self) {
        let directories = ["data", "socket"].map(|name| self.agent.file(name));
        stdout_of(
            self.agent
                .namespace()
                .command("install")
                .args(["-d", "-m", "700", "-o", "postgres"])
                .args(directories),
        );
    }

    /// A new server that replicates to whoever asks.
    fn init(&self, peer: &str) {
        let data = self.agent.file("data");
        stdout_of(self.program("initdb").args(["--auth=trust", "--no-sync", "--pgdata"]).arg(&data));
        let more = "listen_addresses = '*'\nwal_log_hints = on\nfsync = off\n";
        let own = fs::read_to_string(data.join("postgresql.conf")).unwrap() + more;
        fs::write(data.join("postgresql.conf"), own).unwrap();
        let access =
            "local all all trust\nhost all all 10.77.0.0/16 trust\nhost replication all 10.77.0.0/16 trust\n";
        fs::write(data.join("pg_hba.conf"), access).unwrap();
        self.follow(peer);
    }

    /// A copy of the other, as its standby.
    fn copy(&self, peer: &str) {
        let data = self.agent.file("data");
        stdout_of(
            self.program("pg_basebackup")
                .args(["--host", peer, "--no-sync", "--checkpoint=fast", "--pgdata"])
                .arg(&data),
        );
        self.follow(peer);
        fs::write(data.join("standby.signal"), "").unwrap();
        stdout_of(Command::new("chown").arg("postgres").arg(data.join("standby.signal")));
    }

    /// Whom it follows, and where its socket is.
    fn follow(&self, peer: &str) {
        let text = format!(
            "primary_conninfo = 'host={peer} user=postgres'\nunix_socket_directories = '{}'\n",
            self.agent.file("socket").display()
        );
        fs::write(self.agent.file("data/postgresql.auto.conf"), text).unwrap();
    }

    /// A client of it, in its machine.
    fn client(&self) -> Command {
        let mut psql = self.program("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname=postgres", "--host"]);
        psql.arg(self.agent.file("socket"));
        psql
    }

    /// What it answers to a statement; nothing, if it does not.
    fn ask(&self, statement: &str) -> Option<String> {
        let output = self.client().args(["--command", statement]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }
}

/// Somebody who sells without a pause, one commit for each number from 1001 on, until the server refuses.
struct Seller<'a> {
    client: Child,
    agent: &'a Agent<'a>,
}

impl<'a> Seller<'a> {
    fn at(server: &Postgres<'a>) -> Self {
        let sales = "seq 1001 100000000 | sed 's/.*/insert into sales values (&) returning number;/'";
        let psql = server.client();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{sales} | \"$@\""), "sh"]).arg(psql.get_program()).args(psql.get_args());
        shell.args(["--variable", "ON_ERROR_STOP=1"]).current_dir("/");
        shell.stdout(File::create(server.agent.file("sold")).unwrap()).stderr(Stdio::null());
        let seller = Self { client: shell.spawn().unwrap(), agent: server.agent };
        wait_until("something is sold", || (!seller.sold().is_empty()).then_some(()));
        seller
    }

    /// What the server has said that it has kept, in order.
    fn sold(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.agent.file("sold")).unwrap();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        whole.lines().map(|number| number.parse().expect("a number")).collect()
    }

    /// All that was sold until the server refused.
    fn until_refused(mut self) -> Vec<u32> {
        let status = wait_until("sales are refused", || self.client.try_wait().unwrap());
        assert!(!status.success(), "{status}");
        self.sold()
    }
}

impl Drop for Seller<'_> {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.client.kill().ok();
        self.client.wait().ok();
    }
}

/// The pair: `db_0` is the primary, `db_1` its standby, and both have the recipe.
struct Pair<'a> {
    units: [Units<'a>; 2],
    old: Postgres<'a>,
    new: Postgres<'a>,
}

fn begin<'a>(place: &'a AgentNetwork, world: &'a RunningAgents<'a>) -> Pair<'a> {
    let (first, second) = (world.agent("db_0"), world.agent("db_1"));
    let units = [super::units(first), super::units(second)];
    let (old, new) = (Postgres::new(first), Postgres::new(second));
    for ((server, units), peer) in [&old, &new].into_iter().zip(&units).zip(["db_1", "db_0"]) {
        server.install(units, &place.address(peer));
    }
    old.init(&place.address("db_1"));
    units[0].systemctl(&["start", UNIT]);
    wait_until("the primary answers", || old.ask("select 1"));
    new.copy(&place.address("db_0"));
    units[1].systemctl(&["start", UNIT]);
    wait_until("the standby follows", || {
        let streams = old.ask("select count(*) from pg_stat_replication where state = 'streaming'");
        (streams.as_deref() == Some("1")).then_some(())
    });
    old.ask("create table sales as select generate_series(1, 1000) as number").expect("the primary takes it");
    world.agents().for_each(Agent::start);
    world.is_settled();
    Pair { units, old, new }
}

fn place_for_all() -> AgentNetwork {
    let place = AgentNetwork::of(crate::program(), &["db_0", "db_1"]);
    stdout_of(Command::new("chmod").arg("755").arg(place.files()));
    place
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn the_standby_of_a_pair_takes_over_and_the_old_primary_comes_back_as_its_standby() {
    let place = place_for_all();
    let recipe = settings("fail-over");
    let world = place.prepare(&[("db_0", recipe.clone()), ("db_1", recipe)]);
    let Pair { units, old, new } = begin(&place, &world);
    let seller = Seller::at(&old);
    let reboot = world.restart("db_0");
    assert_eq!(world.approvers(&reboot), ["machine db/db_0"]);
    // The other has every sale that the old one has said it kept, and takes more.
    let sold = seller.until_refused();
    let kept = new.ask("select number from sales where number > 1000 order by number").expect("it answers");
    let kept: Vec<u32> = kept.lines().map(|number| number.parse().unwrap()).collect();
    assert!(kept.starts_with(&sold), "sold: {}, kept: {}", sold.len(), kept.len());
    assert_eq!(new.ask("select pg_is_in_recovery()").as_deref(), Some("f"));
    assert_eq!(new.ask("select count(*) from sales where number <= 1000").as_deref(), Some("1000"));
    new.ask("insert into sales values (-1)").expect("the new primary takes it");
    assert!(!units[0].runs(UNIT));
    world.advance("1m");
    wait_until("the old primary follows", || {
        (old.ask("select count(*) from sales where number = -1").as_deref() == Some("1")).then_some(())
    });
    assert_eq!(old.ask("select pg_is_in_recovery()").as_deref(), Some("t"));
    world.agent("db_0").is_answered_ready("200");
    // An event of a standby changes nothing.
    world.restart("db_0");
    world.advance("1m");
    world.agent("db_0").is_answered_ready("200");
    assert_eq!(new.ask("select pg_is_in_recovery()").as_deref(), Some("f"));
    assert_eq!(old.ask("select pg_is_in_recovery()").as_deref(), Some("t"));
}

/// promise: A7
#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn an_old_primary_that_was_written_to_meanwhile_is_rewound() {
    let place = place_for_all();
    let recipe = settings("fail-over");
    let world = place.prepare(&[("db_0", recipe.clone()), ("db_1", recipe)]);
    let Pair { units, old, new } = begin(&place, &world);
    world.restart("db_0");
    new.ask("insert into sales values (1001)").expect("the new primary takes it");
    // Somebody means well.
    fs::remove_file(world.agent("db_0").file("data/standby.signal")).unwrap();
    units[0].systemctl(&["start", UNIT]);
    wait_until("the old primary answers", || old.ask("select 1"));
    old.ask("insert into sales values (-1), (-2)").expect("it takes what nobody will ever see");
    world.advance("1m");
    wait_until("the old primary follows", || {
        (old.ask("select count(*) from sales").as_deref() == Some("1001")).then_some(())
    });
    assert_eq!(old.ask("select pg_is_in_recovery()").as_deref(), Some("t"));
    world.agent("db_0").is_answered_ready("200");
}
