//! JSON schemas of texts with a syntax of their own, which no derive can express.
//!
//! A value that matches one of these schemas is accepted: they are as strict as the readers of this crate and the
//! rules.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use crate::command::limits::{ADDRESSES_MAX, TAG_CHARS_MAX, TAGS_MAX};

/// Defines types without values that carry the schema of a text.
macro_rules! texts {
    ($($(#[doc = $about:literal])+ $name:ident = $pattern:expr, $chars_max:expr;)+) => {
        $($(#[doc = $about])+
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let about = [$($about),+].map(str::trim).join("\n");
                json_schema!({
                    "description": about,
                    "type": "string",
                    "maxLength": $chars_max,
                    "pattern": $pattern,
                })
            }
        })+
    };
}

/// Characters of a chosen name, and of a name that is derived from it for a placement group or an instance.
const NEW_CHARS_MAX: usize = forewarn_lifecycle::limits::NAME_BYTES_MAX;
const NAME_CHARS_MAX: usize = NEW_CHARS_MAX + 11;
const EVENT_ID_CHARS: usize = 36;
/// Limits of webhooks, as in the shared state.
const URL_CHARS_MAX: usize = 2_048;
const AUTHORIZATION_CHARS_MAX: usize = 4_096;
const ROUTING_KEY_CHARS: usize = 32;
/// Length of `15m0s`.
const NOTICE_CHARS_MAX: usize = 6;

texts! {
    /// Name of a new object: letters, digits, `.`, `_` and `-`; neither `.` nor `..`.
    NewName = r"^(\.{0,2}[A-Za-z0-9_-]|\.{3})[A-Za-z0-9._-]*$", NEW_CHARS_MAX;
    /// Name of an existing object. Later placement groups of a scale set have a colon and a number in their names.
    Name = r"^(\.{0,2}[A-Za-z0-9:_-]|\.{3})[A-Za-z0-9.:_-]*$", NAME_CHARS_MAX;
    /// Name of a machine if it is unique, else `tenant/name`.
    MachineName = r"^([A-Za-z0-9.:_-]+/)?[A-Za-z0-9.:_-]+$", 2 * NAME_CHARS_MAX + 1;
    /// Id of an event: a GUID, which the server writes in upper case.
    EventId = r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$", EVENT_ID_CHARS;
    /// URL of a webhook: `http` or `https`, a host, optionally a port, a path and a query.
    WebhookUrl = r"^https?://[A-Za-z0-9][A-Za-z0-9.-]{0,99}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~%/-]*)?(\?[A-Za-z0-9._~%/&=-]*)?$", URL_CHARS_MAX;
    /// Value of `Authorization`: visible ASCII characters, and spaces between them.
    Authorization = r"^[!-~]+( [!-~]+)*$", AUTHORIZATION_CHARS_MAX;
    /// Routing key of PagerDuty.
    RoutingKey = r"^[A-Za-z0-9]{32}$", ROUTING_KEY_CHARS;
    /// Words about work on a host: one line.
    WorkText = r"^[ -~]+$", forewarn_lifecycle::WorkText::BYTES_MAX;
    /// Announced length of an interruption: `45s`, `10m`, `2h`.
    Interruption = r"^([1-9][0-9]{0,3}s|[1-9][0-9]{0,2}m|[1-9]h|1[0-8]h)$", NOTICE_CHARS_MAX;
    /// Notice of a deletion: 5 to 15 minutes, such as `5m`, `9m50s` or `900s`.
    Notice = r"^(([5-9]|1[0-4])m([0-5]?[0-9]s)?|15m|(3[0-9][0-9]|[4-8][0-9][0-9]|900)s)$", NOTICE_CHARS_MAX;
}

impl Name {
    /// Returns true if the text is a valid name of a new object.
    #[must_use]
    pub fn admits(text: &str) -> bool {
        !matches!(text, "." | "..") && text.len() <= NAME_CHARS_MAX && is_of_names(text)
    }
}

impl MachineName {
    /// Returns true if the text is a valid name of a machine.
    #[must_use]
    pub fn admits(text: &str) -> bool {
        let (tenant, name) = text.split_once('/').unwrap_or((text, text));
        text.len() <= 2 * NAME_CHARS_MAX + 1 && is_of_names(tenant) && is_of_names(name)
    }
}

fn is_of_names(text: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-".contains(&byte);
    !text.is_empty() && text.bytes().all(is_known)
}

/// A text without control characters.
pub(crate) fn readable(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": READABLE })
}

/// A text without control characters, or null.
pub(crate) fn readable_if_said(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "pattern": READABLE })
}

const READABLE: &str = r"^[^\x00-\x1F\x7F-\x9F]*$";

/// A list of at least one `T`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtLeastOne<T>(std::marker::PhantomData<T>);

impl<T: JsonSchema> JsonSchema for AtLeastOne<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("AtLeastOne_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "minItems": 1, "items": generator.subschema_for::<T>() })
    }
}

/// Tags of a machine: names and values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tags {}

impl JsonSchema for Tags {
    fn schema_name() -> Cow<'static, str> {
        "Tags".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({ "type": "string", "maxLength": TAG_CHARS_MAX, "pattern": READABLE });
        json_schema!({
            "description": "Names and values of the owner of a machine.",
            "type": "object",
            "maxProperties": TAGS_MAX,
            "propertyNames": text,
            "additionalProperties": text,
        })
    }
}

/// Source addresses of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Addresses {}

impl JsonSchema for Addresses {
    fn schema_name() -> Cow<'static, str> {
        "Addresses".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The addresses from which a machine calls.",
            "type": "array",
            "maxItems": ADDRESSES_MAX,
            "items": {
                "type": "string",
                "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }],
            },
        })
    }
}

/// Members of commands that name an object: all commands use the same word for the same kind.
pub(crate) fn of_commands(schema: &mut Schema) {
    let Some(commands) = schema.get_mut("oneOf").and_then(Value::as_array_mut) else { return };
    let members = commands.iter_mut().filter_map(|command| command.get_mut("properties")?.as_object_mut());
    for (word, member) in members.flatten() {
        let kind = member["type"].as_str().unwrap_or_default();
        let named = match (word.as_str(), kind) {
            ("machine", "string") => text::<MachineName>(),
            ("host" | "tenant" | "scale_set", "string") => text::<Name>(),
            ("event", "string") => text::<EventId>(),
            ("hosts", "array") => json!({ "type": "array", "minItems": 1, "items": text::<Name>() }),
            ("add" | "remove", "array") => json!({ "type": "array", "items": text::<Name>() }),
            // A new set has no machines: they are added with commands of their own.
            ("machine" | "instance", "array") => json!({ "type": "array", "maxItems": 0 }),
            ("instances" | "placement", _) => json!({ "type": "null" }),
            (_, _) => continue,
        };
        *member = named;
    }
}

fn text<T: JsonSchema>() -> Value {
    T::json_schema(&mut SchemaGenerator::default()).into()
}
