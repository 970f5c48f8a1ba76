"""Messages on their way to the application: bounded, and in order."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from .errors import NearcastError
from .messages import Checkpoint, Event, Gap, Message


class Inbox:
    """Holds what came until the application takes it, and knows how far the application is, and how far the broker.

    Offsets only compare within a session of the broker. Each connection that begins another one (or one that lost its end) begins a new
    *generation*; a message remembers its own, so that nothing of an old one is acknowledged in a new one.
    """

    def __init__(self, bound: int, resume: Checkpoint | None, processed: Callable[[int, int], None]) -> None:
        """Makes an empty one.

        Args:
            bound: The most messages that wait before `room` makes the reader wait.
            resume: How far the application came before.
            processed: Is told the offset up to which the application has processed what it took, and how many messages more that are.
        """
        self._bound = bound
        self._waiting: deque[Message] = deque()
        self._ended = False
        self._error: NearcastError | None = None
        self._arrival = asyncio.Event()
        self._departure = asyncio.Event()
        self._processed = processed
        # What applications without asyncio take in threads of their own.
        self._lock = threading.Lock()
        self._in_hand: Message | None = None
        self._handled: Message | None = None
        self._told = False
        self._taken = 0
        self._taken_generation = 0
        self.paused = False
        """Whether the reader waits for room."""
        self.generation = 0
        self.checkpoint = resume
        """How far the application has taken messages; `None` before the first connection."""
        self.received = resume
        """How far messages came: behind this the next connection goes on. What waits here is still delivered."""

    def begin(self, epoch: str, offset: int) -> bool:
        """Begins a connection, by what `ready` says; whether it goes on where the last one was.

        A durable session answers with the offset that was asked for, another one with how far it is now, and a gap follows for what
        was missed. Another epoch, or an offset before that, is another session: neither `checkpoint` nor `received` moves before its
        gap came, for a connection that breaks before that has to ask for the same again.
        """
        asked = self.received
        if asked is None:
            # Nothing was before: what is acknowledged before anything was taken is of this session.
            self.checkpoint = self.received = Checkpoint(epoch, offset)
            return False
        if asked.epoch == epoch and offset >= asked.offset:
            return True
        self.generation += 1
        return False

    def put(self, message: Message) -> None:
        """Takes a message in."""
        self.received = _after(self.received, message)
        self._waiting.append(message)
        self._arrival.set()

    async def room(self, *, urgent: Callable[[], bool], urgent_bound: int) -> None:
        """Waits until there is room for a message.

        An answer that somebody waits for comes behind messages that may not find room: while `urgent`, as many as `urgent_bound` may
        wait, so that who publishes from within the loop that takes messages is not waiting for himself.
        """
        while len(self._waiting) >= (urgent_bound if urgent() else self._bound):
            self.paused = True
            self._departure.clear()
            await self._departure.wait()
        self.paused = False

    def look_again(self) -> None:
        """Lets `room` ask again whether it is urgent."""
        self._departure.set()

    async def arrival(self) -> None:
        """Returns when there is something to take. That it is asked for says that all before it are processed.

        Raises:
            StopAsyncIteration: The session was closed.
            NearcastError: The session ended, and why; what came before is taken first.
        """
        self.finish()
        while True:
            # Who takes in another thread may have made room unseen.
            self._departure.set()
            if self._ended and (self._error is None or not self._waiting):
                raise self._error or StopAsyncIteration
            if self._waiting:
                return
            self._arrival.clear()
            await self._arrival.wait()

    async def take(self) -> Message:
        """The next message; raises what `arrival` does."""
        while True:
            await self.arrival()
            with self._lock:
                if self._waiting:
                    return self._pick_up()

    def take_now(self, soon: Callable[[Callable[[], None]], None]) -> Message | None:
        """The next message, if one waits, for another thread than the loop's.

        Args:
            soon: Calls a function in the loop.
        """
        with self._lock:
            if not self._waiting or (self._ended and self._error is None):
                return None
            self._put_down()
            message = self._pick_up()
            tells = (self._handled is not None or self.paused) and not self._told
            self._told |= tells
        if tells:
            soon(self._catch_up)
        return message

    def finish(self) -> None:
        """Counts what the application has in hand as processed."""
        with self._lock:
            self._put_down()
        self._catch_up()

    def _pick_up(self) -> Message:
        message = self._waiting.popleft()
        self._in_hand = message
        self._taken += 1
        self._taken_generation = message._generation
        self.checkpoint = _after(self.checkpoint, message)
        return message

    def _put_down(self) -> None:
        # An alarm that came ahead is processed at its turn.
        if self._in_hand is not None and not (isinstance(self._in_hand, Event) and self._in_hand.ahead):
            self._handled = self._in_hand
        self._in_hand = None

    def _catch_up(self) -> None:
        """Tells how far the application is, and that there is room."""
        with self._lock:
            handled, count = self._handled, self._taken
            self._handled, self._told = None, False
            if handled is not None:
                self._taken = 0
        if handled is not None and handled._generation == self.generation:
            self._processed(_end(handled), count)
        self._departure.set()

    def offset_of(self, upto: Message | int) -> int | None:
        """What a message, or an offset of the session of which one was taken last, is in the present session; `None` for another one."""
        generation = self._taken_generation if isinstance(upto, int) else upto._generation
        if generation != self.generation:
            return None
        return upto if isinstance(upto, int) else _end(upto)

    def end(self, error: NearcastError | None = None) -> None:
        """Ends it: at once, or with an error, which comes after what waits."""
        if not self._ended:
            self._ended, self._error = True, error
            self._arrival.set()
            self._departure.set()


def _end(message: Message) -> int:
    return message.offset if isinstance(message, Event) else message.to


def _after(checkpoint: Checkpoint | None, message: Message) -> Checkpoint:
    """How far one is after a message: never back, but where another session begins."""
    reached = Checkpoint(message.epoch, _end(message))
    begins = isinstance(message, Gap) and message.reason == "epoch"
    if checkpoint is None or begins or reached.epoch != checkpoint.epoch or reached.offset > checkpoint.offset:
        return reached
    return checkpoint
