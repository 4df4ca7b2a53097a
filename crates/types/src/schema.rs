//! JSON Schemas of types that are written as texts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::event::EventKind;
use crate::fault::{FaultAnswer, FaultStatus, FaultedRequest};
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

/// Delays up to ten minutes, and times before `NotBefore` up to a day.
const SLOW: &str = "slow=([1-9][0-9]?|[1-5][0-9]{2}|600)s|slow=([1-9]|10)m";
const HIDE: &str = "hide=[0-9]{1,4}s|hide=[0-9]{1,3}m|hide=(1?[0-9]|2[0-4])h";

impl JsonSchema for FaultAnswer {
    fn schema_name() -> Cow<'static, str> {
        "FaultAnswer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let statuses = FaultStatus::ALL.map(|status| status.code().to_string()).join("|");
        let words = "hang|reset|truncated|empty|jump|duplicate";
        json_schema!({
            "description": "The answer that a fault gives: a status, `hang`, `reset`, `truncated`, `empty`, `slow=2s`, \
                            `jump`, `hide=5s`, or `duplicate` for a webhook.",
            "type": "string",
            "pattern": format!("^({statuses}|{words}|{SLOW}|{HIDE})$"),
        })
    }
}

impl JsonSchema for FaultedRequest {
    fn schema_name() -> Cow<'static, str> {
        "FaultedRequest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "enum": Self::ALL.map(Self::as_str),
            "description": "The requests that a fault applies to.",
        })
    }
}
