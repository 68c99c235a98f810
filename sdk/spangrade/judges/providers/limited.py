"""A client of another package's, kept within the limiter of its endpoint like ours."""

import time
from dataclasses import replace
from typing import Final

from spangrade.errors import JudgeError
from spangrade.judges.limiter import Limiter
from spangrade.judges.providers.base import JudgeClient, JudgeReply, JudgeRequest
from spangrade.judges.providers.endpoint import Endpoint
from spangrade.model.gate import RATE_LIMITED, carried

_NOT_WORKING: Final = frozenset({"timeout", "connection", "http_status"})  # kinds; others are the call's own


class LimitedClient:
    """Sends what ``client`` sends, when the endpoint's limiter lets it, and tells the limiter what became of it.

    A time-out, no connection, a status and whatever is no `JudgeError` count as an endpoint that does not work; after some in a
    row nothing is sent to it for a while. Kind ``rate_limited`` is how such a client says that there were too many calls.
    What the call had to wait is taken off its time-out.

    Raises:
        JudgeError: kind configuration, for a bound that is none (see `Endpoint`).
    """

    def __init__(self, client: JudgeClient, endpoint: Endpoint) -> None:
        self._client, self._endpoint = client, endpoint
        _ = self.limiter

    def __repr__(self) -> str:
        return f"LimitedClient({type(self._client).__name__})"  # not its own: nobody knows whether it shows a key

    @property
    def limiter(self) -> Limiter:
        """What all of this process that call the same endpoint with the same key share."""
        limiter = self._endpoint.limiter
        assert limiter is not None  # it has a provider
        return limiter

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `JudgeClient`.

        Raises:
            JudgeError: the client's; kind circuit_open or rate_limited where nothing was sent.
        """
        limiter, came = self.limiter, time.monotonic()
        place = limiter.place(came + request.timeout)
        sent = time.monotonic()
        try:
            reply = self._client.complete(replace(request, timeout=request.timeout - (sent - came)))
            limiter.answered(place, request.model, sent)
            return reply
        except JudgeError as fault:
            if fault.kind == RATE_LIMITED:
                limiter.refused(sent)
            elif fault.kind in _NOT_WORKING:
                limiter.failed(fault.kind)
            elif fault.kind != "configuration":  # there was a reply
                limiter.answered(place, request.model, None)
            raise
        except Exception as fault:
            limiter.failed(type(fault).__name__)
            raise
        finally:
            if place is not carried():  # a lane's place is the lane's
                place.release()
