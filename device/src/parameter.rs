//! Parameters of kernels.

use std::ffi::c_void;

use bytemuck::Pod;

use crate::device::Device;
use crate::in_flight::InFlight;
use crate::memory::{Buffer, Pinned};
use crate::shared::SharedWords;

/// Most parameters that a launch takes.
pub(crate) const PARAMETERS_MAX: usize = 32;

/// One argument of a kernel; the launcher that makes it knows the kernel's signature.
#[derive(Debug)]
pub struct Parameter<'a> {
    argument: Argument<'a>,
    /// The device whose memory it names.
    device: Option<&'a Device>,
    /// To be marked when the work was given.
    in_flight: Option<&'a mut InFlight>,
}

#[derive(Debug)]
enum Argument<'a> {
    Address(u64),
    Bytes(&'a [u8]),
}

impl<'a> Parameter<'a> {
    /// A pointer to the buffer's first value; null when it has no bytes.
    pub fn buffer<T: Pod>(buffer: &'a Buffer<T>) -> Self {
        Self { argument: Argument::Address(buffer.address()), device: Some(buffer.device()), in_flight: None }
    }

    /// A pointer to the first value, which the device reads and writes over the bus; null when there are no bytes.
    pub fn pinned<T: Pod>(pinned: &'a mut Pinned<T>) -> Self {
        let argument = Argument::Address(pinned.address());
        let (device, in_flight) = pinned.parts();
        Self { argument, device: Some(device), in_flight: Some(in_flight) }
    }

    /// A pointer to the first word, which host and device see at the same time.
    pub fn shared(shared: &'a mut SharedWords) -> Self {
        Self::pinned(shared.pinned())
    }

    /// The value itself.
    pub fn value<T: Pod>(value: &'a T) -> Self {
        Self { argument: Argument::Bytes(bytemuck::bytes_of(value)), device: None, in_flight: None }
    }

    pub(crate) fn device(&self) -> Option<&Device> {
        self.device
    }

    /// The argument as the kernel gets it.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.argument {
            Argument::Address(address) => bytemuck::bytes_of(address),
            Argument::Bytes(bytes) => bytes,
        }
    }

    pub(crate) fn in_flight(&mut self) -> Option<&mut InFlight> {
        self.in_flight.as_deref_mut()
    }

    /// Where the argument is, aligned as its type; it is only read.
    pub(crate) fn pointer(&mut self) -> *mut c_void {
        match &mut self.argument {
            Argument::Address(address) => (&raw mut *address).cast(),
            Argument::Bytes(bytes) => bytes.as_ptr().cast_mut().cast(),
        }
    }
}
