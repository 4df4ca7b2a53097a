//! A DHCPDISCOVER that requests option 245, and the DHCPOFFER that answers it (RFC 2131, RFC 2132).
//!
//! Pure: bytes in, bytes out. Not implemented: accepting an offer, and options in the server name and file name fields.

use std::net::Ipv4Addr;

use crate::lease::plausible;

/// The option with the address of the endpoint.
const ENDPOINT: u8 = 245;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ETHERNET: u8 = 1;
const HARDWARE_BYTES: u8 = 6;
const BROADCAST: [u8; 2] = [0x80, 0];
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Offsets of the parts of a message.
const XID: usize = 4;
const FLAGS: usize = 10;
const HARDWARE: usize = 28;
const OPTIONS: usize = 236;

/// The smallest message that every server accepts.
const MESSAGE_BYTES_MIN: usize = 300;

const PAD: u8 = 0;
const END: u8 = 255;
const MESSAGE_TYPE: u8 = 53;
const DISCOVER: u8 = 1;
const OFFER: u8 = 2;
const WANTED: u8 = 55;

/// The identity of one DHCPDISCOVER, by which its offers are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiscoverRequest {
    /// The hardware address of the network interface.
    pub(crate) hardware: [u8; 6],
    /// A random transaction id.
    pub(crate) xid: u32,
}

impl DiscoverRequest {
    /// The DHCPDISCOVER. It requests a broadcast response, because this machine may have no address yet.
    pub(crate) fn discover(self) -> Vec<u8> {
        let mut message = vec![0; OPTIONS];
        message[..4].copy_from_slice(&[REQUEST, ETHERNET, HARDWARE_BYTES, 0]);
        message[XID..XID + 4].copy_from_slice(&self.xid.to_be_bytes());
        message[FLAGS..FLAGS + 2].copy_from_slice(&BROADCAST);
        message[HARDWARE..HARDWARE + 6].copy_from_slice(&self.hardware);
        message.extend(COOKIE);
        message.extend([MESSAGE_TYPE, 1, DISCOVER]);
        message.extend([WANTED, 1, ENDPOINT]);
        message.push(END);
        message.resize(message.len().max(MESSAGE_BYTES_MIN), PAD);
        message
    }

    /// Parses an offer; `None` if the message is not an offer for this request.
    pub(crate) fn read_offer(self, message: &[u8]) -> Option<Offer> {
        let part = |at: usize, bytes: usize| message.get(at..at.checked_add(bytes)?);
        let is_response = part(0, 3)? == [REPLY, ETHERNET, HARDWARE_BYTES]
            && part(XID, 4)? == self.xid.to_be_bytes()
            && part(HARDWARE, 6)? == self.hardware
            && part(OPTIONS, 4)? == COOKIE;
        if !is_response {
            return None;
        }
        let options = message.get(OPTIONS + COOKIE.len()..)?;
        if option(options, MESSAGE_TYPE)? != [OFFER] {
            return None;
        }
        let endpoint = option(options, ENDPOINT).and_then(|value| <[u8; 4]>::try_from(value).ok());
        Some(Offer { endpoint: endpoint.and_then(plausible) })
    }
}

/// The part of a DHCPOFFER that matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The value of option 245, if present.
    pub(crate) endpoint: Option<Ipv4Addr>,
}

/// The value of an option; the first, if it occurs twice.
fn option(mut rest: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let (code, after) = rest.split_first()?;
        match *code {
            PAD => rest = after,
            END => return None,
            code => {
                let (length, after) = after.split_first()?;
                let (value, after) = after.split_at_checked(usize::from(*length))?;
                if code == wanted {
                    return Some(value);
                }
                rest = after;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: DiscoverRequest = DiscoverRequest { hardware: [2, 0, 0, 0, 0, 7], xid: 0x0102_0304 };

    fn offer(options: &[u8]) -> Vec<u8> {
        let mut message = SAMPLE.discover();
        message[0] = REPLY;
        message.truncate(OPTIONS + COOKIE.len());
        message.extend(options);
        message
    }

    #[test]
    fn a_question_has_every_byte_in_its_place() {
        let message = SAMPLE.discover();
        assert_eq!(message.len(), 300);
        assert_eq!(message[..12], [1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0x80, 0]);
        assert!(message[12..28].iter().all(|byte| *byte == 0));
        assert_eq!(message[28..34], SAMPLE.hardware);
        assert_eq!(message[236..247], [99, 130, 83, 99, 53, 1, 1, 55, 1, 245, 255]);
    }

    #[test]
    fn an_offer_says_where_the_endpoint_is_or_does_not() {
        let wire = Some(Ipv4Addr::new(168, 63, 129, 16));
        let whole = offer(&[0, 53, 1, 2, 1, 4, 255, 255, 255, 0, 245, 4, 168, 63, 129, 16, 255]);
        assert_eq!(SAMPLE.read_offer(&whole), Some(Offer { endpoint: wire }));
        for without in [&[53, 1, 2, 255][..], &[53, 1, 2, 245, 4, 0, 0, 0, 0], &[53, 1, 2, 245, 3, 1, 2, 3]] {
            assert_eq!(SAMPLE.read_offer(&offer(without)), Some(Offer { endpoint: None }));
        }
    }

    #[test]
    fn what_is_no_answer_to_the_question_is_passed_over() {
        let whole = offer(&[53, 1, 2, 245, 4, 168, 63, 129, 16, 255]);
        for at in [0, 1, 2, 4, 7, 28, 33, 236, 239] {
            let mut other = whole.clone();
            other[at] ^= 1;
            assert_eq!(SAMPLE.read_offer(&other), None, "byte {at}");
        }
        assert_eq!(SAMPLE.read_offer(&offer(&[53, 1, 5, 245, 4, 1, 2, 3, 4])), None, "not an offer");
        assert_eq!(SAMPLE.read_offer(&SAMPLE.discover()), None, "our own request");
        for length in 0..240 {
            assert_eq!(SAMPLE.read_offer(&whole[..length]), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_of_offers_stumble(
            bytes in prop::collection::vec(any::<u8>(), 0..600),
            options in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = SAMPLE.read_offer(&bytes);
            if let Some(Offer { endpoint: Some(address) }) = SAMPLE.read_offer(&offer(&options)) {
                prop_assert!(!address.is_multicast());
            }
        }

        #[test]
        fn an_option_is_found_wherever_it_is(
            before in prop::collection::vec((1u8..=52, prop::collection::vec(any::<u8>(), 0..9)), 0..9),
            address in 1u32..0xE000_0000,
        ) {
            let mut options: Vec<u8> = Vec::new();
            for (code, value) in before {
                options.extend([PAD, code, u8::try_from(value.len()).unwrap()]);
                options.extend(value);
            }
            options.extend([MESSAGE_TYPE, 1, OFFER, ENDPOINT, 4]);
            options.extend(address.to_be_bytes());
            prop_assert_eq!(SAMPLE.read_offer(&offer(&options)), Some(Offer { endpoint: Some(address.into()) }));
        }
    }
}
