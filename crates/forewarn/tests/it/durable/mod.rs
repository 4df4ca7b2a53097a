//! What the program has answered is there, and nothing is early, whatever happens to the process, its disk or its clock.
//!
//! Each test starts the program on a directory of its own, speaks to it as machines and operators would, and then kills it, stops
//! it, or takes its disk away. What one server owes, and the tests that keep it:
//!
//! | it owes | tests |
//! |---|---|
//! | what was answered survives a kill at any moment, and nothing goes back | `kill` |
//! | each resource group belongs to one cluster, and is never lost, wherever it dies | `clusters` |
//! | one effect for each event and machine, wherever it dies | `gaps` |
//! | a step on a host between the orders to its machines, each once, wherever it dies | `steps` |
//! | a guest of a failed host starts elsewhere only when the old one can no longer write | `fencing` |
//! | a host in maintenance mode is emptied, has its step and stays empty, wherever it dies | `modes` |
//! | one name for each action, in every cluster and after every restore | `actions` |
//! | a rollout goes on, no domain early or twice | `rollout` |
//! | a machine that a rollout waits for returns by a poll, which is kept | `returns` |
//! | a rolling upgrade goes on, no batch early | `upgrades` |
//! | a disk that takes nothing stops writes, not reads, and is gone on with by itself | `disk` |
//! | the same of one of several servers, whose clusters go to another one | `realm_disk` |
//! | a log or a directory that is lost is noticed, and nothing goes back without a word | `lost` |
//! | a slow disk, a stop or a kill before the publication takes nothing from a notice | `notice` |
//! | a directory of an older format is upgraded, answers as before, and goes on | `format`, `format_1` |
//! | a directory that is another's, damaged or of a later format is refused | `refused` |
//! | a stop is clean | `stop` |
//! | a JSON log has one object for each line | `json_log` |
//! | the reason of a failure is shown, and kept | `reasons` |
//! | every command that was answered is in the trail, once, and the trail is whole | `trail` |
//! | no clock goes back, a long sleep makes things late and never early | `clock` |

#![cfg(test)]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

mod actions;
mod clock;
mod clusters;
mod disk;
mod fencing;
mod format;
mod format_1;
mod gaps;
mod json_log;
mod kill;
mod lost;
mod modes;
mod notice;
mod place;
mod realm_disk;
mod reasons;
mod refused;
mod returns;
mod rollout;
pub(crate) mod site;
mod steps;
mod stop;
mod trail;
mod upgrades;
