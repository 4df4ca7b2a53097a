//! Random numbers of the operating system.

/// Unpredictable bytes; `None` if the system has none.
pub(crate) fn bytes<const COUNT: usize>() -> Option<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same() {
        let (one, other) = (bytes::<16>().unwrap(), bytes::<16>().unwrap());
        assert_ne!(one, other);
        assert_ne!(one, [0; 16]);
    }
}
