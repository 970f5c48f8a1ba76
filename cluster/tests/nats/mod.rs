//! Three NATS servers on this machine, for the tests and the example.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions};

/// The name and password of a client, and of a user of the system account.
const USER: (&str, &str) = ("nearcast", "nearcast");
const SYSTEM: (&str, &str) = ("system", "system");

/// Servers that end with it.
pub(crate) struct Servers {
    folder: PathBuf,
    servers: Vec<Server>,
}

struct Server {
    child: Child,
    port: u16,
}

/// Installs the server, once, and says where it is.
pub(crate) fn program() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let installed = Command::new(here.join("tests/nats/install")).arg(here.join("../target/nats")).output();
    let installed = installed.expect("bash installs the server");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    PathBuf::from(String::from_utf8(installed.stdout).expect("a path").trim())
}

impl Servers {
    /// Starts servers in a folder, which sync as `sync_interval` says.
    pub(crate) fn start(folder: &Path, count: usize, sync_interval: &str) -> Self {
        // All are held at the same time, so that they differ.
        let held: Vec<_> =
            (0..2 * count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports: Vec<_> = held.iter().map(|held| held.local_addr().expect("an address").port()).collect();
        drop(held);
        let (clients, routes) = ports.split_at(count);
        let urls: Vec<_> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
        let (user, system) = (USER, SYSTEM);
        for (at, (client, route)) in clients.iter().zip(routes).enumerate() {
            let cluster =
                format!("cluster {{ name: test, listen: 127.0.0.1:{route}, routes: [{}] }}", urls.join(", "));
            let config = format!(
                "server_name: n{at}\nlisten: 127.0.0.1:{client}\n\
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
        for (at, port) in clients.iter().enumerate() {
            let child = servers.spawn(at);
            servers.servers.push(Server { child, port: *port });
        }
        servers
    }

    fn spawn(&self, at: usize) -> Child {
        let log = fs::File::options().append(true).create(true).open(self.folder.join(format!("n{at}.log")));
        let mut server = Command::new(program());
        server.arg("--config").arg(self.folder.join(format!("n{at}.conf")));
        server.stdout(Stdio::null()).stderr(log.expect("a log")).spawn().expect("a server")
    }

    /// A client that may be connected to any of them, and connects again.
    pub(crate) async fn client(&self) -> Client {
        self.connect(USER).await
    }

    /// A user of the system account.
    pub(crate) async fn system(&self) -> Client {
        self.connect(SYSTEM).await
    }

    async fn connect(&self, user: (&str, &str)) -> Client {
        let urls: Vec<_> =
            self.servers.iter().map(|server| format!("nats://127.0.0.1:{}", server.port)).collect();
        let options = || {
            let options = ConnectOptions::with_user_and_password(user.0.to_owned(), user.1.to_owned());
            options.reconnect_delay_callback(|_| Duration::from_millis(50))
        };
        let begun = Instant::now();
        loop {
            match options().connect(urls.clone()).await {
                Ok(client) => return client,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Kills the server of that name, as `kill -9` does.
    #[cfg_attr(not(test), expect(dead_code, reason = "the example kills no server"))]
    pub(crate) fn kill(&mut self, name: &str) -> usize {
        let at = name.strip_prefix('n').and_then(|at| at.parse::<usize>().ok()).expect("a name");
        self.servers[at].child.kill().expect("it runs");
        self.servers[at].child.wait().expect("it ends");
        at
    }

    /// Starts a server again that was killed.
    #[cfg_attr(not(test), expect(dead_code, reason = "the example kills no server"))]
    pub(crate) fn restart(&mut self, at: usize) {
        self.servers[at].child = self.spawn(at);
    }
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
