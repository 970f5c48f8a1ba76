#!/usr/bin/env python3
# /// script
# requires-python = ">=3.11"
# dependencies = ["numba==0.68.1", "numpy==2.4.6", "scipy==1.17.1"]
# ///
"""Infers the streets of Shenzhen from an hour of taxi reports.

    streets.py TAXI_H11_CSV_GZ CITIES1000_CSV_GZ [OUTPUT]

A taxi reports every thirty seconds, so a straight line between two reports cuts corners. The streets are found in five steps:

1. Reports and short straight lines between them are added up on a grid, smeared out along the direction of travel.
2. Each drive is routed over the grid from report to report, and a cell costs the less the more was added up there. Drives gather on the same
   cells that way, which are added up in turn, twice.
3. What remains is thinned to lines one cell wide, and the cells with the fewest taxis go first, so that lines follow the busiest cells.
4. The lines become a graph, from which spurs, islands, detours and lines with too few reports are weeded out.
5. Edges that go straight on at a junction are joined to streets. Each street is moved to the middle of the reports along it, smoothed,
   extended until it meets others, and put into one of four classes.

The output is GeoJSON: a MultiLineString for each class of streets, and a point for each quarter that GeoNames knows and taxis drive in.
"""

import csv
import gzip
import heapq
import json
import pathlib
import sys
from collections import defaultdict
from itertools import pairwise

import numpy as np
from numba import njit
from scipy import ndimage
from scipy.signal import fftconvolve
from scipy.spatial import cKDTree

# The part of the world that is looked at, in degrees: [west, south, east, north].
WEST, SOUTH, EAST, NORTH = 113.74, 22.46, 114.36, 22.82
METRES = np.array([111_320 * np.cos(np.radians(22.58)), 110_800])
# Metres across a cell of the grid, and cells around the part that is looked at.
CELL = 12.0
PAD = 30

# Two reports follow each other within that many seconds, metres and kilometres per hour.
PAUSE_MAX_S = 65
STEP_MAX_M = 1_800
SPEED_MAX_KMH = 110

# Directions in which travel is counted, and how far a report is smeared along and across its own, in metres.
DIRECTIONS = 16
ALONG_M, ACROSS_M = 90, 11
# Rounds of routing.
ROUNDS = 3

# Taxis on the cells of a street at least, and how narrow a hole between lines is no block of houses, in cells.
TAXIS_MIN = 0.55
HOLE_MAX = 2.6
# Fewer taxis than that have to be seen often along a street.
TAXIS_SURE = 1.6
# Metres between vertices while streets are shaped, and metres by which simpler lines may differ.
STEP_M = 15.0
TOLERANCE_M = 2.5
# Parts of all streets, by length, in the classes above the lowest.
CLASSES = [0.62, 0.30, 0.11]

RING = [(-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1)]
EIGHT = np.ones((3, 3))


def read(path: pathlib.Path):
    """Times, taxis, places in metres and speeds, by taxi and time."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = [(int(r["ts_ms"]) / 1000, int(r["taxi_id"]), float(r["lon"]), float(r["lat"]), int(r["speed_kmh"])) for r in csv.DictReader(lines)]
    time, taxi, lon, lat, speed = np.array(rows).T
    inside = (WEST < lon) & (lon < EAST) & (SOUTH < lat) & (lat < NORTH)
    places = (np.c_[lon, lat] - [WEST, SOUTH]) * METRES
    order = np.lexsort((time, taxi))
    order = order[inside[order]]
    return time[order], taxi[order].astype(int), places[order], speed[order]


def smeared(places, speed, legs, length, angle, shape):
    """What is added up on the grid, in the direction in which it is most."""
    votes = []
    for j in legs:
        weight = np.exp(-((length[j] / 350) ** 2))
        for end in (j, j + 1):
            votes.append((*places[end], angle[j], weight * (1 if speed[end] > 0 else 0.5)))
        if length[j] < 400:
            parts = max(1, int(length[j] / CELL))
            weight = 0.6 * np.exp(-((length[j] / 200) ** 2)) / parts
            for part in (np.arange(parts) + 0.5) / parts:
                votes.append((*(places[j] + (places[j + 1] - places[j]) * part), angle[j], weight))
    x, y, angle, weight = np.array(votes).T
    cells = (cell(y), cell(x))
    direction = angle % np.pi / np.pi * DIRECTIONS
    reach = int(2.5 * ALONG_M / CELL)
    north, east = np.mgrid[-reach : reach + 1, -reach : reach + 1] * CELL
    most = np.zeros(shape, np.float32)
    for n in range(DIRECTIONS):
        apart = np.abs((direction - n + DIRECTIONS / 2) % DIRECTIONS - DIRECTIONS / 2)
        grid = np.zeros(shape, np.float32)
        np.add.at(grid, cells, weight * np.exp(-((apart / 0.9) ** 2)))
        cos, sin = np.cos(n * np.pi / DIRECTIONS), np.sin(n * np.pi / DIRECTIONS)
        along, across = east * cos + north * sin, north * cos - east * sin
        kernel = np.exp(-((along / ALONG_M) ** 2) / 2 - (across / ACROSS_M) ** 2 / 2)
        np.maximum(most, fftconvolve(grid, kernel.astype(np.float32), mode="same"), out=most)
    return most


def cell(metres):
    return (np.asarray(metres) / CELL).astype(int) + PAD


@njit
def route(cost, start, end, low, high):
    """The cheapest way over the grid, as cells from its end to its start."""
    width, height = high[0] - low[0] + 1, high[1] - low[1] + 1
    best = np.full(width * height, np.inf)
    before = np.full(width * height, -1)
    first = (start[1] - low[1]) * width + start[0] - low[0]
    last = (end[1] - low[1]) * width + end[0] - low[0]
    best[first] = 0
    queue = [(0.0, first)]
    while len(queue) > 0:
        so_far, at = heapq.heappop(queue)
        if at == last:
            break
        if so_far > best[at]:
            continue
        x, y = at % width, at // width
        here = cost[y + low[1], x + low[0]]
        for dy in range(-1, 2):
            for dx in range(-1, 2):
                u, v = x + dx, y + dy
                if (dx == 0 and dy == 0) or u < 0 or v < 0 or u >= width or v >= height:
                    continue
                step = 1.41421356 if dx != 0 and dy != 0 else 1.0
                total = so_far + step * 0.5 * (here + cost[v + low[1], u + low[0]])
                to = v * width + u
                if total < best[to]:
                    best[to] = total
                    before[to] = at
                    heapq.heappush(queue, (total, to))
    way = [(last % width + low[0], last // width + low[1])]
    while last != first:
        last = before[last]
        way.append((last % width + low[0], last // width + low[1]))
    return way


def routed(ridges, time, taxi, places, legs, length):
    """How many taxis drove over each cell, when each takes the cheapest way from report to report."""
    cost = 1 / (0.03 + np.minimum(ridges / 6, 1) ** 0.7).astype(np.float64)
    # A report stands for the strongest cell nearby.
    own = cell(places)
    near, best = own.copy(), np.zeros(len(own))
    for dy in range(-3, 4):
        for dx in range(-3, 4):
            value = ridges[own[:, 1] + dy, own[:, 0] + dx] * np.exp(-(dx * dx + dy * dy) / 8)
            better = (value > best) & (dx * dx + dy * dy <= 10)
            best[better] = value[better]
            near[better] = own[better] + [dx, dy]
    steps = np.zeros(ridges.shape, np.float32)
    taxis = np.zeros(ridges.shape, np.float32)
    seen = np.full(ridges.shape, -1)
    for j in legs:
        start, end = near[j], near[j + 1]
        if (start == end).all():
            continue
        margin = int(max(15, 0.35 * length[j] / CELL))
        low = np.maximum(np.minimum(start, end) - margin, 0)
        high = np.minimum(np.maximum(start, end) + margin, np.array(ridges.shape)[::-1] - 1)
        way = np.array(route(cost, start, end, low, high))
        way_m = along(way)[-1] * CELL
        if way_m > 1.6 * length[j] + 80 or way_m > (time[j + 1] - time[j]) * 120 / 3.6 + 60:
            continue
        x, y = way.T
        steps[y, x] += 1
        new = seen[y, x] != taxi[j]
        taxis[y[new], x[new]] += 1
        seen[y, x] = taxi[j]
    return steps, taxis


def along(line):
    """Distances from the start of a line to its vertices."""
    return np.concatenate([[0], np.cumsum(np.hypot(*np.diff(line, axis=0).T))])


def removable():
    """For each pattern of eight neighbours, whether the cell between them can go without a change of what is connected."""
    answers = np.zeros(256, bool)
    for pattern in range(256):
        around = np.zeros((3, 3), int)
        for n, (y, x) in enumerate(RING):
            around[y + 1, x + 1] = pattern >> n & 1
        outside = 1 - around
        outside[1, 1] = 0
        labels, _ = ndimage.label(outside)
        sides = {labels[0, 1], labels[1, 0], labels[1, 2], labels[2, 1]} - {0}
        answers[pattern] = ndimage.label(around, EIGHT)[1] == 1 and len(sides) == 1 and around.sum() > 1
    return answers


@njit
def thinned(cells, height, removable, ring):
    """Cells without those that can go, lowest first."""
    queue = [(0.0, 0, 0) for _ in range(0)]
    for y in range(1, cells.shape[0] - 1):
        for x in range(1, cells.shape[1] - 1):
            if cells[y, x]:
                heapq.heappush(queue, (height[y, x], y, x))
    changed = True
    while changed:
        changed = False
        rest = [(0.0, 0, 0) for _ in range(0)]
        while len(queue) > 0:
            value, y, x = heapq.heappop(queue)
            if not cells[y, x]:
                continue
            pattern = 0
            for n in range(8):
                if cells[y + ring[n, 0], x + ring[n, 1]]:
                    pattern |= 1 << n
            if not removable[pattern]:
                rest.append((value, y, x))
                continue
            cells[y, x] = False
            changed = True
            for n in range(8):
                v, u = y + ring[n, 0], x + ring[n, 1]
                if cells[v, u] and height[v, u] < value:
                    heapq.heappush(queue, (height[v, u], v, u))
        queue = rest
        heapq.heapify(queue)
    return cells


def traced(cells):
    """Lines in metres between the cells of which there are not just two neighbours."""
    here = set(map(tuple, np.argwhere(cells)))

    def neighbours(y, x):
        # A corner is no neighbour where a side leads there, too.
        return [(y + dy, x + dx) for dy, dx in RING if (y + dy, x + dx) in here and not (dy and dx and ((y + dy, x) in here or (y, x + dx) in here))]

    next_to = {at: neighbours(*at) for at in here}
    nodes = {at for at in here if len(next_to[at]) != 2}
    lines, done = [], set()
    for node in sorted(nodes):
        for to in next_to[node]:
            if (node, to) in done:
                continue
            line = [node, to]
            while line[-1] not in nodes:
                line.append(next(at for at in next_to[line[-1]] if at != line[-2]))
            done |= {(node, to), (line[-1], line[-2])}
            lines.append((np.array(line, float)[:, ::-1] - PAD + 0.5) * CELL)
    return lines


def length_m(line):
    return along(line)[-1]


def node(place):
    return round(float(place[0]), 1), round(float(place[1]), 1)


def ends(line):
    return node(line[0]), node(line[-1])


def degrees(edges):
    count = defaultdict(int)
    for edge in edges:
        for end in ends(edge):
            count[end] += 1
    return count


def groups(edges, joins):
    """For each node, one that stands for all that are connected by edges for which `joins` holds."""
    parent = {}

    def find(at):
        while parent.setdefault(at, at) != at:
            at = parent[at]
        return at

    for edge in edges:
        start, end = map(find, ends(edge))
        if joins(edge):
            parent[start] = end
    return {at: find(at) for at in list(parent)}


def contracted(edges, short_m):
    """Edges without the short ones, whose ends become one."""
    group = groups(edges, lambda edge: length_m(edge) < short_m)
    members = defaultdict(list)
    for at, into in group.items():
        members[into].append(at)
    kept = []
    for edge in edges:
        start, end = (group[at] for at in ends(edge))
        if start != end or length_m(edge) > 800:
            kept.append(np.vstack([np.mean(members[start], axis=0), edge[1:-1], np.mean(members[end], axis=0)]))
    return kept


def merged(edges):
    """Edges joined where just two meet."""
    while True:
        meeting = defaultdict(list)
        for n, edge in enumerate(edges):
            for end in ends(edge):
                meeting[end].append(n)
        gone, new = set(), []
        for at, those in meeting.items():
            if len(those) == 2 and those[0] != those[1] and not set(those) & gone:
                one, other = (edges[n] for n in those)
                one = one if node(one[-1]) == at else one[::-1]
                other = other if node(other[0]) == at else other[::-1]
                new.append(np.vstack([one, other[1:]]))
                gone |= set(those)
        if not gone:
            return edges
        edges = [edge for n, edge in enumerate(edges) if n not in gone] + new


def pruned(edges, spur_m):
    """Edges without short ones that end in the open."""
    count = degrees(edges)
    return merged([edge for edge in edges if length_m(edge) >= spur_m or (count[node(edge[0])] == 1) == (count[node(edge[-1])] == 1)])


def single(edges):
    """Of edges that run side by side between the same nodes, the shortest."""
    between = defaultdict(list)
    for edge in sorted(edges, key=length_m):
        others = between[tuple(sorted(ends(edge)))]
        if all(cKDTree(other).query(edge)[0].max() > 75 for other in others):
            others.append(edge)
    return merged([edge for those in between.values() for edge in those])


def even(line):
    """A line with vertices at even distances."""
    at = along(line)
    wanted = np.linspace(0, at[-1], max(2, round(at[-1] / STEP_M) + 1))
    return np.c_[np.interp(wanted, at, line[:, 0]), np.interp(wanted, at, line[:, 1])]


def read_off(grid, line):
    return ndimage.map_coordinates(grid, (line[:, ::-1] / CELL + PAD - 0.5).T, order=1)


def weeded(edges, taxis, moving):
    """Edges without those for which too little speaks."""

    def is_sound(edge, count):
        line = even(edge)
        busy = np.percentile(read_off(taxis, line), 40) >= TAXIS_SURE
        reported = np.nonzero(moving.query_ball_point(line, 32, return_length=True))[0]
        gap_m = np.diff([0, *reported, len(line) - 1]).max() * STEP_M
        if any(count[end] == 1 for end in ends(edge)):
            return busy and gap_m <= 400
        if busy:
            return gap_m <= 900
        # With one taxi, a detour or a short line is a yard or a junction.
        direct_m = np.hypot(*(edge[0] - edge[-1]))
        return gap_m <= 200 and 120 < length_m(edge) < 1.6 * direct_m

    while True:
        count = degrees(edges)
        kept = merged([edge for edge in edges if is_sound(edge, count)])
        if len(kept) == len(edges):
            return kept
        edges = kept


def without_islands(edges, least_m):
    group = groups(edges, lambda _: True)
    total = defaultdict(float)
    for edge in edges:
        total[group[node(edge[0])]] += length_m(edge)
    return [edge for edge in edges if total[group[node(edge[0])]] >= least_m]


def at_corners(edge):
    """The parts of an edge between its corners."""
    line, reach = even(edge), 5
    if len(line) < 4 * reach:
        return [edge]
    smooth = ndimage.gaussian_filter1d(line, 1.5, axis=0, mode="nearest")
    ahead, behind = smooth[2 * reach :] - smooth[reach:-reach], smooth[reach:-reach] - smooth[: -2 * reach]
    turn = np.abs(np.arctan2(behind[:, 0] * ahead[:, 1] - behind[:, 1] * ahead[:, 0], (behind * ahead).sum(axis=1)))
    cuts = []
    while turn.max() > np.radians(50):
        corner = int(turn.argmax())
        cuts.append(corner + reach)
        turn[max(0, corner - 2 * reach) : corner + 2 * reach + 1] = 0
    cuts = [0, *sorted(cuts), len(line) - 1]
    return [line[a : b + 1] for a, b in pairwise(cuts)]


def joined(edges, taxis):
    """Streets: edges that go straight on at junctions, each with the nodes that it comes through."""
    traffic = [np.median(read_off(taxis, edge)) for edge in edges]
    meeting = defaultdict(list)
    for n, edge in enumerate(edges):
        for side, line in enumerate((edge, edge[::-1])):
            # Close to the junction a line is bent by what was contracted there.
            near, far = (min(np.searchsorted(along(line), metres), len(line) - 1) for metres in (35, 165))
            far = line[far] - line[near if far > near else 0]
            meeting[node(line[0])].append((n, side, far / np.hypot(*far)))
    on = {}
    for those in meeting.values():
        pairs = []
        for a, (n, _, ahead) in enumerate(those):
            for b, (m, _, other) in enumerate(those[:a]):
                straight = -ahead @ other
                if n != m and straight > np.cos(np.radians(40)):
                    pairs.append((straight - 0.12 * abs(np.log((traffic[n] + 1) / (traffic[m] + 1))), a, b))
        used = set()
        for _, a, b in sorted(pairs, reverse=True):
            if not used & {a, b}:
                used |= {a, b}
                on[those[a][:2]], on[those[b][:2]] = those[b][:2], those[a][:2]
    done, streets = set(), []
    free = [(n, side) for n in range(len(edges)) for side in (0, 1) if (n, side) not in on]
    for n, side in free + [(n, 0) for n in range(len(edges))]:
        line, nodes = [], []
        while n not in done:
            done.add(n)
            edge = edges[n] if side == 0 else edges[n][::-1]
            nodes += [] if nodes else [node(edge[0])]
            nodes.append(node(edge[-1]))
            line += list(edge[1:] if line else edge)
            n, side = on.get((n, 1 - side), (n, side))
        if line:
            streets.append((even(np.array(line)), nodes))
    return streets


def smooth(line, sigma=2.0):
    """A line whose ends stay where they are."""
    count = min(len(line) - 1, int(4 * sigma) + 1)
    before, after = 2 * line[0] - line[1 : count + 1][::-1], 2 * line[-1] - line[-count - 1 : -1][::-1]
    return ndimage.gaussian_filter1d(np.vstack([before, line, after]), sigma, axis=0)[count : count + len(line)]


def centred(line, moving):
    """A line moved to the middle of the reports along it."""
    ahead = np.gradient(smooth(line, 3), axis=0)
    ahead /= np.hypot(*ahead.T)[:, None] + 1e-9
    aside = np.c_[-ahead[:, 1], ahead[:, 0]]
    weight, offset = np.zeros(len(line)), np.zeros(len(line))
    for n, near in enumerate(moving.query_ball_point(line, 45)):
        away = moving.data[near] - line[n]
        far, off = away @ ahead[n], away @ aside[n]
        weights = np.exp(-((far / 25) ** 2) / 2 - (off / 16) ** 2 / 2)
        weight[n], offset[n] = weights.sum(), (weights * off).sum()
    weight, offset = (ndimage.gaussian_filter1d(values, 4, mode="constant") for values in (weight, offset))
    move = ndimage.gaussian_filter1d(offset / (weight + 0.4), 2, mode="nearest")
    return line + aside * move[:, None]


def straightened(line):
    """A line without slight bends, which are errors of positions."""
    straight = smooth(line, 10.0)
    part = 1 / (1 + (np.hypot(*(straight - line).T) / 16) ** 4)
    part = ndimage.gaussian_filter1d(ndimage.minimum_filter1d(part, 9), 4, mode="nearest")
    return line + (straight - line) * part[:, None]


def hit(start, ahead, line, far_m):
    """Where a ray meets a line first."""
    begin, step = line[:-1], np.diff(line, axis=0)
    cross = ahead[0] * step[:, 1] - ahead[1] * step[:, 0]
    cross = np.where(abs(cross) < 1e-9, 1e-9, cross)
    away = begin - start
    on_ray = (away[:, 0] * step[:, 1] - away[:, 1] * step[:, 0]) / cross
    on_line = (away[:, 0] * ahead[1] - away[:, 1] * ahead[0]) / cross
    met = (on_line >= 0) & (on_line <= 1) & (on_ray > 0) & (on_ray < far_m)
    return start + ahead * on_ray[met].min() if met.any() else None


def met(streets, taxis):
    """Streets whose ends meet others, each with the places where others meet it."""
    through, ending = defaultdict(list), defaultdict(list)
    for n, (_, nodes) in enumerate(streets):
        for at in nodes[1:-1]:
            through[at].append(n)
        ending[nodes[0]].append((n, 0))
        ending[nodes[-1]].append((n, 1))
    lines = [line for line, _ in streets]
    traffic = [np.median(read_off(taxis, line)) for line in lines]

    def arm(n, side, trim):
        """A street up to shortly before one of its ends, and where it heads there."""
        line = lines[n] if side else lines[n][::-1]
        line = line[: len(line) - trim] if len(line) > 3 * trim else line
        ahead = line[-1] - line[max(0, len(line) - 8)]
        return line, ahead / (np.hypot(*ahead) + 1e-9)

    new, meets = {}, defaultdict(list)
    for at, those in ending.items():
        if through[at]:
            main = max(through[at], key=lambda n: traffic[n])
            for n, side in those:
                line, ahead = arm(n, side, 3)
                place = hit(line[-1], ahead, lines[main], 130)
                if place is None or np.hypot(*(place - at)) > 90:
                    place = lines[main][np.hypot(*(lines[main] - line[-1]).T).argmin()]
                new[n, side] = line, place
                meets[main].append(place)
        elif len(those) > 1:
            arms, place = [arm(n, side, 3) for n, side in those], None
            if len(those) == 2:
                (line, ahead), (other, back) = arms
                ray = np.array([other[-1] - back * 500, other[-1] + back * 500])
                place = hit(line[-1], ahead, ray, 500)
            if place is None or np.hypot(*(place - at)) > 100:
                place = np.mean([lines[n][-side] for n, side in those], axis=0)
            for one, (line, _) in zip(those, arms):
                new[one] = line, place
        else:
            line, ahead = arm(*those[0], 0)
            near = [m for m, other in enumerate(lines) if m != those[0][0] and np.hypot(*(other - line[-1]).T).min() < 160]
            places = [(place, m) for m in near if (place := hit(line[-1], ahead, lines[m], 150)) is not None]
            if places:
                place, m = min(places, key=lambda found: np.hypot(*(found[0] - line[-1])))
                new[those[0]] = line, place
                meets[m].append(place)
    out = []
    for n, line in enumerate(lines):
        first, last = new.get((n, 0)), new.get((n, 1))
        middle = line[len(line) - len(first[0]) if first else 0 : len(last[0]) if last else len(line)]
        middle = middle if len(middle) > 1 else line[[0, -1]]
        out.append((np.vstack([*([first[1]] if first else []), middle, *([last[1]] if last else [])]), meets[n]))
    return out


def simple(line, places):
    """A line with fewer vertices, but with one at each of some places."""
    kept = {0, len(line) - 1}
    for place in places:
        begin, step = line[:-1], np.diff(line, axis=0)
        part = np.clip(((place - begin) * step).sum(axis=1) / ((step**2).sum(axis=1) + 1e-9), 0, 1)
        at = int(np.hypot(*(begin + step * part[:, None] - place).T).argmin()) + 1
        kept = {n + (n >= at) for n in kept} | {at}
        line = np.insert(line, at, place, axis=0)
    open_parts = list(pairwise(sorted(kept)))
    while open_parts:
        a, b = open_parts.pop()
        if b - a < 2:
            continue
        chord = line[b] - line[a]
        away = line[a + 1 : b] - line[a]
        far = np.abs(away[:, 0] * chord[1] - away[:, 1] * chord[0]) / (np.hypot(*chord) + 1e-9)
        far = far if chord.any() else np.hypot(*away.T)
        if far.max() > TOLERANCE_M:
            middle = a + 1 + int(far.argmax())
            kept.add(middle)
            open_parts += [(a, middle), (middle, b)]
    line = line[sorted(kept)]
    return line[np.concatenate([[True], np.hypot(*np.diff(line, axis=0).T) > 1.5])]


def classes(lines, taxis, moving, speed):
    """Classes from 1 to 4: much traffic, a long way and fast traffic speak for a wide street."""
    lengths = np.array([length_m(line) for line in lines])
    scores = []
    for line, way_m in zip(lines, lengths):
        near = [n for those in moving.query_ball_point(even(line), 30) for n in those]
        fast = np.percentile(speed[near], 75) if near else 20
        busy = np.percentile(read_off(taxis, even(line)), 60)
        scores.append(busy**0.5 * min(way_m, 5_000) ** 0.4 * max(fast, 20))
    order = np.argsort(scores)[::-1]
    part = np.empty(len(lines))
    part[order] = np.cumsum(lengths[order]) / lengths.sum()
    return 1 + sum((part <= bound).astype(int) for bound in CLASSES)


def quarters(path: pathlib.Path, places):
    """Names of places with reports around them, and not that of the city."""
    reports = cKDTree(places)
    found = []
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            place = [float(row["lon"]), float(row["lat"])]
            if row["cc"] != "CN" or row["name"] == "Shenzhen":
                continue
            at = (np.array(place) - [WEST, SOUTH]) * METRES
            count = reports.query_ball_point(at, 1_500, return_length=True)
            if count >= 25:
                found.append((count, row["name"].replace("'", "’"), place, at))
    kept = []
    for one in sorted(found, key=lambda one: -one[0]):
        if all(np.hypot(*(one[3] - other[3])) > 1_200 for other in kept):
            kept.append(one)
    return sorted((name, place) for _, name, place, _ in kept)


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[3]) if len(sys.argv) == 4 else pathlib.Path(__file__).with_name("streets.json")
    time, taxi, places, speed = read(pathlib.Path(sys.argv[1]))
    steps = np.diff(places, axis=0)
    length, angle, pause = np.hypot(*steps.T), np.arctan2(steps[:, 1], steps[:, 0]), np.diff(time)
    follows = (taxi[1:] == taxi[:-1]) & (pause <= PAUSE_MAX_S) & (length > 15)
    legs = np.nonzero(follows & (length < STEP_MAX_M) & (length < pause * SPEED_MAX_KMH / 3.6))[0]
    shape = tuple(cell(places.max(axis=0))[::-1] + PAD)

    most = smeared(places, speed, legs, length, angle, shape)
    ridges = most
    for _ in range(ROUNDS):
        counts, taxis = routed(ridges, time, taxi, places, legs, length)
        ridges = 0.5 * most + ndimage.gaussian_filter(counts, 0.8)
    # The factor makes it one along a line on which one taxi drove.
    taxis = ndimage.gaussian_filter(taxis, 0.9) * 2.2

    cells = ndimage.binary_closing(taxis >= TAXIS_MIN, EIGHT)
    holes, count = ndimage.label(~cells)
    wide = ndimage.maximum(ndimage.distance_transform_edt(~cells), holes, range(1, count + 1))
    cells |= np.concatenate([[False], wide <= HOLE_MAX])[holes]
    height = ndimage.gaussian_filter(taxis, 0.7).astype(np.float64)
    edges = traced(thinned(cells, height, removable(), np.array(RING)))

    driving = speed > 0
    moving = cKDTree(places[driving])
    edges = merged(contracted(edges, 40))
    for spur_m in (60, 100):
        edges = pruned(edges, spur_m)
    edges = weeded(edges, taxis, moving)
    for spur_m in (120, 180, 220):
        edges = pruned(edges, spur_m)
    edges = merged(contracted(single(edges), 60))
    edges = without_islands(weeded(pruned(edges, 220), taxis, moving), 1_200)

    edges = [part for edge in edges for part in at_corners(edge)]
    count = degrees(edges)
    edges = [edge for edge in edges if length_m(edge) > 180 or all(count[end] > 1 for end in ends(edge))]
    streets = joined(edges, taxis)
    for _ in range(3):
        streets = [(smooth(centred(smooth(line), moving)), nodes) for line, nodes in streets]
    streets = [(straightened(line), nodes) for line, nodes in streets]
    lines = [simple(line, at) for line, at in met(streets, taxis)]
    of_class = classes(lines, taxis, moving, speed[driving])

    features = []
    for traffic in (1, 2, 3, 4):
        drawn = [(line / METRES + [WEST, SOUTH]).round(5).tolist() for line, own in zip(lines, of_class) if own == traffic]
        geometry = {"type": "MultiLineString", "coordinates": drawn}
        features.append({"type": "Feature", "properties": {"traffic": traffic}, "geometry": geometry})
    for name, place in quarters(pathlib.Path(sys.argv[2]), places):
        features.append({"type": "Feature", "properties": {"name": name}, "geometry": {"type": "Point", "coordinates": place}})
    attribution = f"Streets inferred from drives of {len(set(taxi))} taxis, 2007 | Quarters: GeoNames"
    # A feature a line.
    text = ",\n".join(json.dumps(feature, ensure_ascii=False, separators=(",", ":")) for feature in features)
    head = json.dumps({"type": "FeatureCollection", "attribution": attribution}, separators=(",", ":"))[:-1]
    target.write_text(f'{head},"features":[\n{text}\n]}}\n', encoding="utf-8")
    kilometres = sum(map(length_m, lines)) / 1000
    print(f"{target}: {len(lines)} streets, {kilometres:.0f} km, {sum(map(len, lines))} vertices, {len(features) - 4} quarters")


if __name__ == "__main__":
    main()
