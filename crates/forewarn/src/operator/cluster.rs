//! `forewarn cluster`: hosts and tenants that have nothing to do with others.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{BrakeWord, ClusterChange, ClusterView, NewCluster, Outcome};
use forewarn_http_client::Method;

use super::session::{Session, escaped};
use super::table::Table;
use super::{Named, say};

const EXAMPLES: &str = "\
Examples:
  forewarn cluster create west
  forewarn --cluster west host ls        or FOREWARN_CLUSTER=west";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List clusters.
    Ls,
    /// Show a cluster.
    Show {
        /// Its name.
        name: Named,
    },
    /// Create a cluster, with nothing in it.
    #[command(after_help = EXAMPLES)]
    Create {
        /// Its name.
        name: Named,
    },
    /// Give a cluster another name. The first keeps its own.
    Rename {
        /// What it is called.
        name: Named,
        /// What it is to be called.
        new: Named,
    },
    /// Remove clusters that have nothing in them. Tokens that are good for nothing else go with them.
    Rm {
        /// Their names.
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Named>,
    },
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Ls => session.list("/v1/clusters", |clusters: Vec<ClusterView>| Ok(table(&clusters))),
        Command::Show { name } => session.show(&path(name), |cluster| Ok(facts(cluster))),
        Command::Create { name: Named(name) } => {
            let body = NewCluster { name: name.clone() };
            session.ask("/v1/clusters", &body, said(format!("cluster {name}")))
        }
        Command::Rename { name, new: Named(new) } => {
            let body = ClusterChange { name: new.clone() };
            let answer = session.change(Method::PATCH, &path(name), Some(&body))?;
            session.present(answer, said(format!("cluster {} is called {new}", name.0)))
        }
        Command::Rm { names } => names.iter().try_for_each(|name| {
            let answer = session.change(Method::DELETE, &path(name), None::<&()>)?;
            session.present(answer, said(format!("cluster {} is removed", name.0)))
        }),
    }
}

fn path(Named(name): &Named) -> String {
    format!("/v1/clusters/{}", escaped(name))
}

fn said(phrase: String) -> impl FnOnce(Outcome) -> Result<String> {
    move |outcome| Ok(say::outcome(&outcome, &phrase))
}

fn table(clusters: &[ClusterView]) -> String {
    let mut table = Table::new(&["name", "hosts", "tenants", "machines", "brake"]);
    for cluster in clusters {
        table.row([
            cluster.name.clone(),
            hosts(cluster),
            cluster.tenants.to_string(),
            cluster.machines.to_string(),
            brake(cluster.brake).to_owned(),
        ]);
    }
    table.to_string()
}

fn facts(cluster: ClusterView) -> String {
    let hosts = hosts(&cluster);
    let facts = [
        ("name", cluster.name),
        ("hosts", hosts),
        ("tenants", cluster.tenants.to_string()),
        ("machines", cluster.machines.to_string()),
        ("brake", brake(cluster.brake).to_owned()),
    ];
    Table::facts(facts).to_string()
}

fn hosts(cluster: &ClusterView) -> String {
    cluster.hosts.map(|hosts| hosts.to_string()).unwrap_or_default()
}

pub(super) fn brake(word: BrakeWord) -> &'static str {
    match word {
        BrakeWord::On => "on: nothing starts",
        BrakeWord::Off => "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_listed_with_how_much_is_in_them() {
        let json = r#"[{"name":"default","hosts":10,"tenants":6,"machines":14,"brake":"off"},
                       {"name":"west","hosts":null,"tenants":0,"machines":0,"brake":"on"}]"#;
        let clusters: Vec<ClusterView> = serde_json::from_str(json).unwrap();
        assert_eq!(
            table(&clusters),
            "NAME     HOSTS  TENANTS  MACHINES  BRAKE\n\
             default  10     6        14        off\n\
             west     -      0        0         on: nothing starts\n"
        );
    }
}
