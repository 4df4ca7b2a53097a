//! Boots of the computer.

/// Relation of the steady clock to a boot of the computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boot {
    /// Id of the boot.
    pub id: [u8; 16],
    /// Milliseconds on the steady clock, less those since the boot.
    pub offset_millis: i64,
}
