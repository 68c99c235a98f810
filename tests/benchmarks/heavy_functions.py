"""The metrics of `heavy_metric`, in a module that a worker process can import."""

import time

import spangrade as sg


def burn(output: str) -> float:
    """200 ms of processor time for every tenth call."""
    if output.endswith("0"):
        began = time.thread_time()
        while time.thread_time() - began < 0.2:
            sum(range(1_000))
    return 1.0


in_threads = sg.metric(timeout=30)(burn)
in_processes = sg.metric(timeout=30, process=True)(burn)
