"""The recorded taxis, and their replay through all active brokers."""

import csv
import gzip
import http.client
import itertools
import json
import math
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from servers import connect

RECORDING = Path(__file__).resolve().parents[2] / "loadgen/data/shenzhen-taxi/taxi_20min.csv.gz"
# As in matcher/src/geo.rs.
EARTH_RADIUS_M = 6_371_008.8
PUBLISHERS = 3
BATCH = 8
# Longer than a broker takes to refuse what NATS does not store.
ANSWER_S = 20


class Report(NamedTuple):
    at_s: float
    lon: float
    lat: float
    speed_kmh: int
    status: str
    document: str


def recording():
    """All reports, in the order of time. The id of an event is the number of its report."""
    reports = []
    with gzip.open(RECORDING, "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
        begin_ms = int(rows[0]["ts_ms"])
        for number, row in enumerate(rows):
            lon, lat, speed_kmh = float(row["lon"]), float(row["lat"]), int(row["speed_kmh"])
            status = "free" if row["status"] == "0" else "hired"
            feature = {
                "type": "Feature",
                "id": str(number),
                "geometry": {"type": "Point", "coordinates": [lon, lat]},
                "properties": {"taxi": row["taxi_id"], "speed_kmh": speed_kmh, "status": status},
            }
            at_s = (int(row["ts_ms"]) - begin_ms) / 1000
            reports.append(Report(at_s, lon, lat, speed_kmh, status, json.dumps(feature)))
    return reports


def distance_m(lon, lat, other_lon, other_lat):
    """The great circle by the haversine, as the broker means it."""
    half_lat, half_lon = math.radians(other_lat - lat) / 2, math.radians(other_lon - lon) / 2
    cosines = math.cos(math.radians(lat)) * math.cos(math.radians(other_lat))
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(math.sin(half_lat) ** 2 + cosines * math.sin(half_lon) ** 2))


class Replay:
    """Publishes each report when it is due, and again until it is acknowledged."""

    def __init__(self, reports, speed, active_urls):
        self.reports, self.speed = reports, speed
        # Replaced as a whole by the program that watches the cluster.
        self.active_urls = active_urls
        self.stopped = threading.Event()
        self.sent_s = [None] * len(reports)
        self.acknowledged_s = [None] * len(reports)
        self.acknowledged_by = [None] * len(reports)
        # How often a publish of a report was answered 503, or broke when it may have arrived.
        self.in_doubt = [0] * len(reports)
        self.answers = Counter()
        self.fault = None
        self._turn = itertools.count()
        self._next = 0
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._publish, daemon=True) for _ in range(PUBLISHERS)]

    def start(self):
        self.begun_s = time.monotonic()
        for thread in self._threads:
            thread.start()

    def is_over(self):
        return not any(thread.is_alive() for thread in self._threads)

    def acknowledged_count(self):
        return len(self.reports) - self.acknowledged_s.count(None)

    def _take(self):
        """The numbers of the next reports that are due; waits for the first."""
        with self._lock:
            first = self._next
            if first == len(self.reports):
                return []
            pause_s = self.begun_s + self.reports[first].at_s / self.speed - time.monotonic()
            if self.stopped.wait(max(pause_s, 0)):
                return []
            due_s = (time.monotonic() - self.begun_s) * self.speed
            while self._next < min(first + BATCH, len(self.reports)) and self.reports[self._next].at_s <= due_s:
                self._next += 1
            self._next = max(self._next, first + 1)
            return range(first, self._next)

    def _publish(self):
        connections = {}
        try:
            while batch := self._take():
                while batch and not self.stopped.is_set():
                    batch = self._attempt(connections, batch)
        except Exception as error:
            self.fault = error
            raise

    def _attempt(self, connections, batch):
        """Publishes to the next active broker. Returns the numbers that have to be sent again."""
        urls = self.active_urls
        if not urls:
            self.stopped.wait(0.1)
            return batch
        url = urls[next(self._turn) % len(urls)]
        connection = connections.setdefault(url, connect(url, ANSWER_S))
        try:
            if connection.sock is None:
                connection.connect()
        except OSError:
            # Nothing was sent, so that nothing is in doubt.
            self.answers["no connection"] += 1
            connection.close()
            self.stopped.wait(0.05)
            return batch
        body = (
            '{"type": "FeatureCollection", "features": [' + ",".join(self.reports[at].document for at in batch) + "]}"
        )
        now = time.monotonic()
        for at in batch:
            self.sent_s[at] = self.sent_s[at] or now
        try:
            connection.request("POST", "/v1/events", body, {"Content-Type": "application/geo+json"})
            answer = connection.getresponse()
            status, document = answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.answers["time-out" if isinstance(error, TimeoutError) else "broken connection"] += 1
            connection.close()
            return self._doubt(batch)
        if status == 503:
            self.answers[str(status)] += 1
            self.stopped.wait(0.1)
            return self._doubt(batch)
        if status != 202:
            raise RuntimeError(f"{url} answered {status}: {document}")
        return self._settle(url, batch, document)

    def _settle(self, url, batch, document):
        refused = {batch[each["index"]]: each["problem"] for each in document["rejected"]}
        now = time.monotonic()
        for at in batch:
            if at not in refused:
                self.acknowledged_s[at], self.acknowledged_by[at] = now, url
        for problem in refused.values():
            self.answers[str(problem["status"])] += 1
            if problem["status"] not in (429, 503):
                raise RuntimeError(f"{url} rejected an event: {problem}")
        if refused:
            self.stopped.wait(0.1)
            self._doubt([at for at, problem in refused.items() if problem["status"] == 503])
        return list(refused)

    def _doubt(self, batch):
        for at in batch:
            self.in_doubt[at] += 1
        return batch
