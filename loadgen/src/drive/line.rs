//! A connection's bytes, which one thread writes and another one reads: in the clear, or over TLS.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::ClientConnection;

use crate::endpoint::explained;

/// A connection that does not block.
pub(super) struct Line {
    stream: TcpStream,
    tls: Option<Mutex<ClientConnection>>,
}

impl Line {
    pub(super) fn new(stream: TcpStream, session: Option<ClientConnection>) -> Self {
        Self { stream, tls: session.map(Mutex::new) }
    }

    pub(super) fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// The session, where there is one.
    fn tls(&self) -> Option<MutexGuard<'_, ClientConnection>> {
        Some(self.tls.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Goes on with whatever comes before the first byte, when something has come or can be written; says whether that is over.
    ///
    /// # Errors
    /// When there is no connection to be had, or the other side is not who it should be.
    pub(super) fn greet(&self) -> io::Result<bool> {
        let Some(mut tls) = self.tls() else { return Ok(true) };
        loop {
            self.push(&mut tls)?;
            if !tls.is_handshaking() {
                return Ok(true);
            }
            match tls.read_tls(&mut &self.stream) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => self.process(&mut tls)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads what has come, or a part of it. Nothing at all: the other side has ended it.
    ///
    /// # Errors
    /// `WouldBlock` when nothing has come; others when the connection broke.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut tls) = self.tls() else { return (&self.stream).read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Without a word of farewell, as in the clear.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            match tls.read_tls(&mut &self.stream) {
                // Of an end the session learns so, too, and says it when it is read.
                Ok(_) => self.process(&mut tls)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether nothing more has come when a read leaves room.
    pub(super) fn is_drained_by(&self, read: usize, room: usize) -> bool {
        read < room && self.tls.is_none()
    }

    /// Writes what goes; says how much of it that was.
    ///
    /// # Errors
    /// `WouldBlock` when nothing goes; others when the connection broke.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let Some(mut tls) = self.tls() else { return (&self.stream).write(bytes) };
        self.push(&mut tls)?;
        if tls.wants_write() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let written = tls.writer().write(bytes)?;
        self.push(&mut tls)?;
        Ok(written)
    }

    /// Whether all that was written has gone; if not, as much more as goes has.
    ///
    /// # Errors
    /// When the connection broke.
    pub(super) fn flush(&self) -> io::Result<bool> {
        let Some(mut tls) = self.tls() else { return Ok(true) };
        self.push(&mut tls)?;
        Ok(!tls.wants_write())
    }

    /// Breaks it.
    pub(super) fn shut(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Sends what the session has made, as far as it goes.
    fn push(&self, tls: &mut ClientConnection) -> io::Result<()> {
        while tls.wants_write() {
            match tls.write_tls(&mut &self.stream) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Opens what has come, and answers where the session has to.
    fn process(&self, tls: &mut ClientConnection) -> io::Result<()> {
        let opened = tls.process_new_packets();
        // Tells the other side what is wrong, if it can be told.
        let pushed = self.push(tls);
        opened.map_err(|error| explained(io::Error::other(error)))?;
        pushed
    }
}
