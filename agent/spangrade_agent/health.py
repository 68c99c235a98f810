"""The admin listener: is it alive, is it ready, what does it count. No content of anybody's, so it may be bound anywhere.

| path | answer |
|---|---|
| ``/healthz`` | 200 for as long as the process answers at all |
| ``/readyz`` | 200, or 503 and the reason |
| ``/metrics`` | Prometheus text format 0.0.4: promise 3's laws per evaluator, and what the caller's table adds |

Two evaluators of one name (an old and a new configuration) are one series, their sum: both laws hold for sums too.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from spangrade import _guard
from spangrade._values import bounded
from spangrade._version import __version__
from spangrade.scoring.outcomes import Counts, Ledger
from spangrade_agent.page.asgi import Answer, AsgiApp, Request, application, text

Labels = tuple[tuple[str, str], ...]
Kind = Literal["counter", "gauge"]
Ready = Callable[[], bool | str]

EXPOSITION: Final = "text/plain; version=0.0.4; charset=utf-8"
MAX_LABEL_VALUE: Final = 256
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*\Z")
_NO_STORE: Final = ("cache-control", "no-store")


@dataclass(frozen=True, slots=True)
class Gauge:
    """One row of the caller's table. ``read`` gives one number, or numbers by labels; it must be quick, and is called
    on the listener's thread at every scrape. A counter's name ends in ``_total``.

    Raises:
        ValueError: a name that Prometheus does not take, or another kind.
    """

    name: str
    help: str
    kind: Kind
    read: Callable[[], Mapping[Labels, float] | float]

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(f"instrument name {self.name!r} is not letters, digits, _ and :")
        if self.kind not in get_args(Kind):
            raise ValueError(f"instrument {self.name}: kind {self.kind!r} is neither counter nor gauge")
        if self.kind == "counter" and not self.name.endswith("_total"):
            raise ValueError(f"instrument {self.name}: a counter's name ends in _total")


def admin_app(ledger: Ledger, gauges: Sequence[Gauge] = (), ready: Ready = lambda: True) -> AsgiApp:
    """The listener's ASGI application.

    Args:
        ledger: whose counts are shown.
        gauges: more instruments. One that raises is left out of that scrape, and counted as a fault of ours.
        ready: True, or False, or why not in a few words (a state, no content).

    Raises:
        ValueError: two instruments of one name.
    """
    named = Counter([*(name for name, _, _, _ in _LAWS), *_OWN, *(gauge.name for gauge in gauges)])
    twice = [name for name, times in named.items() if times > 1]
    if twice:
        raise ValueError(f"two instruments are named {twice[0]!r}")

    def answer(request: Request) -> Answer:
        if request.path == "/healthz":
            return text(200, "ok", _NO_STORE)
        if request.path == "/readyz":
            return _readiness(ready)
        if request.path == "/metrics":
            return Answer(200, exposition(ledger, gauges).encode("utf-8", "replace"), EXPOSITION, (_NO_STORE,))
        return text(404, "here are /healthz, /readyz and /metrics")

    return application(answer, where="admin")


def _readiness(ready: Ready) -> Answer:
    try:
        state = ready()
    except Exception as fault:  # noqa: BLE001 - not knowing is not being ready
        _guard.swallowed("admin.ready", fault)
        state = "readiness could not be told"
    if state is True:
        return text(200, "ready", _NO_STORE)
    return text(503, f"not ready: {state}" if state else "not ready", _NO_STORE)


def exposition(ledger: Ledger, gauges: Sequence[Gauge] = ()) -> str:
    """Everything that is counted, in Prometheus' text format."""
    counts = list(ledger.snapshot().values())
    lines: list[str] = []
    for name, said, kind, read in _LAWS:
        summed: Counter[Labels] = Counter()
        for one in counts:
            for extra, number in read(one):
                summed[(("evaluator", one.name), *extra)] += number
        lines += _family(name, said, kind, summed)
    lines += _family(_OWN[0], "The release that runs", "gauge", {(("version", __version__),): 1})
    lines += _family(_OWN[1], "Faults of the agent's own that were stopped and logged", "counter", _guard.count())
    for gauge in gauges:
        with _guard.guard(f"admin.instrument.{gauge.name}"):
            lines += _family(gauge.name, gauge.help, gauge.kind, gauge.read())
    return "\n".join(lines) + "\n"


Rows = Iterable[tuple[Labels, int]]

#: Per evaluator, at every moment: met = pending + all of `spangrade_pairs_total`;
#: `spangrade_pairs_total{outcome="scored"}` = delivered + undelivered + in flight.
_LAWS: Final[tuple[tuple[str, str, Kind, Callable[[Counts], Rows]], ...]] = (
    (
        "spangrade_pairs_met_total",
        "Pairs of sample and evaluator whose target was met",
        "counter",
        lambda c: [((), c.met)],
    ),
    (
        "spangrade_pairs_total",
        "Pairs that ended, by outcome and reason",
        "counter",
        lambda c: [((("outcome", o.value), ("reason", why)), n) for (o, why), n in c.outcomes.items()],
    ),
    ("spangrade_pairs_pending", "Pairs that have not ended", "gauge", lambda c: [((), c.pending)]),
    (
        "spangrade_scores_delivered_total",
        "Scored pairs that left, by their first carrier",
        "counter",
        lambda c: [((("carrier", carrier),), n) for carrier, n in c.delivered.items()],
    ),
    (
        "spangrade_scores_undelivered_total",
        "Scored pairs that could not leave, by reason",
        "counter",
        lambda c: [((("reason", why),), n) for why, n in c.undelivered.items()],
    ),
    (
        "spangrade_scores_in_flight",
        "Scored pairs that a carrier has and that have not left yet",
        "gauge",
        lambda c: [((), c.in_flight)],
    ),
    (
        "spangrade_scores_again_total",
        "Scores that left by a second carrier as well",
        "counter",
        lambda c: [((("carrier", carrier),), n) for carrier, n in c.also.items()],
    ),
)
_OWN: Final = ("spangrade_build_info", "spangrade_faults_total")


def _family(name: str, said: str, kind: Kind, read: Mapping[Labels, float] | float) -> list[str]:
    rows = read if isinstance(read, Mapping) else {(): read}
    # Summed by what is written: two label values that are cut to the same text would otherwise spoil the whole scrape.
    written: dict[str, float] = {}
    for labels, value in rows.items():
        series = _labels(labels)
        written[series] = written.get(series, 0) + value
    samples = [f"{name}{series} {_number(value)}" for series, value in written.items()]
    escaped = said.replace("\\", r"\\").replace("\n", r"\n")
    return [f"# HELP {name} {escaped}", f"# TYPE {name} {kind}", *samples]


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    for name, _ in labels:
        if not _LABEL.match(name):
            raise ValueError(f"label name {name!r} is not letters, digits and _")
    return "{" + ",".join(f'{name}="{_label_value(value)}"' for name, value in labels) + "}"


def _label_value(value: str) -> str:
    cut = bounded(str(value), MAX_LABEL_VALUE)
    return cut.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
