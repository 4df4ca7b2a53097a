//! Real agents against the real program: machines are network namespaces, `forewarn dev` is at 169.254.169.254 beside them, and a
//! virtual clock says when a notice is over. What agents do is seen in what their hooks write, in their event logs, and in what
//! the server saw of them.
//!
//! | a story | test |
//! |---|---|
//! | a freeze under the threshold is ignored | `alone::a_freeze_under_the_threshold_is_ignored` |
//! | a live migration is told from other freezes | `alone::a_live_migration_is_told_from_other_freezes` |
//! | Preempt leaves thirty seconds | `alone::an_eviction_leaves_hooks_what_is_left_of_thirty_seconds` |
//! | Terminate of one instance of a scale set | `alone::an_instance_approves_its_own_deletion_and_no_other` |
//! | an event is cancelled | `alone::a_cancelled_event_is_undone_at_once` |
//! | two events overlap | `alone::a_machine_stays_drained_until_both_events_are_over` |
//! | a hook hangs | `hooks::a_hook_that_hangs_is_ended_and_nothing_is_approved`, `hooks::a_hook_that_hangs_is_ended_and_the_rest_goes_on_if_wanted` |
//! | a reboot of three machines | `together::three_machines_get_ready_and_one_approval_is_given` |
//! | a peer dies | `together::without_a_dead_peer_nobody_approves`, `together::a_dead_leader_is_replaced_and_done_without` |
//! | strangers hold connections open | `together::a_flood_of_connections_does_not_make_a_peer_silent` |
//! | one machine after the other | `together::one_machine_is_drained_at_once` |
//! | the agent is killed in the middle | `lives::an_agent_that_was_killed_goes_on_where_it_was` |
//! | the machine really reboots | `lives::what_was_done_is_undone_after_the_reboot_itself` |
//! | the server is away for a while | `lives::an_agent_outlives_its_server` |
//! | nothing leads to 169.254.169.254 | `dhcp::without_a_route_to_the_usual_place_the_server_is_found_by_lease_and_by_question` |
//! | an endpoint of the first edition | `found::an_endpoint_that_knows_only_the_preview_will_do` |
//! | the recipes of `deploy/recipes` | `recipes` |
//!
//! They need root and packages, so they are ignored unless they are asked for; `cargo xtask agent` installs what they need and asks for
//! them, or says why it cannot.

#![cfg(test)]
#![cfg(target_os = "linux")]

mod alone;
mod dhcp;
mod found;
mod hooks;
mod lives;
mod recipes;
mod together;
