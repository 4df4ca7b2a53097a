//! The metadata endpoint of the program itself, from outside: `forewarn dev` is started for each test, spoken to over TCP as a
//! machine would, and driven by its own commands as an operator would. Its clock stands still unless a test moves it.
//!
//! What clients of Scheduled Events are known to depend on, and the tests that keep it:
//!
//! | they depend on | tests |
//! |---|---|
//! | an incarnation that is a number and counts what can be seen | `documents::the_incarnation_counts_what_can_be_seen_and_nothing_else` |
//! | one id for the whole life; upper case out, any case in | `documents::an_event_keeps_its_id_until_it_is_gone`, `approvals::approving_again_is_harmless_until_an_hour_after_the_end` |
//! | exactly the fields of an edition, its kinds, its underscores | `editions::every_edition_shows_every_kind_of_event_byte_for_byte` |
//! | `NotBefore` in GMT, and empty once Started | the same, `documents::an_event_keeps_its_id_until_it_is_gone` |
//! | their own name in `Resources`; names that begin alike | `instance::a_machine_finds_itself_in_resources`, `names::names_that_begin_alike_are_not_confused` |
//! | a content type; `Metadata` in any case; the path in any case, further parameters | `documents::an_answer_is_these_bytes`, `checks::the_header_is_required_in_any_case_of_letters`, `checks::every_way_to_write_the_path_is_the_same_path` |
//! | an approval of any content type, edition and dress; answered with nothing | `approvals::what_does_not_matter_does_not_matter`, `approvals::an_approval_is_answered_with_nothing_and_starts_the_event` |
//! | approving again, also when all is over | `approvals::approving_again_is_harmless_until_an_hour_after_the_end` |
//! | tags and conditions | `documents::who_has_the_document_already_is_told_so_without_it` |
//! | a slow or empty first answer | `enrolment::a_slow_first_answer_enables_although_the_caller_hangs_up`, `enrolment::the_first_answer_may_be_empty` |
//! | the word before a body, `Connection: close` echoed, HTTP/1.0, many pollers | `connections` |
//! | instance metadata, the hardware address, an identity token | `instance` |
//! | a cancelled event that is simply gone | `documents::a_cancelled_event_is_simply_gone` |
//! | errors that are JSON | `checks`, in every test |

#![cfg(test)]

mod approvals;
mod checks;
mod connections;
mod containers;
mod documents;
mod editions;
mod enrolment;
#[cfg(target_os = "linux")]
mod guide;
mod instance;
mod kinds;
mod names;
#[cfg(target_os = "linux")]
pub(crate) mod real_clients;
mod recorded;
mod settings;
