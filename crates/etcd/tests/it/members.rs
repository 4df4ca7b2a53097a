//! The status of members, and the list of them.

use std::collections::BTreeSet;

use forewarn_testkit::etcd::EtcdCluster;

use crate::support::{patient_client, put, until};

#[tokio::test]
async fn every_member_has_a_status_and_all_name_one_leader() {
    let Some(cluster) = EtcdCluster::start(3) else { return };
    let client = patient_client(&cluster);
    let revision = put(&client, "k", "v").await;
    let urls: BTreeSet<_> = cluster.endpoints().into_iter().collect();
    let members = until("every member has published its URL", async || {
        let members = client.members().await.unwrap();
        let published = members.members.iter().flat_map(|member| member.client_urls.clone());
        (published.collect::<BTreeSet<_>>() == urls).then_some(members)
    });
    let members = members.await;
    let ids: BTreeSet<_> = members.members.iter().map(|member| member.id).collect();
    assert_eq!(ids.len(), 3);
    let mut seen = BTreeSet::new();
    for endpoint in 0..3 {
        let status = client.status(endpoint).await.unwrap();
        assert!(status.version.starts_with("3."), "{status:?}");
        assert!(status.database_bytes >= status.database_bytes_in_use, "{status:?}");
        assert!(status.database_bytes_in_use > 0 && status.raft_index > 0, "{status:?}");
        assert!(status.raft_applied_index <= status.raft_index && !status.is_learner, "{status:?}");
        assert!(status.header.revision <= revision && status.header.raft_term > 0, "{status:?}");
        assert_eq!(status.header.cluster_id, members.header.cluster_id);
        assert!(ids.contains(&status.leader.expect("a leader")), "{status:?}");
        seen.insert(status.header.member_id);
    }
    assert_eq!(seen, ids);
    assert!(client.alarms().await.unwrap().is_empty());
}
