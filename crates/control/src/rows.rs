//! Checks of rows from which a state is restored.

use forewarn_lifecycle::BadRows;

/// Numbers are given out in order: one that is not below the next was never given out.
pub(crate) fn check_number_known<N: PartialOrd>(number: &N, next: &N) -> Result<(), BadRows> {
    if number < next { Ok(()) } else { Err(BadRows("a number was never given out")) }
}

/// Rejects a second row for the same number or name.
pub(crate) fn check_new<V>(former: Option<&V>) -> Result<(), BadRows> {
    if former.is_none() { Ok(()) } else { Err(BadRows("a number or a name is used twice")) }
}
