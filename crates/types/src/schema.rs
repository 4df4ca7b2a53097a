//! JSON Schemas of types that are written as texts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::event::EventKind;
use crate::span::{Moment, Span};

/// Lengths of time, each part short enough that all of them together are below the longest that can be read.
const SPAN: &str = "^((3[0-5][0-9]{3}|[0-2]?[0-9]{1,4})d([0-9]{1,3}h)?([0-9]{1,5}m)?([0-9]{1,7}s)?\
                     |[0-9]{1,3}h([0-9]{1,5}m)?([0-9]{1,7}s)?\
                     |[0-9]{1,5}m([0-9]{1,7}s)?\
                     |[0-9]{1,7}s)$";

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A length of time in whole seconds, larger units first: `90s`, `15m`, `9m50s`, `2h`, `7d`.",
            "type": "string",
            "pattern": SPAN,
        })
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A moment: `2026-01-01T00:00:00Z`.",
            "type": "string",
            "format": "date-time",
        })
    }
}

impl JsonSchema for EventKind {
    // Clients are generated from the schemas and know the type by this name.
    fn schema_name() -> Cow<'static, str> {
        "KindWord".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "enum": Self::ALL.map(Self::as_str),
            "description": "A type of events.",
        })
    }
}
