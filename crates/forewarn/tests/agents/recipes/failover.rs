//! Fail-over of a primary: a real PostgreSQL pair, and no commit is lost.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Units, file, settings};
use crate::agent::Agent;
use crate::harness::network::run;
use crate::harness::until;
use crate::world::Place;

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

    fn make_directories(&self) {
        let directories = ["data", "socket"].map(|name| self.agent.file(name));
        run(self
            .agent
            .namespace()
            .command("install")
            .args(["-d", "-m", "700", "-o", "postgres"])
            .args(directories));
    }

    /// A new server that replicates to whoever asks.
    fn init(&self, peer: &str) {
        let data = self.agent.file("data");
        run(self.program("initdb").args(["--auth=trust", "--no-sync", "--pgdata"]).arg(&data));
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
        run(self
            .program("pg_basebackup")
            .args(["--host", peer, "--no-sync", "--checkpoint=fast", "--pgdata"])
            .arg(&data));
        self.follow(peer);
        fs::write(data.join("standby.signal"), "").unwrap();
        run(Command::new("chown").arg("postgres").arg(data.join("standby.signal")));
    }

    /// Whom it follows, and where its socket is.
    fn follow(&self, peer: &str) {
        let text = format!(
            "primary_conninfo = 'host={peer} user=postgres'\nunix_socket_directories = '{}'\n",
            self.agent.file("socket").display()
        );
        fs::write(self.agent.file("data/postgresql.auto.conf"), text).unwrap();
    }

    /// What it answers to a statement; nothing, if it does not.
    fn ask(&self, statement: &str) -> Option<String> {
        let mut psql = self.program("psql");
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname=postgres", "--host"]);
        let output = psql.arg(self.agent.file("socket")).args(["--command", statement]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }
}

#[test]
#[ignore = "needs root and packages; `cargo xtask agent` runs it"]
fn the_standby_of_a_pair_takes_over_and_the_old_primary_comes_back_as_its_standby() {
    let place = Place::of(&["db_0", "db_1"]);
    run(Command::new("chmod").args(["-R", "a+rX"]).arg(place.files()));
    let recipe = settings("fail-over");
    let world = place.prepare(&[("db_0", recipe.clone()), ("db_1", recipe)]);
    let (first, second) = (world.agent("db_0"), world.agent("db_1"));
    let units = [Units::new(first), Units::new(second)];
    let (old, new) = (Postgres::new(first), Postgres::new(second));
    for (number, (agent, peer)) in [(first, "db_1"), (second, "db_0")].into_iter().enumerate() {
        let server = Postgres::new(agent);
        let conf = file("fail-over", "failover.conf")
            .replace("/usr/lib/postgresql/15/bin", server.bin.to_str().unwrap())
            .replace("/var/lib/postgresql/15/main", "DIR/data")
            .replace("/var/run/postgresql", "DIR/socket")
            .replace("10.0.0.5", &place.address(peer));
        agent.script("failover.conf", &conf);
        agent.script("lib/failover", &file("fail-over", "failover"));
        let postgres = format!(
            "#!/bin/sh\ncd / && exec setpriv --reuid=postgres --regid=postgres --clear-groups {}/postgres -D DIR/data\n",
            server.bin.display()
        );
        units[number].add(UNIT, &postgres);
        // A fast end, as the unit of Debian has it.
        units[number].stops_by(UNIT, "INT");
        server.make_directories();
    }
    old.init(&place.address("db_1"));
    units[0].systemctl(&["start", UNIT]);
    until("the primary answers", || old.ask("select 1"));
    new.copy(&place.address("db_0"));
    units[1].systemctl(&["start", UNIT]);
    until("the standby follows", || {
        let streams = old.ask("select count(*) from pg_stat_replication where state = 'streaming'");
        (streams.as_deref() == Some("1")).then_some(())
    });
    old.ask("create table sales as select generate_series(1, 1000) as number").expect("the primary takes it");
    world.agents().for_each(Agent::start);
    world.is_settled();
    let reboot = world.announce(&["vm", "restart", "db_0"]);
    world.is(&reboot, "Started");
    assert_eq!(world.approvers(&reboot), ["machine db/db_0"]);
    // The other has all of it, and takes more.
    assert_eq!(new.ask("select pg_is_in_recovery()").as_deref(), Some("f"));
    assert_eq!(new.ask("select count(*) from sales").as_deref(), Some("1000"));
    new.ask("insert into sales values (1001)").expect("the new primary takes it");
    assert!(!units[0].runs(UNIT));
    world.advance("1m");
    until("the old primary follows", || {
        let rows = old.ask("select count(*) from sales");
        (rows.as_deref() == Some("1001")).then_some(())
    });
    assert_eq!(old.ask("select pg_is_in_recovery()").as_deref(), Some("t"));
    first.is_answered_ready("200");
    // An event of a standby changes nothing.
    let again = world.announce(&["vm", "restart", "db_0"]);
    world.is(&again, "Started");
    world.advance("1m");
    first.is_answered_ready("200");
    assert_eq!(new.ask("select pg_is_in_recovery()").as_deref(), Some("f"));
    assert_eq!(old.ask("select pg_is_in_recovery()").as_deref(), Some("t"));
}
