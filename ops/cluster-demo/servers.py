"""Three NATS servers and six brokers on this machine, in a folder that ends with them."""

import http.client
import json
import os
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

PARTITIONS = 3
USER, SYSTEM = "nearcast:nearcast", "system:system"
START_S = 60


class Failed(Exception):
    """The demo cannot go on."""


class Server:
    """A process with a log file."""

    def __init__(self, name, command, log, env=None, url=None, partition=None):
        self.name, self.log, self.url, self.partition = name, log, url, partition
        self.killed = False
        with log.open("ab") as output:
            # In a session of its own, so that Ctrl-C reaches this program alone, which ends the others.
            self.process = subprocess.Popen(
                command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()

    def is_ready(self):
        return ask(self.url, "GET", "/readyz")[0] == 200

    def check(self):
        if not self.killed and self.process.poll() is not None:
            lines = self.log.read_text(errors="replace").splitlines()
            raise Failed("\n".join([f"{self.name} ended with status {self.process.returncode}:", *lines[-20:]]))


class Servers:
    def __init__(self, folder, nats_program, broker_program):
        self.folder, self.nats_program, self.broker_program = Path(folder), nats_program, broker_program
        self.nats, self.brokers = [], []
        self.monitors = []

    def all(self):
        return self.nats + self.brokers

    def start(self):
        """Each NATS server, then a broker of each partition, then a standby for each."""
        self.start_servers()
        ports = free_ports(2 * PARTITIONS)
        for partition, port in enumerate(ports[:PARTITIONS], 1):
            self.start_broker(partition, port)
        self.wait("each partition has an active broker", lambda: all(broker.is_ready() for broker in self.brokers))
        active = list(self.brokers)
        for partition, port in enumerate(ports[PARTITIONS:], 1):
            self.start_broker(partition, port)
        standbys = self.brokers[PARTITIONS:]
        self.wait("the standbys follow", lambda: all(map(follows, standbys)))
        self.wait("all brokers are listed", lambda: len((self.look() or {}).get("members", [])) == len(ports))
        return active, standbys

    def start_servers(self):
        clients, routes, self.monitors = (free_ports(9)[at : at + 3] for at in (0, 3, 6))
        for at in range(3):
            config = self.folder / f"n{at + 1}.conf"
            others = ", ".join(f"nats://127.0.0.1:{port}" for port in routes if port != routes[at])
            config.write_text(
                f"server_name: n{at + 1}\nlisten: 127.0.0.1:{clients[at]}\nhttp: 127.0.0.1:{self.monitors[at]}\n"
                f'jetstream {{ store_dir: "{self.folder / f"n{at + 1}"}", sync_interval: always }}\n'
                f"cluster {{ name: demo, listen: 127.0.0.1:{routes[at]}, routes: [{others}] }}\n"
                f"accounts {{\n  SYS {{ users: [{user(SYSTEM)}] }}\n"
                f"  N {{ jetstream: enabled, users: [{user(USER)}] }}\n}}\nsystem_account: SYS\n"
            )
            log = self.folder / f"n{at + 1}.log"
            self.nats.append(Server(f"NATS server n{at + 1}", [self.nats_program, "--config", config], log))
        urls = [f"http://127.0.0.1:{port}" for port in self.monitors]
        self.wait("the NATS servers are well", lambda: all(ask(url, "GET", "/healthz")[0] == 200 for url in urls))
        self.addresses = {who: ",".join(f"nats://{who}@127.0.0.1:{port}" for port in clients) for who in (USER, SYSTEM)}

    def start_broker(self, partition, port):
        url = f"http://127.0.0.1:{port}"
        command = [self.broker_program, "serve", "--listen", f"127.0.0.1:{port}", "--shards", "2"]
        command += ["--cluster", self.addresses[USER], "--cluster-partition", f"{partition}/{PARTITIONS}"]
        command += ["--data", self.folder / f"broker-{port}"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("BROKER__")}
        env["BROKER__CLUSTER__SYSTEM_NATS"] = self.addresses[SYSTEM]
        env["BROKER__CLUSTER__URL"] = url
        # Six brokers need no GPU here.
        env["BROKER__SERVER__ENGINE"] = "cells"
        log = self.folder / f"broker-{port}.log"
        self.brokers.append(Server(f"the broker at {url}", command, log, env, url, partition))

    def wait(self, what, is_so):
        end = time.monotonic() + START_S
        while not is_so():
            self.check()
            if time.monotonic() > end:
                raise Failed(f"{START_S} s have passed, and it is not so: {what}")
            time.sleep(0.1)

    def check(self):
        """Fails if a process has ended that was not killed here."""
        for server in self.all():
            server.check()

    def look(self, client=None):
        """`GET /v1/cluster`, of the first broker that answers it; None while none does."""
        path = "/v1/cluster" + (f"?client={urllib.parse.quote(client)}" if client else "")
        for broker in self.brokers:
            status, answer = ask(broker.url, "GET", path, timeout_s=3)
            if status == 200:
                return answer
        return None

    def leader(self, stream):
        """The NATS server that leads a stream, as the servers say themselves; the first one if none says so."""
        for at, port in enumerate(self.monitors):
            answer = ask(f"http://127.0.0.1:{port}", "GET", "/jsz?accounts=true&streams=true")[1] or {}
            for account in answer.get("account_details", []):
                for detail in account.get("stream_detail", []):
                    if detail["name"] == stream and detail.get("cluster", {}).get("leader") == f"n{at + 1}":
                        return self.nats[at]
        return self.nats[0]

    def end(self):
        for server in self.all():
            server.kill()


def follows(standby):
    """Whether a standby says that it is one. How much it has read is not asked: at the start there is nothing."""
    return (ask(standby.url, "GET", "/readyz")[1] or {}).get("phase") == "standby"


def user(name_and_password):
    name, password = name_and_password.split(":")
    return f"{{ user: {name}, password: {password} }}"


def free_ports(count):
    # All are held at the same time, so that they differ.
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


def connect(url, timeout_s):
    parts = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)


def ask(url, method, path, document=None, timeout_s=10):
    """The status and the JSON document of an answer, each None where there is none."""
    connection = connect(url, timeout_s)
    try:
        body = None if document is None else json.dumps(document)
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        text = answer.read()
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, None
    except (OSError, http.client.HTTPException):
        return None, None
    finally:
        connection.close()
