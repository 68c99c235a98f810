"""Other vendors' decorators on the same call, each in a process of its own, beside the same bare OpenTelemetry span.

They are installed in a venv of their own (tests/integration/vendors_venv.py), with their own defaults, and export to
nowhere: what is measured is the application's thread.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def main(rounds: int, calls: int) -> None:
    """Print a row for each that installs; one that does not is said."""
    from tests.integration.vendors_venv import ensure_vendors

    print("| the same sync call, other decorators | bare µs | theirs µs | x bare |")
    print("|---|---|---|---|")
    python = ensure_vendors(ROOT / "tests" / "integration" / "vendors_newest.txt")
    path = os.pathsep.join((str(ROOT / "sdk"), str(ROOT)))
    for name in PEERS:
        done = subprocess.run(  # noqa: PLW1510 - what it answers is looked at
            [str(python), "-m", "tests.benchmarks.peers", name, str(rounds), str(calls)],
            env={**os.environ, "PYTHONPATH": path, "LANGFUSE_TRACING_ENVIRONMENT": "bench"},
            capture_output=True,
            text=True,
            cwd=ROOT,
        )
        said = (
            done.stdout
            if done.returncode == 0
            else f"| {name} | does not run: {done.stderr.strip().splitlines()[-1:]} | | |"
        )
        print(said.strip(), flush=True)


def _spangrade(provider: Any) -> Callable[..., Any]:
    import spangrade as sg
    from tests.benchmarks.calls import METRICS, Nowhere

    sg.configure(metrics=METRICS, exporter=Nowhere(), tracer_provider=None)
    return sg.trace


def _openinference(provider: Any) -> Callable[..., Any]:
    from openinference.instrumentation import OITracer, TraceConfig

    return OITracer(provider.get_tracer("peer"), TraceConfig()).chain


def _langfuse(provider: Any) -> Callable[..., Any]:
    from langfuse import Langfuse, observe

    Langfuse(public_key="pk", secret_key="sk", host="http://127.0.0.1:9", tracer_provider=provider)
    return observe()


def _logfire(provider: Any) -> Callable[..., Any]:
    import logfire
    from logfire import AdvancedOptions  # noqa: F401 - says early that this is the version we mean

    logfire.configure(send_to_logfire=False, console=False)
    return logfire.instrument("call", record_return=True)


PEERS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "spangrade": _spangrade,
    "openinference": _openinference,
    "langfuse": _langfuse,
    "logfire": _logfire,
}


def measure(name: str, rounds: int, calls: int) -> None:
    """In the process of one peer."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from tests.benchmarks.calls import ANSWER, PAYLOAD, Nowhere, by_hand, one_by_one
    from tests.benchmarks.paired import paired

    bare, theirs = TracerProvider(), TracerProvider()
    for provider in (bare, theirs):
        provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    decorate = PEERS[name](theirs)

    @decorate
    def call(payload: Any) -> str:
        return ANSWER

    pair = paired(by_hand(bare)["sync"], one_by_one(lambda: call(PAYLOAD)), rounds, calls, lambda: None)
    print(f"| {name} | {pair.bare:.1f} | {pair.ours:.1f} | {pair.ratio:.2f} |")
    sys.stdout.flush()
    os._exit(0)  # nobody's flush at exit: their collectors are not there


if __name__ == "__main__":
    measure(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
