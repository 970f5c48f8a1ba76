#!/usr/bin/env python3
"""Cuts the first twenty minutes out of an hour of taxi reports.

    cut.py TAXI_H11_CSV_GZ [OUTPUT]

Rows are copied as they stand, faults included; nothing is sorted, rounded or repaired. The output is the same
byte for byte on every run, because the gzip header carries neither a name nor a time.
"""

import csv
import gzip
import io
import pathlib
import sys

# 2007-10-26 11:00:00 and 11:20:00 in Shenzhen (UTC+8), in Unix milliseconds.
START_MS = 1_193_367_600_000
END_MS = START_MS + 20 * 60 * 1000
COLUMNS = ["seq", "ts_ms", "taxi_id", "lon", "lat", "speed_kmh", "status"]


def cut(source: pathlib.Path, target: pathlib.Path) -> tuple[int, int]:
    """Writes the rows of the twenty minutes; returns how many rows and taxis they are."""
    taxis = set()
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = 0
    with gzip.open(source, "rt", encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        if reader.fieldnames != COLUMNS:
            sys.exit(f"{source} has the columns {reader.fieldnames}, expected {COLUMNS}")
        for row in reader:
            if START_MS <= int(row["ts_ms"]) < END_MS:
                writer.writerow(row[column] for column in COLUMNS)
                taxis.add(row["taxi_id"])
                rows += 1
    target.write_bytes(gzip.compress(text.getvalue().encode("utf-8"), compresslevel=9, mtime=0))
    return rows, len(taxis)


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    target = pathlib.Path(__file__).with_name("taxi_20min.csv.gz")
    if len(sys.argv) == 3:
        target = pathlib.Path(sys.argv[2])
    rows, taxis = cut(pathlib.Path(sys.argv[1]), target)
    print(f"{target}: {rows} rows of {taxis} taxis")


if __name__ == "__main__":
    main()
