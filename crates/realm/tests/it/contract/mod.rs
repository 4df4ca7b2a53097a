//! The contract of streams, the same on every engine.

pub mod acceptance;
mod appends;
mod damage;
pub mod following;
mod identity;
mod large;
mod owners;
pub mod shared;
pub mod snapshots;
mod transfer;

use forewarn_testkit::etcd::EtcdCluster;

use crate::engines::TestEngine;

/// Runs every contract on the simulated engine, each as a test, and all of them on a cluster of etcd.
macro_rules! contracts {
    ($($module:ident::$name:ident),* $(,)?) => {
        mod simulated {
            $(#[tokio::test(start_paused = true)]
            async fn $name() {
                super::$module::$name(&super::TestEngine::simulated()).await;
            })*
        }

        /// One cluster for all of them: it starts slowly.
        async fn hold(cluster: &EtcdCluster) {
            $(eprintln!(concat!("contract: ", stringify!($name)));
            $module::$name(&TestEngine::on_etcd(cluster.endpoints())).await;)*
        }
    };
}

contracts! {
    acceptance::an_accepted_state_continues_with_other_ids_and_later_documents,
    acceptance::servers_are_listed_by_their_keys,
    appends::batches_are_read_as_they_were_committed,
    appends::the_next_owner_continues_the_stream,
    appends::the_last_entries_are_rewritten,
    appends::a_commit_that_does_not_follow_changes_nothing,
    appends::a_refreshed_clock_changes_the_head_only,
    damage::a_damaged_value_is_detected,
    damage::a_missing_value_is_detected,
    following::followers_see_what_was_committed,
    following::a_follower_goes_on_after_a_compaction,
    following::a_follower_that_is_behind_reads_the_state,
    following::small_keys_are_followed,
    following::a_removed_stream_is_told,
    identity::one_server_creates_the_realm,
    identity::an_older_engine_is_detected,
    large::a_large_batch_is_there_completely,
    large::a_large_batch_that_was_interrupted_is_not_there,
    large::a_batch_that_is_too_large_is_refused,
    owners::a_former_owner_is_fenced,
    owners::one_of_many_takes_over,
    owners::a_stream_moves_to_another_server,
    shared::concurrent_writers_lose_nothing,
    shared::a_writer_that_is_behind_is_told,
    shared::the_shared_stream_is_created_once,
    snapshots::state_and_log_give_the_state_of_any_history,
    snapshots::a_trim_deletes_what_the_state_covers,
    snapshots::a_removed_stream_leaves_nothing,
    transfer::a_journal_becomes_a_realm_as_it_was,
    transfer::an_import_that_is_not_complete_can_be_cancelled,
    transfer::a_replica_finds_its_place_in_the_log,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_etcd() {
    let Some(cluster) = EtcdCluster::start(3) else { return };
    hold(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_a_newer_etcd() {
    let Some(cluster) = EtcdCluster::start_newer(3, &[]) else { return };
    hold(&cluster).await;
}
