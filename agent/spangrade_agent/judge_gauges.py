"""Judges on ``/metrics``: their money, and how the endpoints of their models stand."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from spangrade.delivery.instruments import CIRCUITS
from spangrade.model.gate import GateState, by_host
from spangrade.scoring.outcomes import Counts, Ledger
from spangrade_agent.health import Gauge, Labels


def judge_gauges(ledger: Ledger) -> Sequence[Gauge]:
    """US dollars spent, reserved and left, by judge and window; limit, calls under way and circuit, by the endpoint's host."""

    def by_judge(amount: str) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {
            (("evaluator", name), ("window", state.kind.removeprefix("usd_per_"))): getattr(state, amount)
            for name, states in ledger.budgets().items()
            for state in states
        }

    def by_endpoint(read: Callable[[GateState], int]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {(("endpoint", state.host),): read(state) for state in by_host(ledger.endpoints())}

    money = {"spent": "that a judge has spent", "reserved": "held for calls under way", "left": "that are left"}
    calls: Mapping[str, tuple[str, Callable[[GateState], int]]] = {
        "concurrency_limit": ("Calls at once that an endpoint of judges takes, as found out", lambda s: s.limit),
        "concurrency_in_flight": ("Calls to an endpoint of judges that are under way", lambda s: s.in_flight),
        "circuit": ("Of an endpoint of judges: 0 closed, 1 half open, 2 open", lambda s: CIRCUITS[s.circuit]),
    }

    def by_result(read: Callable[[Counts], Mapping[str, int]]) -> Callable[[], Mapping[Labels, float]]:
        def found() -> Mapping[Labels, float]:
            total: Counter[Labels] = Counter()
            for counts in ledger.snapshot().values():
                for result, n in read(counts).items():
                    total[("evaluator", counts.name), ("result", result)] += n
            return total

        return found

    canaries = "Samples with a known verdict that a judge was asked about"
    repairs = "Replies of a judge that could not be read and were asked for once more"
    return [
        Gauge("spangrade_judge_canaries_total", canaries, "counter", by_result(lambda counts: counts.canaries)),
        Gauge("spangrade_judge_repairs_total", repairs, "counter", by_result(lambda counts: counts.repairs)),
        *(
            Gauge(f"spangrade_judge_{amount}_usd", f"US dollars {said} in this window", "gauge", by_judge(amount))
            for amount, said in money.items()
        ),
        *(Gauge(f"spangrade_judge_{name}", said, "gauge", by_endpoint(read)) for name, (said, read) in calls.items()),
    ]
