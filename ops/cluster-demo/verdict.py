"""Compares what came with what was due."""

import itertools
from collections import Counter

SHOWN_MAX = 20


def missing(replay, listener):
    """The numbers of acknowledged reports that are due at a listener and have not come."""
    due = {number for number in listener.due if replay.acknowledged_s[number] is not None}
    return due - {number for number, _ in listener.came.copy()}


def report(replay, listeners, broker_kill, nats_killed_s):
    """Prints the figures; says whether all is right."""
    partition, broker_killed_s, served_again_s = broker_kill
    acknowledged_s = sorted(at for at in replay.acknowledged_s if at is not None)
    required = sum(replay.acknowledged_s[number] is not None for each in listeners for number in each.due)
    missed = [(each, number) for each in listeners for number in sorted(missing(replay, each))]
    faults = [(each, fault) for each in listeners for fault in each.faults]
    spurious, again_count, delays, quiet = [], 0, [], []
    for listener in listeners:
        for number, count in Counter(number for number, _ in listener.came).items():
            may_come = 1 + replay.in_doubt[number]
            if number not in listener.due | listener.edge:
                spurious.append((listener, number, "is not in the circle, or not as the condition says"))
            elif count > may_come:
                spurious.append((listener, number, f"came {count} times and was sent {may_come} times"))
            else:
                again_count += count - 1
        # Of an event that came twice the first one counts, which is the last one here.
        for number, at in dict(reversed(listener.came)).items():
            delays.append(at - replay.sent_s[number])
            if replay.sent_s[number] < broker_killed_s - 1:
                quiet.append(delays[-1])
    whole_count = len(listeners) - len({each for each, _ in faults})
    breaks_count = sum(each.breaks for each in listeners)
    answers = ", ".join(f"{what}: {count}" for what, count in sorted(replay.answers.items())) or "none"
    served = "has not answered again"
    if served_again_s is not None:
        served = f"answered again {served_again_s:.1f} s after its active broker was killed"
    broker_pause_s = longest_pause_s(acknowledged_s, broker_killed_s, nats_killed_s)
    nats_pause_s = longest_pause_s(acknowledged_s, nats_killed_s, float("inf"))
    rows = [
        ("acknowledged", f"{len(acknowledged_s):,} of {len(replay.reports):,} events"),
        ("required deliveries", f"{required:,} to {len(listeners)} listeners"),
        ("missing", f"{len(missed):,}"),
        ("spurious", f"{len(spurious):,}"),
        ("came twice", f"{again_count:,}; their publish was answered 503 or broke, and they were sent again"),
        ("offsets", f"without holes at {whole_count} of {len(listeners)} listeners"),
        ("event streams", f"{breaks_count} broke, and were resumed by Last-Event-ID"),
        ("failed publishes", f"{answers}; all were sent again"),
        ("left out", f"{sum(len(each.edge) for each in listeners)} reports within 1 m of a circle's edge"),
        (f"partition {partition}", served),
        ("longest pause", f"{broker_pause_s:.1f} s without an acknowledged event after the broker was killed"),
        ("", f"{nats_pause_s:.1f} s after the NATS server was killed"),
        ("publish to delivery", f"p50 {quantile_ms(delays, 0.5)}, p99 {quantile_ms(delays, 0.99)}"),
        ("before the kills", f"p50 {quantile_ms(quiet, 0.5)}, p99 {quantile_ms(quiet, 0.99)}"),
    ]
    say("")
    for name, value in rows:
        say(f"{name:20} {value}")
    for listener, number in missed[:SHOWN_MAX]:
        say(f"missing: {told_of(replay, listener, number)}")
    for listener, number, why in spurious[:SHOWN_MAX]:
        say(f"spurious: {told_of(replay, listener, number)}: {why}")
    for listener, fault in faults[:SHOWN_MAX]:
        say(f"offsets of {listener.name}: {fault}")
    is_right = not (missed or spurious or faults) and len(acknowledged_s) == len(replay.reports)
    say("All that is due came, and nothing else." if is_right else "This is not as it should be.")
    return is_right


def told_of(replay, listener, number):
    """Where and when an event went, for the search of a fault."""

    def second(at):
        return "never" if at is None else f"at {at - replay.begun_s:.2f} s"

    return (
        f"event {number} at {listener.name} of partition {listener.partition}, sent {second(replay.sent_s[number])}, "
        f"acknowledged {second(replay.acknowledged_s[number])} by {replay.acknowledged_by[number]}, "
        f"refused or broken {replay.in_doubt[number]} times before"
    )


def longest_pause_s(times, begin_s, end_s):
    """The longest time without one of the times, from a moment to another one."""
    seen = [begin_s, *(at for at in times if begin_s < at < end_s)]
    return max((after - before for before, after in itertools.pairwise(seen)), default=0)


def quantile_ms(delays, share):
    if not delays:
        return "unknown"
    return f"{sorted(delays)[min(int(len(delays) * share), len(delays) - 1)] * 1000:,.0f} ms"


def say(line):
    print(line, flush=True)
