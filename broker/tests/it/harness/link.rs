//! A link between two programs on this machine, which can be cut, or fall silent.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// A port that leads to another one. It ends when dropped, and needs a runtime.
pub(crate) struct Link {
    port: u16,
    state: watch::Sender<State>,
    accepting: JoinHandle<()>,
}

/// What becomes of what is sent over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It arrives.
    Whole,
    /// Connections are closed, new ones as well.
    Cut,
    /// Connections stay, and what is sent in these directions arrives when the link is whole again, as over a network that is away.
    Silent {
        /// From those that connect.
        there: bool,
        /// To those that connect.
        back: bool,
    },
}

impl State {
    /// Silent in both directions.
    pub(crate) const SILENT: Self = Self::Silent { there: true, back: true };
}

impl Link {
    /// A link to a port of this machine.
    pub(crate) fn to(target: u16) -> Self {
        let held = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        held.set_nonblocking(true).expect("it need not wait");
        let port = held.local_addr().expect("an address").port();
        let listener = TcpListener::from_std(held).expect("a runtime");
        let (state, states) = watch::channel(State::Whole);
        Self { port, state, accepting: tokio::spawn(accept(listener, target, states)) }
    }

    /// Where it begins.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: u16, states: watch::Receiver<State>) {
    let mut links = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((stream, _)) = accepted else { continue };
                if *states.borrow() != State::Cut {
                    links.spawn(connect(stream, target, states.clone()));
                }
            }
            Some(_) = links.join_next() => {}
        }
    }
}

/// Either end's end is the other's.
async fn connect(here: TcpStream, target: u16, mut states: watch::Receiver<State>) {
    let Ok(there) = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).await else { return };
    for stream in [&here, &there] {
        // A link adds no time of its own, as far as that is possible.
        let _ = stream.set_nodelay(true);
    }
    let ((here_read, here_write), (there_read, there_write)) = (here.into_split(), there.into_split());
    let (to, from) = (states.clone(), states.clone());
    tokio::select! {
        () = carry(here_read, there_write, to, |state| matches!(state, State::Silent { there: true, .. })) => {}
        () = carry(there_read, here_write, from, |state| matches!(state, State::Silent { back: true, .. })) => {}
        _ = states.wait_for(|state| *state == State::Cut) => {}
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut states: watch::Receiver<State>,
    is_held: impl Fn(&State) -> bool,
) {
    let mut bytes = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut bytes).await;
        // An end does not come through a link that is silent, either.
        if states.wait_for(|state| !is_held(state)).await.is_err() {
            return;
        }
        match read {
            Ok(count) if count > 0 && to.write_all(&bytes[..count]).await.is_ok() => {}
            _ => return,
        }
    }
}
