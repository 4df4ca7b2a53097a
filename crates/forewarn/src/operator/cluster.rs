//! `forewarn cluster`: independent groups of hosts and tenants.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{BrakeWord, ClusterChange, ClusterView, NewCluster, Outcome};
use forewarn_http_client::Method;

use super::sentences::Wording;
use super::session::{Session, escaped};
use super::table::Table;
use super::{Name, sentences};

const EXAMPLES: &str = "\
Examples:
  forewarn cluster create west
  forewarn --cluster west host ls        or FOREWARN_CLUSTER=west";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List clusters
    Ls,
    /// Show a cluster
    Show {
        /// Cluster
        name: Name,
    },
    /// Create an empty cluster
    #[command(before_help = EXAMPLES)]
    Create {
        /// Name of the cluster
        name: Name,
    },
    /// Rename a cluster; the first cluster cannot be renamed
    Rename {
        /// Current name
        name: Name,
        /// New name
        new: Name,
    },
    /// Remove empty clusters, and tokens that are limited to them
    Rm {
        /// Clusters
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
    },
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Ls => session.list("/v1/clusters", |clusters: Vec<ClusterView>| Ok(table(&clusters))),
        Command::Show { name } => session.show(&path(name), |cluster| Ok(facts(cluster))),
        Command::Create { name: Name(name) } => {
            let body = NewCluster { name: name.clone() };
            session.send("/v1/clusters", &body, sentence(Wording::creation("cluster", name)))
        }
        Command::Rename { name, new: Name(new) } => {
            let body = ClusterChange { name: new.clone() };
            let response = session.change(Method::PATCH, &path(name), Some(&body))?;
            let wording = Wording {
                noun: format!("new name of cluster {}", name.0),
                done: format!("Cluster {} renamed to {new}.", name.0),
                unchanged: format!("The name of the cluster is already {new}."),
            };
            session.present(response, sentence(wording))
        }
        Command::Rm { names } => names.iter().try_for_each(|name| {
            let response = session.change(Method::DELETE, &path(name), None::<&()>)?;
            session.present(response, sentence(Wording::removal("cluster", &name.0)))
        }),
    }
}

fn path(Name(name): &Name) -> String {
    format!("/v1/clusters/{}", escaped(name))
}

fn sentence(wording: Wording) -> impl FnOnce(Outcome) -> Result<String> {
    move |outcome| Ok(sentences::outcome(&outcome, &wording))
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
        BrakeWord::On => "on: no event starts",
        BrakeWord::Off => "off",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_listed_with_their_size() {
        let json = r#"[{"name":"default","hosts":10,"tenants":6,"machines":14,"brake":"off"},
                       {"name":"west","hosts":null,"tenants":0,"machines":0,"brake":"on"}]"#;
        let clusters: Vec<ClusterView> = serde_json::from_str(json).unwrap();
        assert_eq!(
            table(&clusters),
            "NAME     HOSTS  TENANTS  MACHINES  BRAKE\n\
             default  10     6        14        off\n\
             west     -      0        0         on: no event starts\n"
        );
    }
}
