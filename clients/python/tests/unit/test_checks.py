"""What checks add to frames and problems."""

from __future__ import annotations

import json

from nearcast import Event
from nearcast.messages import ProblemFrame, read_frame
from nearcast.problems import read_answer

EVENT = {"type": "Feature", "id": "e3", "geometry": {"type": "Point", "coordinates": [9, 45]}, "properties": {}}
INCONSISTENT = {
    "type": "urn:nearcast:problem:inconsistent",
    "title": "the event does not fit",
    "status": 422,
    "check": "jump",
    "links": [{"a": "e1", "b": "e3"}],
}


def test_an_event_says_what_it_violates() -> None:
    frame = {"op": "event", "offset": 1, "subscriptions": ["s"], "cause": "published", "event": EVENT}
    marked = read_frame(json.dumps({**frame, "violates": ["jump"]}))
    plain = read_frame(json.dumps(frame))
    assert isinstance(marked, Event)
    assert isinstance(plain, Event)
    assert (marked.violates, plain.violates) == (("jump",), ())


def test_a_refused_event_says_with_which_it_does_not_fit() -> None:
    headers = {"content-type": "application/problem+json"}
    problem = read_answer(422, headers, json.dumps(INCONSISTENT).encode())
    assert (problem.code, problem.check, problem.links) == ("inconsistent", "jump", ({"a": "e1", "b": "e3"},))
    frame = read_frame(json.dumps({"op": "problem", "ref": 1, "problem": INCONSISTENT}))
    assert isinstance(frame, ProblemFrame)
    assert frame.problem.links == problem.links
    assert read_answer(422, headers, json.dumps({**INCONSISTENT, "links": "odd"}).encode()).links == ()
