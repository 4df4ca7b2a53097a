//! The shared state and receipts: changes and rows.

use std::collections::BTreeSet;

use forewarn_control::request::IdempotencyKey;
use forewarn_control::resource_id::GroupId;
use forewarn_control::shared::{
    Boot, Change, Claim, Counters, NewClaim, Reach, Role, Row, Scope, Token, TokenHash,
};
use forewarn_control::{ClusterId, NewReceipt, Receipt, ReceiptRow, StoredResponse};

use super::rules::stored_number;
use super::{Malformed, Reader, Stored, Writer, stored_enum, stored_struct};

stored_number!(ClusterId TokenHash);

impl Stored for StoredResponse {
    fn write(&self, out: &mut Writer) {
        out.number(self.0.len() as u64);
        out.bytes(&self.0);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let length = input.length()?;
        Ok(Self(input.bytes(length)?.into()))
    }
}

impl<T: Stored + Ord> Stored for Reach<T> {
    fn write(&self, out: &mut Writer) {
        match self {
            Self::All => out.byte(0),
            Self::Only(some) => {
                out.byte(1);
                out.number(some.len() as u64);
                some.iter().for_each(|item| item.write(out));
            }
        }
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        match input.byte()? {
            0 => Ok(Self::All),
            1 => {
                let length = input.length()?;
                let mut some = BTreeSet::new();
                for _ in 0..length {
                    if !some.insert(T::read(input)?) {
                        return Err(Malformed::Impossible("duplicate item"));
                    }
                }
                Ok(Self::Only(some))
            }
            _ => Err(Malformed::Impossible("scope flag")),
        }
    }
}

stored_struct! {
    Boot { id, offset_millis }
    Counters { cluster, token, webhook }
    Token { number, name, role, scope, hash, created, expires, by }
    Scope { clusters, tenants }
    Receipt { by, key, fingerprint, at, answer }
    NewReceipt { by, key, fingerprint, answer }
    IdempotencyKey { key, fingerprint }
    GroupId { subscription, name }
    Claim { cluster, group, location }
    NewClaim { group, location }
}

stored_enum!(Change {
    0 => ClusterCreated { cluster, name, seed, site },
    1 => ClusterRenamed { cluster, name },
    2 => ClusterRemoved(cluster),
    3 => TokenIssued(token),
    4 => TokenRevoked(number),
    5 => ReceiptKept(receipt),
    6 => Webhook(change),
    7 => Clock,
    8 => Booted(boot),
    9 => ClaimsTaken { cluster, claims },
    10 => ClaimsReleased { cluster, groups },
    11 => Positioned(position),
});

stored_enum!(Row {
    0 => Head(next),
    1 => Cluster(id, name),
    2 => Token(token),
    3 => Receipt(row),
    4 => WebhookWithProgress(webhook, progress),
    5 => Booted(boot),
    6 => Webhook(webhook),
    7 => Secret(secret),
    8 => Origin(id, seed, site),
    9 => Claim(claim),
    10 => Undelivered(cluster, messages),
    11 => Positioned(position),
});

stored_enum!(ReceiptRow { 0 => Receipt(number, receipt), 1 => Next(number) });

stored_enum!(Role { 0 => Viewer, 1 => Operator, 2 => Admin });

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use forewarn_control::limits::{
        ANSWER_BYTES_MAX, CLUSTERS_PER_SCOPE_MAX, ID_BYTES_MAX, LOCATION_BYTES_MAX, TENANTS_PER_SCOPE_MAX,
    };
    use forewarn_testkit::shared_state::{JournaledState, histories, live};
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    use super::super::{RECORD_BYTES_MAX, from_bytes, to_bytes};
    use super::*;

    fn same<T: Stored + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
        let bytes = to_bytes(value);
        let read = from_bytes::<T>(&bytes);
        prop_assert_eq!(read.as_ref(), Ok(value));
        for end in 0..bytes.len() {
            prop_assert!(from_bytes::<T>(&bytes[..end]).is_err());
        }
        Ok(())
    }

    proptest! {
        /// promise: D1
        #[test]
        fn every_change_and_every_row_of_a_catalogue_is_read_as_it_was_written(history in histories()) {
            let world = live(&history);
            world.journal.iter().try_for_each(|(_, change)| same(change))?;
            world.shared.into_rows().try_for_each(|row| same(&row))?;
        }

        #[test]
        fn no_bytes_make_the_reader_of_a_catalogue_panic(
            history in histories(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            for (_, change) in live(&history).journal {
                let mut bytes = to_bytes(&change);
                for (place, byte) in &damage {
                    *place.get_mut(&mut bytes) = *byte;
                }
                // A decoded value can be encoded again.
                if let Ok(change) = from_bytes::<Change>(&bytes) {
                    prop_assert_eq!(from_bytes(&to_bytes(&change)), Ok(change));
                }
            }
        }
    }

    #[test]
    fn invalid_values_are_rejected() {
        assert_eq!(from_bytes::<Reach<ClusterId>>(&[0]), Ok(Reach::All));
        assert_eq!(from_bytes::<Reach<ClusterId>>(&[1, 0]), Ok(Reach::Only(BTreeSet::new())));
        assert!(from_bytes::<Reach<ClusterId>>(&[2]).is_err());
        assert!(from_bytes::<Reach<ClusterId>>(&[1, 2, 7, 7]).is_err());
        assert!(from_bytes::<Role>(&[3]).is_err());
    }

    #[test]
    fn the_greatest_changes_of_a_catalogue_fit_into_a_record() {
        let name = |number| forewarn_lifecycle::Name::new(&format!("{number:0>80}")).unwrap();
        let token = Token {
            number: u32::MAX,
            name: name(0),
            role: Role::Operator,
            scope: Scope {
                clusters: (0..=u32::MAX).rev().take(CLUSTERS_PER_SCOPE_MAX).map(ClusterId).collect(),
                tenants: (0..TENANTS_PER_SCOPE_MAX).map(name).collect(),
            },
            hash: TokenHash([255; 32]),
            created: JournaledState::new().now.wall,
            expires: None,
            by: "x".repeat(255),
        };
        let kept = Change::ReceiptKept(NewReceipt {
            by: "x".repeat(255),
            key: "x".repeat(255),
            fingerprint: [255; 32],
            answer: StoredResponse(vec![0; ANSWER_BYTES_MAX].into()),
        });
        let group = GroupId { subscription: "s".repeat(1_000), name: "g".repeat(ID_BYTES_MAX - 1_031) };
        assert_eq!(group.key().len(), ID_BYTES_MAX);
        let claim = NewClaim { group, location: "l".repeat(LOCATION_BYTES_MAX) };
        let taken = Change::ClaimsTaken { cluster: ClusterId(u32::MAX), claims: vec![claim; 100] };
        for change in [Change::TokenIssued(token), kept, taken] {
            let bytes = to_bytes(&change);
            assert!(bytes.len() < RECORD_BYTES_MAX / 2);
            assert_eq!(from_bytes(&bytes), Ok(change));
        }
    }
}
