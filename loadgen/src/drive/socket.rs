//! One connection, as the sender has it.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Context as _;
use socket2::{Domain, Protocol, Socket as Raw, Type};

use super::line::Line;
use crate::endpoint::Endpoint;

/// Connections from one address of this machine to one port: the system has some 28,000 ports to give.
const CONNECTIONS_PER_ADDRESS: u64 = 20_000;

/// A connection with what has not been written yet.
pub(super) struct Socket {
    pub(super) line: Arc<Line>,
    pub(super) out: Vec<u8>,
    written: usize,
    /// Before that nothing can be written.
    pub(super) is_connected: bool,
}

impl Socket {
    /// Begins to connect: thousands do at once, and nobody waits for it. On loopback connections are spread over addresses of this machine, for one has not ports enough.
    ///
    /// # Errors
    /// When files or ports have run out.
    pub(super) fn connect(to: &Endpoint, number: u64) -> anyhow::Result<Self> {
        let address = to.address;
        let raw = Raw::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))
            .context("no more sockets: see `ulimit -n`")?;
        // The first ones are not bound: a port that is bound is nobody else's, of no other broker's clients either, until a minute
        // after its connection has ended; one that the system gives at the connecting only has to be new to that broker.
        let host = u8::try_from(number / CONNECTIONS_PER_ADDRESS % 250).unwrap_or_default() + 1;
        if let IpAddr::V4(ip) = address.ip()
            && ip.is_loopback()
            && host > 1
        {
            raw.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into())?;
        }
        raw.set_tcp_nodelay(true)?;
        raw.set_nonblocking(true)?;
        match raw.connect(&address.into()) {
            Ok(()) => {}
            // The reader hears when it has come about, or has not.
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {}
            Err(error) => return Err(error).with_context(|| format!("nobody listens at {address}")),
        }
        let line = Arc::new(Line::new(raw.into(), to.session()?));
        Ok(Self { line, out: Vec::new(), written: 0, is_connected: false })
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.out.len() - self.written
    }

    /// Writes what waits, as far as it goes; says how many bytes that were, and whether that was all. What is left waits for the next time.
    pub(super) fn flush(&mut self) -> std::io::Result<(u64, bool)> {
        let before = self.written;
        while self.written < self.out.len() {
            match self.line.write(&self.out[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let bytes = (self.written - before) as u64;
        let is_all = self.line.flush()? && self.waiting() == 0;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
            // Thousands of connections seldom say much.
            self.out.shrink_to(4_096);
        }
        Ok((bytes, is_all))
    }

    /// Breaks it.
    pub(super) fn shut(&self) {
        self.line.shut();
    }
}
