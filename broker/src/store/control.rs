//! Orders to a running broker from who owns its data: a Unix socket in a directory that only the owner can enter.
//!
//! Not over HTTP, where any local user could ask, and a setting would have to say where copies may go: who can reach the
//! socket can read all of the data anyway. One line of JSON each way: `{"backup":"/where/to"}` or `"wipe"`,
//! `{"records":1,"bytes":2}` or `{"error":".."}`.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use super::copy::Written;
use super::error::StoreError;
use super::shared::{Request, Shared};

#[cfg(unix)]
pub(super) use unix::{Control, ask_for_backup, ask_to_wipe};

/// An order takes no more bytes than this: a path.
const ORDER_BYTES: u64 = 16_384;

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::path::PathBuf;
    use std::sync::atomic::Ordering;
    use std::thread::{self, JoinHandle};
    use std::time::Duration;

    use serde::{Deserialize, Serialize};

    use super::super::disk::{Identity, identity};
    use super::super::{backup, lock, wiping};
    use super::{Arc, ORDER_BYTES, Path, Request, Shared, StoreError, SyncSender, Written};

    /// Listens until it is dropped.
    #[derive(Debug)]
    pub(in super::super) struct Control {
        socket: PathBuf,
        identity: Identity,
        shared: Arc<Shared>,
        thread: Option<JoinHandle<()>>,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Order {
        Backup(String),
        Wipe,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Answer {
        Done { records: u64, bytes: u64 },
        Failed { error: String },
    }

    /// How long somebody may take to say what they want.
    const PATIENCE: Duration = Duration::from_secs(5);

    fn socket_of(dir: &Path) -> PathBuf {
        dir.join("control").join("socket")
    }

    /// Does something with a socket's path. An address has room for some hundred bytes; a longer path is named by its folder,
    /// opened.
    fn reach<T>(socket: &Path, reach: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        if SocketAddr::from_pathname(socket).is_ok() { reach(socket) } else { reach_far(socket, reach) }
    }

    #[cfg(target_os = "linux")]
    fn reach_far<T>(socket: &Path, reach: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        use std::os::fd::AsRawFd as _;
        let folder = fs::File::open(socket.parent().unwrap_or(socket))?;
        let name = socket.file_name().unwrap_or_default();
        reach(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
    }

    #[cfg(not(target_os = "linux"))]
    fn reach_far<T>(socket: &Path, _reach: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let bytes = socket.as_os_str().len();
        let why =
            format!("its path takes {bytes} bytes, more than one of a socket may here: shorten store.data");
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }

    impl Control {
        /// Listens in a data directory that this process has. Without it all goes on but the backups and the wipes that are asked for.
        pub(in super::super) fn start(
            dir: &Path,
            shared: &Arc<Shared>,
            requests: &SyncSender<Request>,
        ) -> Option<Self> {
            let socket = socket_of(dir);
            let started = || -> Result<Self, StoreError> {
                let of = |error: io::Error| StoreError::io("listen on", &socket, &error);
                let folder = dir.join("control");
                lock::make_dir(&folder)?;
                fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).map_err(of)?;
                match fs::remove_file(&socket) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of(error)),
                    _ => {}
                }
                let listener = reach(&socket, |path| UnixListener::bind(path)).map_err(of)?;
                let identity = identity(&fs::metadata(&socket).map_err(of)?);
                let for_thread = (Arc::clone(shared), requests.clone());
                let thread = thread::Builder::new().name("control".to_owned());
                let thread =
                    thread.spawn(move || listen(&listener, &for_thread.0, &for_thread.1)).map_err(of)?;
                let (socket, shared) = (socket.clone(), Arc::clone(shared));
                Ok(Self { socket, identity, shared, thread: Some(thread) })
            };
            started()
                .inspect_err(|error| tracing::warn!(%error, "no backup can be made, and no wipe be asked for, while the broker runs"))
                .ok()
        }
    }

    impl Drop for Control {
        fn drop(&mut self) {
            self.shared.is_closing.store(true, Ordering::Relaxed);
            // Another broker may have another directory of this name by now.
            if !fs::metadata(&self.socket).is_ok_and(|found| identity(&found) == self.identity) {
                return;
            }
            // Wakes the thread.
            if reach(&self.socket, |path| UnixStream::connect(path)).is_ok() {
                let _ = self.thread.take().map(JoinHandle::join);
            }
            let _ = fs::remove_file(&self.socket);
        }
    }

    fn listen(listener: &UnixListener, shared: &Shared, requests: &SyncSender<Request>) {
        for stream in listener.incoming() {
            if shared.is_closing.load(Ordering::Relaxed) {
                return;
            }
            if let Err(error) = stream.and_then(|stream| serve(stream, shared, requests)) {
                tracing::warn!(%error, "an order was not carried out");
            }
        }
    }

    fn serve(mut stream: UnixStream, shared: &Shared, requests: &SyncSender<Request>) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new((&stream).take(ORDER_BYTES)).read_line(&mut line)?;
        let done = match serde_json::from_str::<Order>(&line) {
            Ok(order) => {
                let made = match order {
                    Order::Backup(to) => backup::copy(shared, requests, Path::new(&to)),
                    Order::Wipe => wiping::now(shared, requests, wiping::REST),
                };
                made.map_err(|error| error.to_string())
            }
            Err(error) => Err(format!("not an order: {error}")),
        };
        let answer = match done {
            Ok(Written { records, bytes }) => Answer::Done { records, bytes },
            Err(error) => Answer::Failed { error },
        };
        serde_json::to_writer(&mut stream, &answer)?;
        stream.write_all(b"\n")
    }

    /// Asks the broker that has a directory for a backup.
    pub(in super::super) fn ask_for_backup(
        dir: &Path,
        to: &Path,
        holder: &str,
    ) -> Result<Written, StoreError> {
        let Some(text) = to.to_str() else {
            let why = "the path of the copy is not UTF-8".to_owned();
            return Err(StoreError::NoCopy { to: to.to_owned(), why });
        };
        give(dir, &Order::Backup(text.to_owned()), holder)?.ok_or_else(|| {
            let why = format!(
                "{holder}, which has the data, ended before it was done; what it left there is no copy"
            );
            StoreError::NoCopy { to: to.to_owned(), why }
        })
    }

    /// Asks the broker that has a directory to wipe it.
    pub(in super::super) fn ask_to_wipe(dir: &Path, holder: &str) -> Result<Written, StoreError> {
        let why = || format!("{holder}, which has the data, ended before it was done");
        give(dir, &Order::Wipe, holder)?.ok_or_else(|| StoreError::Refused { why: why() })
    }

    /// Gives an order to the broker that has a directory; `None` where it ended before it was carried out.
    fn give(dir: &Path, order: &Order, holder: &str) -> Result<Option<Written>, StoreError> {
        let socket = socket_of(dir);
        let of = |error: io::Error| {
            let why = format!("{error}; {holder} has the directory");
            StoreError::Io { what: "ask over", path: socket.clone(), why }
        };
        let ask = || {
            let mut stream = reach(&socket, |path| UnixStream::connect(path))?;
            let mut line = serde_json::to_vec(order)?;
            line.push(b'\n');
            stream.write_all(&line)?;
            // While it is carried out it says nothing, however long that takes. Who is killed meanwhile says nothing at all.
            let mut answer = String::new();
            let _ = BufReader::new(&stream).read_line(&mut answer);
            Ok(answer)
        };
        let answer = ask().map_err(of)?;
        if !answer.ends_with('\n') {
            return Ok(None);
        }
        match serde_json::from_str(&answer).map_err(|error| of(error.into()))? {
            Answer::Done { records, bytes } => Ok(Some(Written { records, bytes })),
            Answer::Failed { error } => Err(StoreError::Refused { why: error }),
        }
    }
}

#[cfg(not(unix))]
#[derive(Debug)]
pub(super) enum Control {}

#[cfg(not(unix))]
impl Control {
    pub(super) fn start(_dir: &Path, _shared: &Arc<Shared>, _requests: &SyncSender<Request>) -> Option<Self> {
        None
    }
}

#[cfg(not(unix))]
pub(super) fn ask_for_backup(dir: &Path, _to: &Path, holder: &str) -> Result<Written, StoreError> {
    ask_to_wipe(dir, holder)
}

#[cfg(not(unix))]
pub(super) fn ask_to_wipe(dir: &Path, holder: &str) -> Result<Written, StoreError> {
    let _ = ORDER_BYTES;
    Err(StoreError::InUse { dir: dir.to_owned(), holder: holder.to_owned() })
}
