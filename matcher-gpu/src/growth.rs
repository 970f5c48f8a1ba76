//! How buffers on a device get longer.

use bytemuck::Pod;

use device::{Buffer, DriverError, Stream};

/// Lengths are multiples of this, so that kernels may read several items at a time.
const ROUNDED_TO: usize = 1024;

/// A length that holds `needed`. Where that is more than `len`, it grows by one `part`-th of `len` at least.
pub(crate) fn grown(len: usize, needed: usize, part: usize) -> usize {
    if needed <= len { len } else { needed.max(len + len / part).next_multiple_of(ROUNDED_TO) }
}

/// Moves a buffer's contents to a longer one.
///
/// # Errors
/// When there is too little memory; the buffer is then as it was.
pub(crate) fn grow<T: Pod>(stream: &Stream, buffer: &mut Buffer<T>, len: usize) -> Result<(), DriverError> {
    if len <= buffer.len() {
        return Ok(());
    }
    let longer = stream.device().buffer(len)?;
    stream.copy(buffer, 0..buffer.len(), &longer, 0)?;
    // The old one is freed once the copy is done.
    *buffer = longer;
    Ok(())
}
