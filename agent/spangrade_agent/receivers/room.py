"""How much a receiver holds at once: requests in work, and bytes of all their bodies."""

import threading


class Full(Exception):
    """No room now; the sender is to come again."""


class Room:
    """The bound that all requests share. Safe from any thread."""

    def __init__(self, max_requests: int, max_bytes: int) -> None:
        self._max_requests = max_requests
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._requests = 0
        self._bytes = 0

    @property
    def full(self) -> bool:
        """Whether one more request would find no place."""
        return self._requests >= self._max_requests

    @property
    def held(self) -> tuple[int, int]:
        """(requests in work, bytes held)."""
        with self._lock:
            return self._requests, self._bytes

    def ticket(self) -> "Ticket":
        """One request's account; costs nothing until it is charged."""
        return Ticket(self)

    def take(self, requests: int, size: int) -> None:
        """Raises:
        Full: with them the bound would be passed; nothing is taken then."""
        with self._lock:
            if self._requests + requests > self._max_requests or self._bytes + size > self._max_bytes:
                raise Full
            self._requests += requests
            self._bytes += size

    def give(self, requests: int, size: int) -> None:
        """Give back what was taken."""
        with self._lock:
            self._requests -= requests
            self._bytes -= size


class Ticket:
    """What one request holds. Its bytes are held while the body is read and, once in work, until the work ends."""

    __slots__ = ("_bytes", "_entered", "_room")

    def __init__(self, room: Room) -> None:
        self._room = room
        self._bytes = 0
        self._entered = False  # for good: from then on only `leave`, on whatever thread, gives back

    def charge(self, size: int) -> None:
        """Raises:
        Full: no room for ``size`` more bytes."""
        self._room.take(0, size)
        self._bytes += size

    def enter(self) -> None:
        """Raises:
        Full: as many requests are in work as may be."""
        self._room.take(1, 0)
        self._entered = True

    def leave(self) -> None:
        """The work has ended, or was never begun."""
        self._room.give(1, self._bytes)

    def done_reading(self) -> None:
        """The request is answered or its client gone: bytes that no work holds are given back."""
        if not self._entered:
            self._room.give(0, self._bytes)
            self._bytes = 0
