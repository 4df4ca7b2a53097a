//! Suffixes in the names of instances of flexible scale sets: eight hexadecimal digits that look random, as in the cloud.
//!
//! The suffix is a permutation of the number of the instance, so two instances of a set never share one, nothing has to
//! be stored or drawn at random, and the number can be read back. The key comes from the name of the set: an instance keeps
//! its number when its cluster gets a new secret. The first digit is a letter, so a suffix is never a decimal number.

/// Numbers that have a suffix: those of 28 bits.
pub const FLEXIBLE_INSTANCES: u32 = 1 << (2 * HALF_BITS);

const HALF_BITS: u32 = 14;
const HALF: u32 = (1 << HALF_BITS) - 1;
const ROUNDS: [u32; 4] = [0x9e37_79b9, 0x7f4a_7c15, 0xbf58_476d, 0x94d0_49bb];
const LETTERS: &[u8] = b"abcdef";

/// The suffix of an instance. Only the lower 28 bits of its number count.
pub(crate) fn suffix(key: u32, number: u32) -> String {
    let halves = ((number >> HALF_BITS) & HALF, number & HALF);
    let (left, right) =
        ROUNDS.iter().fold(halves, |(left, right), round| (right, left ^ scramble(right, key ^ round)));
    let mixed = (left << HALF_BITS) | right;
    format!("{}{mixed:07x}", letter(mixed))
}

/// The number of the instance with a suffix. None if the text is no suffix in this set.
pub(crate) fn number(key: u32, suffix: &str) -> Option<u32> {
    let digits = suffix.get(1..).filter(|digits| digits.len() == 7)?;
    let is_lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if !digits.bytes().all(is_lower_hex) {
        return None;
    }
    let mixed = u32::from_str_radix(digits, 16).ok().filter(|mixed| suffix.starts_with(letter(*mixed)))?;
    let halves = (mixed >> HALF_BITS, mixed & HALF);
    let (left, right) =
        ROUNDS.iter().rev().fold(halves, |(left, right), round| (right ^ scramble(left, key ^ round), left));
    Some((left << HALF_BITS) | right)
}

fn letter(mixed: u32) -> char {
    LETTERS[mixed as usize % LETTERS.len()].into()
}

/// The finalizer of MurmurHash3, cut to one half.
fn scramble(half: u32, key: u32) -> u32 {
    let mut mixed = half ^ key;
    mixed = (mixed ^ (mixed >> 16)).wrapping_mul(0x85eb_ca6b);
    mixed = (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35);
    (mixed ^ (mixed >> 16)) & HALF
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const KEY: u32 = 0x1234_5678;

    #[test]
    fn every_number_has_one_suffix_and_every_suffix_one_number() {
        let ends =
            (0..20_000).chain(99_999_000..=100_000_000).chain(FLEXIBLE_INSTANCES - 500..FLEXIBLE_INSTANCES);
        let mut seen = BTreeSet::new();
        for one in ends {
            let text = suffix(KEY, one);
            assert_eq!(text.len(), 8, "{text}");
            assert!(text.starts_with(|c: char| ('a'..='f').contains(&c)), "{text}");
            assert!(
                text.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase()),
                "{text}"
            );
            assert_eq!(number(KEY, &text), Some(one), "{text}");
            assert!(seen.insert(text));
        }
    }

    #[test]
    fn suffixes_differ_between_keys() {
        assert_ne!(suffix(KEY, 0), suffix(KEY + 1, 0));
    }

    #[test]
    fn other_texts_are_no_suffixes() {
        let right = suffix(KEY, 7);
        let letter = if right.starts_with('a') { 'b' } else { 'a' };
        let other_letter = format!("{letter}{}", &right[1..]);
        let upper = right.to_uppercase();
        for wrong in [
            "",
            "7",
            "12345678",
            "a+123456",
            "aé12345",
            &right[..7],
            &format!("{right}0"),
            &other_letter,
            &upper,
        ] {
            assert_eq!(number(KEY, wrong), None, "{wrong}");
        }
    }
}
