//! One connection, as the sender has it.

use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use socket2::{Domain, Protocol, Socket as Raw, Type};

/// How long a connection may take to come about.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// Connections from one address of this machine to one port: the system has some 28,000 ports to give.
const CONNECTIONS_PER_ADDRESS: u64 = 20_000;

/// A connection with what has not been written yet.
pub(super) struct Socket {
    pub(super) stream: Arc<TcpStream>,
    pub(super) out: Vec<u8>,
    written: usize,
}

impl Socket {
    /// Connects. On loopback connections are spread over addresses of this machine, for one has not ports enough.
    ///
    /// # Errors
    /// When nobody listens there, or files or ports have run out.
    pub(super) fn connect(address: SocketAddr, number: u64) -> anyhow::Result<Self> {
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
        raw.connect_timeout(&address.into(), CONNECT_WAIT)
            .with_context(|| format!("nobody listens at {address}"))?;
        raw.set_tcp_nodelay(true)?;
        raw.set_nonblocking(true)?;
        Ok(Self { stream: Arc::new(raw.into()), out: Vec::new(), written: 0 })
    }

    /// Bytes that wait.
    pub(super) fn waiting(&self) -> usize {
        self.out.len() - self.written
    }

    /// Writes what waits, as far as it goes; says how many bytes that were. What is left waits for the next time.
    pub(super) fn flush(&mut self) -> std::io::Result<u64> {
        let before = self.written;
        while self.written < self.out.len() {
            match (&*self.stream).write(&self.out[self.written..]) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let bytes = (self.written - before) as u64;
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
            // Thousands of connections seldom say much.
            self.out.shrink_to(4_096);
        }
        Ok(bytes)
    }

    /// Breaks it.
    pub(super) fn shut(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
