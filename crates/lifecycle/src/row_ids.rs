//! Ids as row numbers of tables.

use forewarn_types::{HostId, MachineId, ScaleSetId, TenantId};

use crate::table::RowNumber;

macro_rules! row {
    ($($name:ident)*) => {
        $(impl RowNumber for $name {
            fn row(self) -> usize {
                self.0 as usize
            }

            fn numbered(row: usize) -> Self {
                Self(u32::try_from(row).unwrap_or(u32::MAX))
            }
        })*
    };
}

row!(HostId TenantId ScaleSetId MachineId);
