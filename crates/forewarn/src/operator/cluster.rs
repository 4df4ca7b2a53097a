//! `forewarn cluster`: independent groups of hosts and tenants.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{BrakeWord, ClusterChange, ClusterView, NewCluster, Outcome};
use forewarn_http_client::Method;

use super::sentences::Wording;
use super::session::{Session, escaped};
use super::table::{Table, Width};
use super::visible::flat;
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
    /// Delete empty clusters, and tokens that are limited to them
    #[command(alias = "rm")]
    Delete {
        /// Clusters
        #[arg(required = true, value_name = "NAME")]
        names: Vec<Name>,
    },
}

pub(super) fn run(session: &Session, command: &Command) -> Result<()> {
    match command {
        Command::Ls => {
            session.list("/v1/clusters", |clusters: Vec<ClusterView>| Ok(table(&clusters, session.width())))
        }
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
        Command::Delete { names } => names.iter().try_for_each(|name| {
            let response = session.change(Method::DELETE, &path(name), None::<&()>)?;
            session.present(response, sentence(Wording::deletion("cluster", &name.0)))
        }),
    }
}

fn path(Name(name): &Name) -> String {
    format!("/v1/clusters/{}", escaped(name))
}

fn sentence(wording: Wording) -> impl FnOnce(Outcome) -> Result<String> {
    move |outcome| Ok(sentences::outcome(&outcome, &wording))
}

/// The column of failures is only there if a cluster has failed.
fn table(clusters: &[ClusterView], width: Width) -> String {
    let has_failed = clusters.iter().any(|cluster| cluster.failure.is_some());
    let failure = has_failed.then_some("failure");
    let headings: Vec<_> =
        ["name", "hosts", "tenants", "machines", "brake"].into_iter().chain(failure).collect();
    let dropped = ["hosts", "tenants", "machines", "brake"];
    let mut table = Table::new(width, &headings).dropping(&dropped);
    for cluster in clusters {
        let cells = [
            cluster.name.clone(),
            hosts(cluster),
            cluster.tenants.to_string(),
            cluster.machines.to_string(),
            brake(cluster.brake).to_owned(),
        ];
        let failure = has_failed.then(|| cluster.failure.as_deref().map(flat).unwrap_or_default());
        table.row(cells.into_iter().chain(failure));
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
    let failure = cluster.failure.map(|failure| ("failure", flat(&failure)));
    Table::facts(facts.into_iter().chain(failure)).to_string()
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
            table(&clusters, Width::USUAL),
            "NAME     HOSTS  TENANTS  MACHINES  BRAKE\n\
             default  10     6        14        off\n\
             west     -      0        0         on: no event starts\n"
        );
    }

    #[test]
    fn a_failure_is_shown_where_there_is_one() {
        let json = r#"[{"name":"default","hosts":1,"tenants":1,"machines":2,"brake":"off"},
                       {"name":"west","hosts":0,"tenants":0,"machines":0,"brake":"off","failure":"its driver\nfailed"}]"#;
        let clusters: Vec<ClusterView> = serde_json::from_str(json).unwrap();
        assert_eq!(
            table(&clusters, Width::USUAL),
            "NAME     HOSTS  TENANTS  MACHINES  BRAKE  FAILURE\n\
             default  1      1        2         off    -\n\
             west     0      0        0         off    its driver; failed\n"
        );
        let shown = clusters.into_iter().map(facts).collect::<Vec<_>>();
        assert!(shown[0].ends_with("brake     off\n"), "{}", shown[0]);
        assert!(shown[1].ends_with("brake     off\nfailure   its driver; failed\n"), "{}", shown[1]);
    }
}
