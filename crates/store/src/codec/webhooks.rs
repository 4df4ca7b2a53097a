//! Webhooks of the shared state. Their secrets are stored in clear: a process that can read the journal can read them.

use forewarn_control::shared::{
    Authorization, DeliveryFailure, Filter, Handshake, Progress, UndeliveredMessages, Webhook, WebhookChange,
    WebhookFormat,
};

use forewarn_url::Url;

use super::plain::{read_text, write_text};
use super::{Malformed, Reader, Stored, Writer, stored_enum, stored_struct};

impl Stored for Url {
    fn write(&self, out: &mut Writer) {
        write_text(self.reveal(), out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::parse(read_text(input)?).map_err(|_| Malformed::Impossible("a URL"))
    }
}

impl Stored for Authorization {
    fn write(&self, out: &mut Writer) {
        write_text(self.reveal(), out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::new(read_text(input)?).map_err(|_| Malformed::Impossible("an authorization"))
    }
}

stored_struct! {
    Webhook { number, name, url, format, filter, authorization, created, by, handshake }
    Filter { scope, kinds }
    Progress { cursor, lost, failing }
    DeliveryFailure { since, head }
    UndeliveredMessages { site, progress }
}

stored_enum!(WebhookChange {
    0 => AddedWithProgress(webhook, progress),
    1 => Removed(number),
    2 => Confirmed { webhook, per_minute },
    3 => Advanced { webhook, progress },
    4 => Added(webhook),
    5 => Undelivered { cluster, messages },
    6 => UndeliveredAdvanced { cluster, webhook, progress },
    7 => Delivered { cluster, webhook },
});

stored_enum!(WebhookFormat {
    0 => CloudEvents,
    1 => EventGrid,
    2 => Slack,
    3 => Teams,
    4 => PagerDuty,
    5 => Text,
});
stored_enum!(Handshake { 0 => Wanted, 1 => Done { at, per_minute } });

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forewarn_control::ClusterId;
    use forewarn_control::limits::{AUTHORIZATION_BYTES_MAX, TENANTS_PER_SCOPE_MAX};
    use forewarn_control::shared::{Change, Reach, Row, Scope};
    use forewarn_lifecycle::{Name, Timestamp};

    use super::super::{RECORD_BYTES_MAX, from_bytes, to_bytes};
    use super::*;

    fn greatest_webhook() -> Webhook {
        let name = |number| Name::new(&format!("{number:0>80}")).unwrap();
        let url = format!("https://h/{}", "x".repeat(forewarn_url::URL_BYTES_MAX - 10));
        Webhook {
            number: u32::MAX,
            name: name(0),
            url: Url::parse(&url).unwrap(),
            format: WebhookFormat::EventGrid,
            filter: Filter {
                scope: Scope {
                    clusters: (0..100).map(ClusterId).collect(),
                    tenants: (0..TENANTS_PER_SCOPE_MAX).map(name).collect(),
                },
                kinds: Reach::All,
            },
            authorization: Some(Authorization::new(&"s".repeat(AUTHORIZATION_BYTES_MAX)).unwrap()),
            created: Timestamp::from_millis(i64::MAX),
            by: "x".repeat(255),
            handshake: Handshake::Done { at: Timestamp::from_millis(-1), per_minute: Some(u32::MAX) },
        }
    }

    fn progress() -> Progress {
        let failing = Some(DeliveryFailure { since: Timestamp::from_millis(5), head: u64::MAX });
        Progress { cursor: u64::MAX, lost: u64::MAX, failing }
    }

    #[test]
    fn the_greatest_webhook_fits_into_a_record_and_is_read_as_it_was_written() {
        let change = Change::Webhook(WebhookChange::Added(Arc::new(greatest_webhook())));
        let bytes = to_bytes(&change);
        assert!(bytes.len() < RECORD_BYTES_MAX / 2);
        assert_eq!(from_bytes(&bytes), Ok(change));
    }

    /// An older version wrote the progress as the last member of a webhook.
    /// promise: D1
    #[test]
    fn a_webhook_of_an_older_version_is_read_with_its_progress() {
        let (webhook, progress) = (greatest_webhook(), progress());
        let stored = |variant: &[u8]| [variant, &to_bytes(&webhook), &to_bytes(&progress)].concat();
        let added = Change::Webhook(WebhookChange::AddedWithProgress(Arc::new(webhook.clone()), progress));
        assert_eq!(from_bytes(&stored(&[6, 0])), Ok(added));
        let row = Row::WebhookWithProgress(webhook.clone(), progress);
        assert_eq!(from_bytes(&stored(&[4])), Ok(row));
        let advanced = [&[6, 3][..], &to_bytes(&7_u32), &to_bytes(&progress)].concat();
        let change = Change::Webhook(WebhookChange::Advanced { webhook: 7, progress });
        assert_eq!(from_bytes(&advanced), Ok(change));
    }

    /// promise: D1
    #[test]
    fn every_format_is_read_as_it_was_written() {
        for (stored, format) in (0_u8..).zip(WebhookFormat::ALL) {
            assert_eq!(to_bytes(&format), [stored], "{format}");
            assert_eq!(from_bytes(&[stored]), Ok(format));
        }
    }

    #[test]
    fn invalid_values_are_rejected() {
        assert!(from_bytes::<Url>(&to_bytes(&"http://u@h".to_owned())).is_err());
        assert!(from_bytes::<Authorization>(&to_bytes(&"a\nb".to_owned())).is_err());
        assert!(from_bytes::<WebhookFormat>(&[6]).is_err());
    }
}
