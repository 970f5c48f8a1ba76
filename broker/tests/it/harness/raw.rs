//! Bytes on a TCP connection, for what no well-behaved client sends.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::within;

/// A bare connection.
pub(crate) struct Raw {
    stream: TcpStream,
}

impl Raw {
    /// Opens it.
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = within("a connection", TcpStream::connect(address)).await.expect("the broker listens");
        // What is sent in pieces comes in pieces.
        stream.set_nodelay(true).expect("a TCP connection");
        Self { stream }
    }

    /// Opens one that takes in as little as can be before it is read.
    pub(crate) async fn deaf(address: SocketAddr) -> Self {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.expect("a socket");
        socket.set_recv_buffer_size(1).expect("the kernel takes its least for it");
        let stream = within("a connection", socket.connect(address)).await.expect("the broker listens");
        Self { stream }
    }

    /// Sends bytes; a peer that has closed is not a fault.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> bool {
        within("bytes are taken or refused", self.stream.write_all(bytes)).await.is_ok()
    }

    /// Says that nothing more will be sent.
    pub(crate) async fn shut(&mut self) {
        let _ = within("shutdown", self.stream.shutdown()).await;
    }

    /// The head of the next response, empty when the connection ends without one.
    pub(crate) async fn head(&mut self) -> String {
        let mut head = Vec::new();
        within("a response", async {
            let mut byte = [0; 1];
            while !head.ends_with(b"\r\n\r\n") {
                match self.stream.read(&mut byte).await {
                    Ok(1) => head.push(byte[0]),
                    _ => break,
                }
            }
        })
        .await;
        String::from_utf8_lossy(&head).into_owned()
    }

    /// The next bytes, so many; `None` when the connection ends before.
    pub(crate) async fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        within("bytes", self.stream.read_exact(&mut bytes)).await.ok()?;
        Some(bytes)
    }

    /// All until the peer closes.
    pub(crate) async fn rest(&mut self, what: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        within(&format!("the end of {what}"), async {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = self.stream.read(&mut buffer).await {
                bytes.extend_from_slice(&buffer[..count]);
            }
        })
        .await;
        bytes
    }
}
