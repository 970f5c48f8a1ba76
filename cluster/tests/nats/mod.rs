//! NATS servers on this machine, for the tests, the example, and the tests of the broker.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

/// The name and password of a client.
pub(crate) const USER: (&str, &str) = ("nearcast", "nearcast");
/// The name and password of a user of the system account.
pub(crate) const SYSTEM: (&str, &str) = ("system", "system");

/// Servers that end with it.
pub(crate) struct Servers {
    pub(crate) folder: PathBuf,
    pub(crate) servers: Vec<Server>,
}

pub(crate) struct Server {
    pub(crate) child: Child,
    port: u16,
    /// Where it says whether it is well.
    monitor: u16,
}

/// Installs the server, once, and says where it is.
pub(crate) fn program() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed =
        Command::new(here.join("../cluster/tests/nats/install")).arg(here.join("../target/nats")).output();
    let installed = installed.expect("bash installs the server");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    PathBuf::from(String::from_utf8(installed.stdout).expect("a path").trim())
}

impl Servers {
    /// Starts servers in a folder, which sync as `sync_interval` says.
    pub(crate) fn start(folder: &Path, count: usize, sync_interval: &str) -> Self {
        Self::start_linked(folder, count, sync_interval, "", |_, _, port| port)
    }

    /// Starts servers that reach each other by ways of the test's own: `link` is given a server, another one, and that one's port, and says at
    /// which port the first reaches the other. `settings` are more settings of their cluster.
    pub(crate) fn start_linked(
        folder: &Path,
        count: usize,
        sync_interval: &str,
        settings: &str,
        mut link: impl FnMut(usize, usize, u16) -> u16,
    ) -> Self {
        // All are held at the same time, so that they differ.
        let held: Vec<_> = (0..3 * count).map(|_| held()).collect();
        let ports: Vec<_> = held.iter().map(|held| held.local_addr().expect("an address").port()).collect();
        drop(held);
        let (clients, rest) = ports.split_at(count);
        let (routes, monitors) = rest.split_at(count);
        let (user, system) = (USER, SYSTEM);
        // Servers of another test that look for one of theirs at a port that it had before are not let in.
        let name = clients[0];
        for (at, ((client, route), monitor)) in clients.iter().zip(routes).zip(monitors).enumerate() {
            let others = routes.iter().enumerate().filter(|(other, _)| *other != at);
            let urls: Vec<_> =
                others.map(|(other, port)| format!("nats://127.0.0.1:{}", link(at, other, *port))).collect();
            let cluster = format!(
                "cluster {{ name: test{name}, listen: 127.0.0.1:{route}, routes: [{}]\n{settings} }}",
                urls.join(", ")
            );
            let config = format!(
                "server_name: n{at}\nlisten: 127.0.0.1:{client}\nhttp: 127.0.0.1:{monitor}\n\
                 jetstream {{ store_dir: \"{}\", sync_interval: {sync_interval} }}\n\
                 accounts {{\n  SYS {{ users: [{{ user: {}, password: {} }}] }}\n  \
                 N {{ jetstream: enabled, users: [{{ user: {}, password: {} }}] }}\n}}\nsystem_account: SYS\n{}\n",
                folder.join(format!("n{at}")).display(),
                system.0,
                system.1,
                user.0,
                user.1,
                if count > 1 { cluster } else { String::new() },
            );
            fs::write(folder.join(format!("n{at}.conf")), config).expect("a configuration");
        }
        let mut servers = Self { folder: folder.to_owned(), servers: Vec::new() };
        for (at, (port, monitor)) in clients.iter().zip(monitors).enumerate() {
            let child = servers.spawn(at);
            servers.servers.push(Server { child, port: *port, monitor: *monitor });
        }
        servers
    }

    fn spawn(&self, at: usize) -> Child {
        let log = fs::File::options().append(true).create(true).open(self.folder.join(format!("n{at}.log")));
        let mut server = Command::new(program());
        server.arg("--config").arg(self.folder.join(format!("n{at}.conf")));
        server.stdout(Stdio::null()).stderr(log.expect("a log")).spawn().expect("a server")
    }

    /// The servers' addresses, with commas between, for one of the [`USER`]s.
    pub(crate) fn addresses(&self, user: (&str, &str)) -> String {
        addresses(&self.ports(), user)
    }

    /// Where clients reach them.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.servers.iter().map(|server| server.port).collect()
    }

    /// Kills the server of that name, as `kill -9` does.
    #[cfg_attr(not(test), expect(dead_code, reason = "the example kills no server"))]
    pub(crate) fn kill(&mut self, name: &str) -> usize {
        let at = name.strip_prefix('n').and_then(|at| at.parse::<usize>().ok()).expect("a name");
        self.servers[at].child.kill().expect("it runs");
        self.servers[at].child.wait().expect("it ends");
        at
    }

    /// Starts servers again that were killed, and waits until they have what the others have.
    #[cfg_attr(not(test), expect(dead_code, reason = "the example kills no server"))]
    pub(crate) fn restart(&mut self, killed: &[usize]) {
        for &at in killed {
            self.servers[at].child = self.spawn(at);
        }
        let begun = Instant::now();
        while !killed.iter().all(|&at| self.is_well(at)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "servers {killed:?} do not come back");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_well(&self, at: usize) -> bool {
        let mut answer = String::new();
        let mut ask = || {
            let mut stream = TcpStream::connect(("127.0.0.1", self.servers[at].monitor))?;
            stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n")?;
            stream.read_to_string(&mut answer)
        };
        ask().is_ok() && answer.contains(" 200 ")
    }
}

/// A port that is free, and that no test of this program has had: one whose server was killed may start again there. It is none of those that the
/// system gives to connections, one of which could have it before the server does.
pub(crate) fn held() -> TcpListener {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let drawn = RandomState::new().build_hasher().finish();
        let port = 10_240 + u16::try_from(drawn % 20_000).expect("less than 20,000");
        if !GIVEN.lock().expect("no test panics here").insert(port) {
            continue;
        }
        if let Ok(held) = TcpListener::bind(("127.0.0.1", port)) {
            return held;
        }
    }
}

/// Addresses of servers at ports of this machine, with commas between, for one of the [`USER`]s.
pub(crate) fn addresses(ports: &[u16], (name, password): (&str, &str)) -> String {
    let address = |port| format!("nats://{name}:{password}@127.0.0.1:{port}");
    ports.iter().map(address).collect::<Vec<_>>().join(",")
}

impl Drop for Servers {
    fn drop(&mut self) {
        for Server { child, .. } in &mut self.servers {
            // It may have ended before.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
