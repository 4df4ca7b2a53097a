//! The resources of a cluster: changes and rows.

use forewarn_control::StoredResponse;
use forewarn_control::resources::{
    Body, Leaving, Link, Operation, OperationResult, Resource, ResourceChange, ResourceRow,
};

use super::{Malformed, Reader, Stored, Writer, stored_enum, stored_struct};

impl Stored for Body {
    fn write(&self, out: &mut Writer) {
        StoredResponse(self.0.clone()).write(out);
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        StoredResponse::read(input).map(|StoredResponse(bytes)| Self(bytes))
    }
}

stored_struct! {
    Resource { id, cluster, link, edition, created, body, notes, leaving }
    Operation { number, name, about, cluster, token, waits, began, ended, result }
}

stored_enum!(ResourceChange {
    0 => Put(resource),
    1 => Removed(key),
    2 => Marked { key, leaving },
    3 => Opened(operation),
    4 => WorkEnded { maintenance, result },
});

stored_enum!(ResourceRow { 0 => Resource(resource), 1 => Operation(operation), 2 => NextOperation(number) });

stored_enum!(Link { 0 => Machine(machine), 1 => Tenant(tenant), 2 => ScaleSet(scale_set) });

stored_enum!(Leaving { 0 => Stays, 1 => Leaves });

stored_enum!(OperationResult { 0 => Succeeded, 1 => Canceled, 2 => Failed { code, message } });
