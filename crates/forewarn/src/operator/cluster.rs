//! `forewarn cluster`: independent groups of hosts and tenants.

use anyhow::Result;
use clap::Subcommand;
use forewarn_control::{
    BrakeWord, ClusterChange, ClusterMoveRequest, ClusterOwnerView, ClusterView, NewCluster, Outcome,
};
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
    /// Move a cluster to a server of the realm, which is preferred from now on
    #[command(before_help = "Example:\n  forewarn cluster move west --to a2")]
    Move {
        /// Cluster
        name: Name,
        /// Server that should own the cluster
        #[arg(long, value_name = "SERVER")]
        to: Name,
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
        Command::Move { name, to: Name(to) } => {
            let body = ClusterMoveRequest { to: to.clone() };
            let response = session.post(&format!("{}/move", path(name)), &body)?;
            session.present(response, |owner: ClusterOwnerView| {
                let server = owner.server.unwrap_or_default();
                Ok(format!("Cluster {} is owned by {server} (term {}).\n", name.0, owner.term))
            })
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

/// The column of failures is only there if a cluster has failed, those of the owner only in a realm.
fn table(clusters: &[ClusterView], width: Width) -> String {
    let has_failed = clusters.iter().any(|cluster| cluster.failure.is_some());
    let failure = has_failed.then_some("failure");
    let has_owners = clusters.iter().any(|cluster| cluster.owner.is_some());
    let owner = if has_owners { &["owner", "term"][..] } else { &[] };
    let headings = ["name", "hosts", "tenants", "machines", "brake"].into_iter();
    let headings: Vec<_> = headings.chain(owner.iter().copied()).chain(failure).collect();
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
        let owner = has_owners.then(|| owner_cells(cluster.owner.as_ref()));
        table.row(cells.into_iter().chain(owner.into_iter().flatten()).chain(failure));
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
    let owner = cluster.owner.map(|owner| {
        let none = || "-".to_owned();
        [
            ("owner", owner.server.unwrap_or_else(none)),
            ("term", owner.term.to_string()),
            ("preferred", owner.preferred.unwrap_or_else(none)),
        ]
    });
    Table::facts(facts.into_iter().chain(owner.into_iter().flatten()).chain(failure)).to_string()
}

fn owner_cells(owner: Option<&ClusterOwnerView>) -> [String; 2] {
    let server = owner.and_then(|owner| owner.server.clone());
    [server.unwrap_or_default(), owner.map(|owner| owner.term.to_string()).unwrap_or_default()]
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
    fn a_cluster_of_a_realm_has_an_owner() {
        let json = r#"[{"name":"default","hosts":1,"tenants":1,"machines":2,"brake":"off",
                        "owner":{"server":"a1","term":3,"preferred":"a2"}},
                       {"name":"west","hosts":0,"tenants":0,"machines":0,"brake":"off",
                        "owner":{"server":null,"term":0,"preferred":null}}]"#;
        let clusters: Vec<ClusterView> = serde_json::from_str(json).unwrap();
        assert_eq!(
            table(&clusters, Width::USUAL),
            "NAME     HOSTS  TENANTS  MACHINES  BRAKE  OWNER  TERM\n\
             default  1      1        2         off    a1     3\n\
             west     0      0        0         off    -      0\n"
        );
        let shown = clusters.into_iter().map(facts).next().unwrap();
        assert!(shown.ends_with("owner      a1\nterm       3\npreferred  a2\n"), "{shown}");
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
