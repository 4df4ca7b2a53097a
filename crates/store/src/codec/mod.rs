//! The stored form: encodes everything that the journal stores, and decodes it again.
//!
//! Small numbers are short, lists begin with their length, variants with a number that is never reused. There are no
//! field names and no self-description: the version in front of the bytes determines their meaning (see [`seal`]).
//! Every `match` names every variant, so that the compiler asks for a new one here.
//!
//! Decoding is total: any bytes give a value or an error, and take no more memory than their length allows.

mod host_steps;
pub(crate) mod old;
mod plain;
mod resources;
mod rollouts;
mod rows;
mod rules;
pub(crate) mod seal;
mod shared;
mod shell;
mod webhooks;
mod windows;

pub use shell::{record_from_content, record_from_stored, record_to_stored};

/// Maximum bytes of one record or row. The largest, a group of 1,000 machines or a tenant with 4,000 ended events,
/// needs a tenth of it.
pub(crate) const RECORD_BYTES_MAX: usize = 1 << 20;

/// Bytes that are not the stored form of the expected value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end too early.
    #[error("it is cut short")]
    Short,
    /// Bytes follow the end of the value.
    #[error("bytes follow its end")]
    Long,
    #[error("its version is unknown: {0}")]
    Version(u8),
    /// The checksum does not match.
    #[error("its checksum is wrong")]
    Checksum,
    /// An invalid number, name or variant.
    #[error("it has an invalid value: {0}")]
    Impossible(&'static str),
}

/// A value with a stored form.
pub(crate) trait Stored: Sized {
    fn write(&self, out: &mut Writer);
    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed>;
}

#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
}

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Seven bits in a byte, the lowest first; the eighth bit marks that more follow.
    pub(crate) fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest >= 0x80 {
            self.bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        self.bytes.push((rest & 0x7f) as u8);
    }

    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.bytes(1)?[0])
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Malformed::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Malformed::Short)?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed::Impossible("number of more than 64 bits"))
    }

    /// Number of items that follow. Each takes at least one byte, so the number is at most that of the bytes left.
    pub(crate) fn length(&mut self) -> Result<usize, Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed::Short)?;
        if length > self.left() { Err(Malformed::Short) } else { Ok(length) }
    }

    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Malformed::Long) }
    }
}

pub(crate) fn to_bytes<T: Stored>(value: &T) -> Vec<u8> {
    let mut out = Writer::default();
    value.write(&mut out);
    out.into_bytes()
}

pub(crate) fn from_bytes<T: Stored>(bytes: &[u8]) -> Result<T, Malformed> {
    let mut input = Reader::new(bytes);
    let value = T::read(&mut input)?;
    input.finish()?;
    Ok(value)
}

/// Stores a struct as its fields, in the order of the list, which must name every field.
macro_rules! stored_struct {
    ($($type:ident { $($field:ident),* $(,)? })*) => { $(
        impl crate::codec::Stored for $type {
            fn write(&self, out: &mut crate::codec::Writer) {
                let Self { $($field),* } = self;
                $($field.write(out);)*
            }

            fn read(input: &mut crate::codec::Reader<'_>) -> Result<Self, crate::codec::Malformed> {
                Ok(Self { $($field: crate::codec::Stored::read(input)?),* })
            }
        }
    )* };
}

/// Stores a variant as its number and then its fields. A number is never reused, so that old bytes stay readable.
macro_rules! stored_enum {
    ($type:ident {
        $($tag:literal => $variant:ident $(( $($item:ident),* ))? $({ $($field:ident),* })?),* $(,)?
    }) => {
        impl crate::codec::Stored for $type {
            fn write(&self, out: &mut crate::codec::Writer) {
                match self {
                    $(Self::$variant $(( $($item),* ))? $({ $($field),* })? => {
                        out.byte($tag);
                        $($($item.write(out);)*)?
                        $($($field.write(out);)*)?
                    })*
                }
            }

            fn read(input: &mut crate::codec::Reader<'_>) -> Result<Self, crate::codec::Malformed> {
                match input.byte()? {
                    $($tag => {
                        $($(let $item = crate::codec::Stored::read(input)?;)*)?
                        $($(let $field = crate::codec::Stored::read(input)?;)*)?
                        Ok(Self::$variant $(( $($item),* ))? $({ $($field),* })?)
                    })*
                    _ => Err(crate::codec::Malformed::Impossible(stringify!($type))),
                }
            }
        }
    };
}

pub(crate) use {stored_enum, stored_struct};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_when_they_are_small_and_read_as_written() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (1 << 20, 3), (u64::MAX, 10)] {
            let mut out = Writer::default();
            out.number(number);
            let bytes = out.into_bytes();
            assert_eq!(bytes.len(), length);
            let mut input = Reader::new(&bytes);
            assert_eq!(input.number(), Ok(number));
            assert_eq!(input.finish(), Ok(()));
        }
    }

    #[test]
    fn numbers_of_too_many_bits_are_rejected() {
        let beyond = [0xff; 11];
        assert!(matches!(Reader::new(&beyond).number(), Err(Malformed::Impossible(_))));
        let mut last = [0xff; 10];
        last[9] = 2;
        assert!(matches!(Reader::new(&last).number(), Err(Malformed::Impossible(_))));
        assert_eq!(Reader::new(&beyond[..3]).number(), Err(Malformed::Short));
    }

    #[test]
    fn lists_are_no_longer_than_their_bytes() {
        let mut out = Writer::default();
        out.number(1 << 40);
        assert_eq!(from_bytes::<Vec<u64>>(&out.into_bytes()), Err(Malformed::Short));
        assert_eq!(from_bytes::<u64>(&[1, 1]), Err(Malformed::Long));
    }
}
