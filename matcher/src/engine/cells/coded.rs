//! An event with the codes of its values.

use super::codes::ValueCode;
use crate::compiled::view::Viewed;

/// One event, as clusters compare it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coded<'a> {
    pub(super) viewed: Viewed<'a>,
    /// Codes of the attributes, in their order.
    pub(super) codes: &'a [ValueCode],
}

impl<'a> Coded<'a> {
    /// The code of the attribute of a name.
    #[inline]
    pub(super) fn code(&self, name: u32) -> Option<&'a ValueCode> {
        self.codes.get(self.viewed.index(name)?)
    }
}
