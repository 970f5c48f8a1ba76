#!/usr/bin/env -S python3 -B
"""What several brokers of a cluster deliver beside one, each pinned to a core of its own, and how long a takeover with many clients is.

`scale.py NATS_SERVER target/release/nearcast target/release/examples/deliveries`, the last one by
`cargo build --release -p nearcast-cluster --example deliveries`. Three NATS servers sync each record, in a folder in memory unless
`--folder` says otherwise. Brokers have the cores from 0 on; NATS and the load have those that are named. Figures: docs/results/cluster.md.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path

from servers import SYSTEM, USER, Server, Servers, ask, follows, free_ports

# The 99th percentile from when an event is due to its delivery.
BOUNDS_MS = [100, 1_000]
# Deliveries a second about which each bound is looked for, by sessions, deliveries an event and brokers: found on 16 cores of an Intel
# Xeon. Others begin as one broker does.
STARTS = {
    ("plain", 10, 1): (62_000, 400_000),
    ("plain", 100, 1): (52_000, 800_000),
    ("plain", 10, 10): (620_000, 1_050_000),
    ("plain", 100, 10): (2_900_000, 5_500_000),
    ("durable", 10, 1): (55_000, 160_000),
    ("durable", 100, 1): (38_000, 200_000),
    ("durable", 10, 10): (280_000, 550_000),
    ("durable", 100, 10): (600_000, 2_000_000),
}
START = (50_000, 150_000)
SHARES = [(0.8, 1, 1.2), (0.8, 1, 1.25)]
TICKS_S = os.sysconf("SC_CLK_TCK")


class Cluster(Servers):
    """Brokers of as many partitions as wished over NATS servers that stay."""

    def __init__(self, arguments, folder):
        super().__init__(folder, arguments.nats, arguments.broker)
        self.pinned = arguments
        self.turn = 0

    def start_nats(self):
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores(self.pinned.nats_cores))
        self.start_servers()
        os.sched_setaffinity(0, before)

    def start_brokers(self, count, standbys=0):
        """Active brokers of that many partitions, a core each; standbys follow on the next cores."""
        self.turn += 1
        self.brokers = []
        ports = free_ports(count + standbys)
        for at, port in enumerate(ports):
            self.start_pinned(at % count + 1, count, port, at)
            if at == count - 1:
                self.wait("each partition has an active broker", lambda: all(map(Server.is_ready, self.brokers)))
        self.wait("standbys follow", lambda: all(map(follows, self.brokers[count:])))
        # Each broker sees for itself which members serve a partition.
        for broker in self.brokers[:count]:
            self.wait("all are listed", lambda broker=broker: listed(broker) == (count, len(ports)))
        return self.brokers

    def start_pinned(self, partition, count, port, core):
        url = f"http://127.0.0.1:{port}"
        command = ["taskset", "-c", str(core), self.broker_program, "serve", "--listen", f"127.0.0.1:{port}"]
        command += ["--shards", "1", "--cluster", self.addresses[USER], "--cluster-partition", f"{partition}/{count}"]
        command += ["--data", self.folder / f"broker-{self.turn}-{port}"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("BROKER__")}
        env["BROKER__CLUSTER__SYSTEM_NATS"] = self.addresses[SYSTEM]
        env["BROKER__CLUSTER__URL"] = url
        env["BROKER__CLUSTER__NAME"] = f"scale{self.turn}"
        env["BROKER__SERVER__ENGINE"] = "cells"
        log = self.folder / f"broker-{self.turn}-{port}.log"
        self.brokers.append(Server(f"the broker at {url}", command, log, env, url, partition))

    def end_brokers(self):
        for broker in self.brokers:
            broker.kill()
        self.brokers = []


def listed(broker):
    """How many active brokers and members a broker sees."""
    members = (ask(broker.url, "GET", "/v1/cluster")[1] or {}).get("members", [])
    return sum(member["role"] == "active" for member in members), len(members)


def cores(text):
    """0-9,12 as a set."""
    spans = (part.partition("-") for part in text.split(","))
    return {core for first, _, last in spans for core in range(int(first), int(last or first) + 1)}


def used_s(pid):
    """Seconds of processor time that each kind of thread of a process has used."""
    used = Counter()
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            name, _, rest = (task / "stat").read_text().partition("(")[2].rpartition(") ")
        except OSError:
            continue
        fields = rest.split()
        used[name.rstrip("0123456789-")] += (int(fields[11]) + int(fields[12])) / TICKS_S
    return used


def load(arguments, cluster, brokers, options):
    """Runs the load; a dictionary for each phase, with the cores that everybody used meanwhile."""
    addresses = ",".join(broker.url.removeprefix("http://") for broker in brokers)
    command = ["taskset", "-c", arguments.load_cores, arguments.load, addresses, *map(str, options)]
    found = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        pids = {"broker": [broker.process.pid for broker in brokers], "nats": [nats.process.pid for nats in cluster.nats]}
        pids["load"] = [process.pid]

        def used():
            return {who: [used_s(pid) for pid in those] for who, those in pids.items()}

        time.sleep(1)
        before, at = used(), time.monotonic()
        for line in process.stdout:
            after, now = used(), time.monotonic()
            phase = dict(part.split("=") for part in line.split())
            for who in pids:
                each = [b - a for a, b in zip(before[who], after[who])]
                phase[f"{who}_cores"] = [round(sum(one.values()) / (now - at), 2) for one in each]
            threads = (after["broker"][0] - before["broker"][0]).most_common(5)
            phase["threads"] = {name: round(used / (now - at), 2) for name, used in threads}
            before, at = after, now
            found.append(phase)
    if process.returncode != 0:
        print(f"the load ended with {process.returncode}", flush=True)
    return found


def tell(what, phases):
    """Prints the phases; the most deliveries a second within each of the bounds."""
    best = [0] * len(BOUNDS_MS)
    for phase in phases:
        for at, bound_ms in enumerate(BOUNDS_MS):
            if phase["came"] == phase["due"] and phase["clients_not_exact"] == "0" and float(phase["p99_ms"]) < bound_ms:
                best[at] = max(best[at], float(phase["deliveries_s"]))
        print(
            f"  {what} rate {phase['rate']} kept {phase['kept_up']} due {phase['due']} came {phase['came']} not exact"
            f" {phase['clients_not_exact']} offsets {phase['offsets_wrong']} refused {phase['refused']} p50 {phase['p50_ms']}"
            f" p99 {phase['p99_ms']} in time {phase['in_time']} last {phase['last_s']} deliveries/s {phase['deliveries_s']}"
            f" cores: brokers {phase['broker_cores']} nats {phase['nats_cores']} load {phase['load_cores']} threads {phase['threads']}",
            flush=True,
        )
    return best


def scale(arguments, cluster):
    best = {}
    for turn in range(arguments.rounds):
        for durable in arguments.modes.split(","):
            for count in map(int, arguments.brokers.split(",")):
                brokers = cluster.start_brokers(count)
                for group in map(int, arguments.groups.split(",")):
                    key = (durable, group, count)
                    steps = [round(rate * share / group) for rate, shares in zip(STARTS.get(key, START), SHARES) for share in shares]
                    options = ["--clients", arguments.clients, "--group", group, "--seconds", arguments.seconds]
                    options += ["--rates", ",".join(map(str, steps)), "--threads", arguments.threads]
                    options += ["--publishers", arguments.publishers] + ["--durable"] * (durable == "durable")
                    found = tell(f"{turn + 1} {durable} x{group} {count}:", load(arguments, cluster, brokers, options))
                    best.setdefault(key, []).append(found)
                cluster.end_brokers()
    print("| sessions | deliveries an event | brokers | p99 below | deliveries/s, middle (least to most) | rounds |")
    for (durable, group, count), rounds in best.items():
        for at, bound_ms in enumerate(BOUNDS_MS):
            values = sorted(found[at] for found in rounds)
            middle, least, most = values[len(values) // 2], values[0], values[-1]
            print(f"| {durable} | {group} | {count} | {bound_ms} ms | {middle:,.0f} ({least:,.0f} to {most:,.0f}) | {len(values)} |")


def fill(broker, count):
    """Publishes that many live events, away from all clients."""
    for first in range(0, count, 1_000):
        lines = "".join(
            json.dumps(
                {
                    "type": "Feature",
                    "id": f"live{number}",
                    "ttl_s": 3_600,
                    "geometry": {"type": "Point", "coordinates": [number % 1_000 * 1e-3 - 100, number // 1_000 * 1e-3]},
                    "properties": {"kind": "parked", "number": number},
                }
            )
            + "\n"
            for number in range(first, min(first + 1_000, count))
        )
        request = urllib.request.Request(f"{broker.url}/v1/events", lines.encode(), {"content-type": "application/x-ndjson"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            json.load(answer)


def takeover(arguments, cluster):
    for turn in range(arguments.rounds):
        active, standby = cluster.start_brokers(1, 1)
        begun = time.monotonic()
        fill(active, arguments.live)
        print(f"  {arguments.live} live events in {time.monotonic() - begun:.1f} s", flush=True)
        options = ["--clients", arguments.clients, "--group", 10, "--seconds", 10, "--rates", 100, "--durable", "--publishers", 1]
        options += ["--kill", active.process.pid, "--standby", standby.url.removeprefix("http://")]
        active.killed = True
        for phase in load(arguments, cluster, [active], options):
            print(f"  takeover {turn + 1}: {phase}", flush=True)
        cluster.end_brokers()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nats")
    parser.add_argument("broker")
    parser.add_argument("load")
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--what", choices=["scale", "takeover"], default="scale")
    parser.add_argument("--brokers", default="1,10")
    parser.add_argument("--groups", default="10,100")
    parser.add_argument("--modes", default="plain,durable")
    parser.add_argument("--clients", type=int, default=10_000)
    parser.add_argument("--live", type=int, default=0, help="events that are live when the broker is killed")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--nats-cores", default="10-12")
    parser.add_argument("--load-cores", default="13-15")
    parser.add_argument("--threads", type=int, default=3, help="of the load that read")
    parser.add_argument("--publishers", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        cluster = Cluster(arguments, folder)
        try:
            cluster.start_nats()
            {"scale": scale, "takeover": takeover}[arguments.what](arguments, cluster)
        finally:
            cluster.end()


if __name__ == "__main__":
    sys.exit(main())
