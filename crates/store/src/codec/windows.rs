//! Windows and their owners. The stored form of a window without a time zone is that of versions that knew none.

use forewarn_lifecycle::{OffsetChange, TimeZone, Timestamp, Weekdays, Window, WindowOwner};

use super::plain::{read_text, write_text};
use super::{Malformed, Reader, Stored, Writer, stored_enum};

stored_enum!(WindowOwner { 0 => Tenant(tenant), 1 => ScaleSet(scale_set) });

/// Added to the days of a window in a time zone.
const IN_ZONE: u8 = 128;

impl Stored for Window {
    fn write(&self, out: &mut Writer) {
        let zone = self.zone();
        out.byte(self.days().bits() | zone.map_or(0, |_| IN_ZONE));
        self.from_minute().write(out);
        self.to_minute().write(out);
        match zone {
            Some(zone) => zone.write(out),
            None => i32::from(self.offset_minutes()).write(out),
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = || Malformed::Impossible("a window");
        let bits = input.byte()?;
        let days = Weekdays::from_bits(bits & !IN_ZONE).ok_or_else(wrong)?;
        let (from, to) = (u16::read(input)?, u16::read(input)?);
        let window = if bits & IN_ZONE == 0 {
            Self::new(days, from, to, read_offset(input)?)
        } else {
            Self::in_zone(days, from, to, TimeZone::read(input)?)
        };
        window.ok_or_else(wrong)
    }
}

impl Stored for TimeZone {
    fn write(&self, out: &mut Writer) {
        write_text(self.name(), out);
        i32::from(self.offset_minutes()).write(out);
        self.changes().to_vec().write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let name = read_text(input)?;
        let offset_minutes = read_offset(input)?;
        let changes = Vec::read(input)?;
        Self::new(name, offset_minutes, changes).ok_or(Malformed::Impossible("a time zone"))
    }
}

impl Stored for OffsetChange {
    fn write(&self, out: &mut Writer) {
        self.at.write(out);
        i32::from(self.offset_minutes).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let at = Timestamp::read(input)?;
        Ok(Self { at, offset_minutes: read_offset(input)? })
    }
}

fn read_offset(input: &mut Reader<'_>) -> Result<i16, Malformed> {
    i16::try_from(i32::read(input)?).map_err(|_| Malformed::Impossible("an offset from UTC"))
}

#[cfg(test)]
mod tests {
    use super::super::{from_bytes, to_bytes};
    use super::*;

    #[test]
    fn windows_round_trip_and_invalid_ones_are_rejected() {
        let window = Window::new(Weekdays::ALL, 22 * 60, 6 * 60, -90).unwrap();
        let bytes = to_bytes(&window);
        assert_eq!(from_bytes::<Window>(&bytes), Ok(window));
        assert!(from_bytes::<Window>(&[&[0], &bytes[1..]].concat()).is_err());
    }

    #[test]
    fn a_window_without_a_zone_is_stored_as_before_there_were_zones() {
        let days = Weekdays::from_bits(31).unwrap();
        let bytes = to_bytes(&Window::new(days, 60, 120, 60).unwrap());
        assert_eq!(bytes, [31, 60, 120, 120]);
    }

    #[test]
    fn windows_in_a_zone_round_trip_and_invalid_ones_are_rejected() {
        let change = |at, offset_minutes| OffsetChange { at: Timestamp::from_millis(at), offset_minutes };
        let zone = TimeZone::new("Europe/Berlin", 60, vec![change(1_000, 120), change(9_000, 60)]).unwrap();
        let window = Window::in_zone(Weekdays::ALL, 22 * 60, 6 * 60, zone).unwrap();
        let bytes = to_bytes(&window);
        assert_eq!(from_bytes::<Window>(&bytes), Ok(window));
        assert!(from_bytes::<Window>(&[&[128], &bytes[1..]].concat()).is_err(), "no day");
        for length in 0..bytes.len() {
            assert!(from_bytes::<Window>(&bytes[..length]).is_err(), "{length}");
        }
        let unordered = [to_bytes(&change(9_000, 60)), to_bytes(&change(1_000, 120))].concat();
        let bad = [&to_bytes(&vec![change(1_000, 120), change(9_000, 60)])[..1], &unordered].concat();
        let name = [&[13][..], b"Europe/Berlin", &[120]].concat();
        assert!(from_bytes::<TimeZone>(&[name, bad].concat()).is_err(), "not ascending");
    }
}
