"""Durable listeners, each with a circle; they read event streams and hold what comes against what is due."""

import http.client
import json
import threading
import time

from servers import PARTITIONS, Failed, ask, connect
from taxis import distance_m

COUNT = 60
RADII_M = [300, 500, 800, 1200, 2000, 3000]
CONDITIONS = [
    (None, lambda _: True),
    ("speed_kmh < 10", lambda report: report.speed_kmh < 10),
    ("status = 'free'", lambda report: report.status == "free"),
    ("speed_kmh >= 30 AND status = 'hired'", lambda report: report.speed_kmh >= 30 and report.status == "hired"),
    (None, lambda _: True),
]
# A report so close to a circle's edge counts for nothing: the last bits of two programs may differ.
EDGE_M = 1
# A stream has a comment each 20 s where it has nothing else.
SILENT_S = 30


class Listener:
    def __init__(self, name, partition, place, radius_m, condition):
        self.name, self.partition, self.place, self.radius_m = name, partition, place, radius_m
        self.where, self.holds = condition
        self.epoch, self.offset = None, 0
        # Numbers of reports, in the order in which they came, and when.
        self.came = []
        self.faults = []
        self.breaks = 0
        self.connected_s = None
        self.due, self.edge = set(), set()

    def expect(self, reports):
        """Finds the reports that are due here, by a test of its own."""
        lon, lat = self.place
        for number, report in enumerate(reports):
            # A degree of latitude has 111 km.
            if abs(report.lat - lat) * 111_000 > self.radius_m + 100 or not self.holds(report):
                continue
            beyond_m = distance_m(lon, lat, report.lon, report.lat) - self.radius_m
            if abs(beyond_m) <= EDGE_M:
                self.edge.add(number)
            elif beyond_m < 0:
                self.due.add(number)

    def subscribe(self, url):
        filter_ = {"area": {"center": self.place, "radius_m": self.radius_m}}
        if self.where:
            filter_["where"] = self.where
        document = {"filters": [filter_], "durable": True}
        status, answer = ask(url, "PUT", f"/v1/clients/{self.name}/subscriptions/circle", document)
        if status != 201:
            raise Failed(f"{url} answered {status} to a subscription: {answer}")

    def follow(self, servers, stopped):
        """Reads until the demo ends, at the broker that serves this client, and at the next one after a break."""
        while not stopped.is_set():
            url = (servers.look(self.name) or {}).get("client_url")
            try:
                if url:
                    self.read(url, stopped)
            except (OSError, http.client.HTTPException):
                pass
            if not stopped.wait(0.5) and self.connected_s:
                self.connected_s, self.breaks = None, self.breaks + 1

    def read(self, url, stopped):
        connection = connect(url, SILENT_S)
        try:
            headers = {"Last-Event-ID": f"{self.epoch}:{self.offset}"} if self.epoch else {}
            connection.request("GET", f"/v1/clients/{self.name}/events", headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                return
            self.connected_s = time.monotonic()
            kind = id_ = None
            for line in answer:
                field, _, value = line.decode().rstrip("\n").partition(": ")
                if not field and value.startswith("nearcast ") and not self.epoch:
                    self.epoch = value.removeprefix("nearcast ").rpartition(":")[0]
                elif field == "event":
                    kind = value
                elif field == "id":
                    id_ = value
                elif field == "data":
                    self.take(kind, id_, value)
                if stopped.is_set():
                    return
        finally:
            connection.close()

    def take(self, kind, id_, data):
        now = time.monotonic()
        frame = json.loads(data)
        if kind != "event":
            self.faults.append(f"{kind} after offset {self.offset}: {data}")
        if id_:
            epoch, _, offset = id_.rpartition(":")
            if kind == "event" and (epoch, int(offset)) != (self.epoch, self.offset + 1):
                self.faults.append(f"{id_} came after {self.epoch}:{self.offset}")
            self.epoch, self.offset = epoch, int(offset)
        if kind == "event":
            self.came.append((int(frame["event"]["id"]), now))


def make(servers, reports):
    """As many listeners in each partition, around places of the recording."""
    by_partition = {}
    names = (f"listener-{number}" for number in range(100 * COUNT))
    homes = {broker.url: broker.partition for broker in servers.brokers}
    while sum(map(len, by_partition.values())) < COUNT:
        name = next(names)
        url = servers.look(name)["client_url"]
        own = by_partition.setdefault(homes[url], [])
        if len(own) < COUNT // PARTITIONS:
            own.append((name, url))
    listeners = []
    # Some reports stand at a placeholder far away.
    places = [[report.lon, report.lat] for report in reports if report.lon < 120]
    step = len(places) // COUNT
    for number, (partition, (name, url)) in enumerate(
        (partition, client) for partition, clients in sorted(by_partition.items()) for client in clients
    ):
        radius_m, condition = RADII_M[number % len(RADII_M)], CONDITIONS[number % len(CONDITIONS)]
        listener = Listener(name, partition, places[number * step], radius_m, condition)
        listener.expect(reports)
        listener.subscribe(url)
        listeners.append(listener)
    return listeners


def start(listeners, servers, stopped):
    for listener in listeners:
        threading.Thread(target=listener.follow, args=(servers, stopped), daemon=True).start()
    servers.wait("all listeners read", lambda: all(listener.connected_s for listener in listeners))
