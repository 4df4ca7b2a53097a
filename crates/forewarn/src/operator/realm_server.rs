//! `forewarn server`: the servers of a realm.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{DrainChange, DrainWord, RealmServerView, ServerStateWord};
use forewarn_http_client::Method;

use super::Name;
use super::session::{Session, escaped};
use super::table::{Table, Width, listed};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the servers of the realm
    Ls,
    /// Show a server of the realm
    Show {
        /// Server
        name: Name,
    },
    /// Move all clusters of a server to others; it takes none until it restarts
    #[command(before_help = "Examples:\n  forewarn server drain a1\n  forewarn server drain a1 --off")]
    Drain {
        /// Server
        name: Name,
        /// End the drain: the server may own clusters again
        #[arg(long)]
        off: bool,
    },
    /// Forget servers that are gone, with their archives
    #[command(alias = "rm")]
    Delete {
        /// Servers
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
    },
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Ls => {
            session.list("/v1/servers", |servers: Vec<RealmServerView>| Ok(table(&servers, session.width())))
        }
        Command::Show { name } => session.show(&path(name), |server| Ok(facts(&server))),
        Command::Drain { name, off } => {
            let body = DrainChange { drain: if *off { DrainWord::Off } else { DrainWord::On } };
            let response = session.change(Method::PUT, &format!("{}/drain", path(name)), Some(&body))?;
            session.present(response, |server: RealmServerView| Ok(drained(&server, *off)))
        }
        Command::Delete { names } => names.iter().try_for_each(|name| {
            let response = session.change(Method::DELETE, &path(name), None::<&()>)?;
            session.present(response, |server: RealmServerView| {
                Ok(format!("Server {} forgotten.\n", server.name))
            })
        }),
    }
}

fn path(Name(name): &Name) -> String {
    format!("/v1/servers/{}", escaped(name))
}

fn drained(server: &RealmServerView, off: bool) -> String {
    let name = &server.name;
    match (off, server.clusters.len()) {
        (true, _) => format!("Server {name} may own clusters again.\n"),
        (false, 0) => format!("Server {name} drains. It owns no clusters.\n"),
        (false, 1) => format!("Server {name} drains. It still owns a cluster: forewarn server show {name}\n"),
        (false, left) => {
            format!("Server {name} drains. It still owns {left} clusters: forewarn server show {name}\n")
        }
    }
}

pub(super) fn state(word: ServerStateWord) -> &'static str {
    match word {
        ServerStateWord::Active => "active",
        ServerStateWord::Draining => "draining",
        ServerStateWord::Silent => "silent",
        ServerStateWord::Gone => "gone",
    }
}

pub(super) fn table(servers: &[RealmServerView], width: Width) -> String {
    let headings =
        ["name", "state", "clusters", "heartbeat", "engine", "clock", "version", "zone", "address"];
    let mut table = Table::new(width, &headings).dropping(&["zone", "version", "address", "clock", "engine"]);
    for server in servers {
        table.row([
            server.name.clone(),
            state(server.state).to_owned(),
            server.clusters.len().to_string(),
            heartbeat(server),
            server.engine_millis.map(age).unwrap_or_default(),
            server.clock_ahead_millis.map(difference).unwrap_or_default(),
            server.version.clone().unwrap_or_default(),
            server.zone.clone().unwrap_or_default(),
            server.address.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

fn facts(server: &RealmServerView) -> String {
    let none = || "-".to_owned();
    let formats: Vec<_> = server.formats.iter().map(u32::to_string).collect();
    Table::facts([
        ("name", server.name.clone()),
        ("state", state(server.state).to_owned()),
        ("address", server.address.clone().unwrap_or_else(none)),
        ("version", server.version.clone().unwrap_or_else(none)),
        ("formats", listed(&formats)),
        ("zone", server.zone.clone().unwrap_or_else(none)),
        ("clusters", listed(&server.clusters)),
        ("heartbeat", heartbeat(server)),
        ("engine", server.engine_millis.map(age).unwrap_or_else(none)),
        ("clock", server.clock_ahead_millis.map(difference).unwrap_or_else(none)),
    ])
    .to_string()
}

/// The age of the last heartbeat. The answering server sends itself none.
fn heartbeat(server: &RealmServerView) -> String {
    match server.heartbeat_millis {
        Some(millis) => age(millis),
        None if server.answering => "this server".to_owned(),
        None => String::new(),
    }
}

/// A past duration: milliseconds up to ten seconds.
fn age(millis: u64) -> String {
    if millis < 10_000 { format!("{millis} ms ago") } else { format!("{} s ago", millis / 1_000) }
}

fn difference(millis: i64) -> String {
    match millis {
        0 => "same".to_owned(),
        1.. => format!("{millis} ms ahead"),
        _ => format!("{} ms behind", millis.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> Vec<RealmServerView> {
        let json = r#"[
            {"name":"a1","state":"active","address":"10.0.0.1:7","version":"0.1.0","formats":[1],"zone":"z1",
             "clusters":["default","west"],"answering":true,"heartbeat_millis":null,"engine_millis":4,"clock_ahead_millis":0},
            {"name":"a2","state":"draining","address":"10.0.0.2:7","version":"0.1.0","formats":[1],"zone":null,
             "clusters":[],"answering":false,"heartbeat_millis":120,"engine_millis":8,"clock_ahead_millis":-3},
            {"name":"a3","state":"gone","address":null,"version":null,"formats":[],"zone":null,"clusters":[],
             "answering":false,"heartbeat_millis":null,"engine_millis":null,"clock_ahead_millis":null}]"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn servers_are_listed_with_their_state() {
        assert_eq!(
            table(&servers(), Width::Wide),
            "NAME  STATE     CLUSTERS  HEARTBEAT    ENGINE    CLOCK        VERSION  ZONE  ADDRESS\n\
             a1    active    2         this server  4 ms ago  same         0.1.0    z1    10.0.0.1:7\n\
             a2    draining  0         120 ms ago   8 ms ago  3 ms behind  0.1.0    -     10.0.0.2:7\n\
             a3    gone      0         -            -         -            -        -     -\n"
        );
    }

    #[test]
    fn a_drain_says_what_is_left() {
        let servers = servers();
        assert!(
            drained(&servers[0], false).contains("It still owns 2 clusters"),
            "{}",
            drained(&servers[0], false)
        );
        assert_eq!(drained(&servers[1], false), "Server a2 drains. It owns no clusters.\n");
        assert_eq!(drained(&servers[1], true), "Server a2 may own clusters again.\n");
    }
}
