//! Numbers, texts, lists and other general types.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use forewarn_lifecycle::paged::{PagedMap, PagedSet};

use super::{Malformed, Reader, Stored, Writer, stored_enum};

macro_rules! stored_number {
    ($($type:ident)*) => { $(
        impl Stored for $type {
            fn write(&self, out: &mut Writer) {
                out.number(u64::from(*self));
            }

            fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                Self::try_from(input.number()?).map_err(|_| Malformed::Impossible(stringify!($type)))
            }
        }
    )* };
}

stored_number!(u8 u16 u32 u64);

impl Stored for i64 {
    /// Zigzag encoding: small numbers of either sign are short.
    fn write(&self, out: &mut Writer) {
        out.number(((self << 1) ^ (self >> 63)).cast_unsigned());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let number = input.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }
}

impl Stored for i32 {
    fn write(&self, out: &mut Writer) {
        i64::from(*self).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::try_from(i64::read(input)?).map_err(|_| Malformed::Impossible("i32"))
    }
}

impl Stored for Duration {
    fn write(&self, out: &mut Writer) {
        out.number(self.as_secs());
        out.number(self.subsec_nanos().into());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (seconds, nanos) = (input.number()?, u32::read(input)?);
        if nanos >= 1_000_000_000 {
            return Err(Malformed::Impossible("fraction of a second"));
        }
        Ok(Self::new(seconds, nanos))
    }
}

impl Stored for String {
    fn write(&self, out: &mut Writer) {
        write_text(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(read_text(input)?.to_owned())
    }
}

pub(super) fn write_text(text: &str, out: &mut Writer) {
    out.number(text.len() as u64);
    out.bytes(text.as_bytes());
}

pub(super) fn read_text<'a>(input: &mut Reader<'a>) -> Result<&'a str, Malformed> {
    let length = input.length()?;
    std::str::from_utf8(input.bytes(length)?).map_err(|_| Malformed::Impossible("text"))
}

impl<const N: usize> Stored for [u8; N] {
    fn write(&self, out: &mut Writer) {
        out.bytes(self);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        input.array()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn write(&self, out: &mut Writer) {
        match self {
            None => out.byte(0),
            Some(value) => {
                out.byte(1);
                value.write(out);
            }
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        match input.byte()? {
            0 => Ok(None),
            1 => Ok(Some(T::read(input)?)),
            _ => Err(Malformed::Impossible("presence flag")),
        }
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        self.iter().for_each(|item| item.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = input.length()?;
        // A decoded item may be larger than its bytes: allocate as they are read.
        let mut items = Self::new();
        for _ in 0..length {
            items.push(T::read(input)?);
        }
        items.shrink_to_fit();
        Ok(items)
    }
}

impl<T: Stored> Stored for Box<[T]> {
    fn write(&self, out: &mut Writer) {
        out.number(self.len() as u64);
        self.iter().for_each(|item| item.write(out));
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Vec::read(input)?.into_boxed_slice())
    }
}

impl<T: Stored> Stored for Arc<T> {
    fn write(&self, out: &mut Writer) {
        T::write(self, out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self::new(T::read(input)?))
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn write(&self, out: &mut Writer) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

/// Ordered maps: a length, then every key with its value.
macro_rules! stored_map {
    ($($type:ident)*) => { $(
        impl<K: Stored + Ord + Clone, V: Stored + Clone> Stored for $type<K, V> {
            fn write(&self, out: &mut Writer) {
                out.number(self.len() as u64);
                for (key, value) in self {
                    key.write(out);
                    value.write(out);
                }
            }

            fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                let length = input.length()?;
                let mut map = Self::new();
                for _ in 0..length {
                    if map.insert(K::read(input)?, V::read(input)?).is_some() {
                        return Err(Malformed::Impossible("duplicate key"));
                    }
                }
                Ok(map)
            }
        }
    )* };
}

/// Ordered sets: a length, then every item.
macro_rules! stored_set {
    ($($type:ident)*) => { $(
        impl<T: Stored + Ord + Clone> Stored for $type<T> {
            fn write(&self, out: &mut Writer) {
                out.number(self.len() as u64);
                self.iter().for_each(|item| item.write(out));
            }

            fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                let length = input.length()?;
                let mut set = Self::new();
                for _ in 0..length {
                    if !set.insert(T::read(input)?) {
                        return Err(Malformed::Impossible("duplicate item"));
                    }
                }
                Ok(set)
            }
        }
    )* };
}

stored_map!(BTreeMap PagedMap);
stored_set!(BTreeSet PagedSet);

impl Stored for Ipv4Addr {
    fn write(&self, out: &mut Writer) {
        out.bytes(&self.octets());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(input.array::<4>()?.into())
    }
}

impl Stored for Ipv6Addr {
    fn write(&self, out: &mut Writer) {
        out.bytes(&self.octets());
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(input.array::<16>()?.into())
    }
}

stored_enum!(IpAddr { 4 => V4(address), 6 => V6(address) });

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use super::super::{from_bytes, to_bytes};
    use super::*;

    fn same<T: Stored + PartialEq + Debug>(value: &T) {
        let bytes = to_bytes(value);
        assert_eq!(from_bytes::<T>(&bytes).as_ref(), Ok(value));
        for end in 0..bytes.len() {
            assert_eq!(from_bytes::<T>(&bytes[..end]).err(), Some(Malformed::Short), "{end}");
        }
    }

    #[test]
    fn values_round_trip() {
        [0, 1, -1, 63, -64, i64::MAX, i64::MIN].iter().for_each(same);
        [0, -1, i32::MAX, i32::MIN].iter().for_each(same);
        same(&Duration::new(7, 999_999_999));
        same(&"größer".to_owned());
        same(&vec![Some(1u32), None, Some(u32::MAX)]);
        same(&BTreeMap::from([("a".to_owned(), 1u16), ("b".to_owned(), 2)]));
        same(&BTreeSet::from([1u32, 7, 300]));
        let paged: PagedMap<u32, u16> = [(7, 1), (300, 2)].into_iter().collect();
        same(&paged);
        assert_eq!(to_bytes(&paged), to_bytes(&BTreeMap::from([(7u32, 1u16), (300, 2)])));
        let paged: PagedSet<u32> = [1, 7, 300].into_iter().collect();
        same(&paged);
        assert_eq!(to_bytes(&paged), to_bytes(&BTreeSet::from([1u32, 7, 300])));
        same(&IpAddr::from([10, 0, 0, 1]));
        same(&IpAddr::from([1u16, 2, 3, 4, 5, 6, 7, 8]));
    }

    #[test]
    fn invalid_values_are_rejected() {
        let refused = |bytes: &[u8]| {
            assert!(matches!(from_bytes::<u16>(bytes), Err(Malformed::Impossible(_))), "{bytes:?}");
        };
        refused(&[0xff, 0xff, 0x7f]);
        assert!(from_bytes::<Option<u16>>(&[2, 0]).is_err());
        assert!(from_bytes::<IpAddr>(&[5, 0, 0, 0, 0]).is_err());
        assert!(from_bytes::<String>(&[1, 0xff]).is_err());
        assert!(from_bytes::<BTreeMap<u16, u16>>(&[2, 1, 1, 1, 1]).is_err());
        assert!(from_bytes::<BTreeSet<u16>>(&[2, 1, 1]).is_err());
        assert!(from_bytes::<PagedMap<u16, u16>>(&[2, 1, 1, 1, 1]).is_err());
        assert!(from_bytes::<PagedSet<u16>>(&[2, 1, 1]).is_err());
        let mut too_much = Writer::default();
        too_much.number(1);
        too_much.number(1_000_000_000);
        assert!(from_bytes::<Duration>(&too_much.into_bytes()).is_err());
        assert!(from_bytes::<i32>(&to_bytes(&(i64::from(i32::MAX) + 1))).is_err());
    }
}
