"""C002's further case: streams that are half read when the process exits, in the process itself and in a forked child."""

import pytest

from .programs import ReceiverProcess, environment, run_program, scored

CODE = """
import os, sys
import spangrade as sg

@sg.metric
def words(output):
    return len(output.split())

class Stream:
    def __init__(self):
        self.left = ["an object ", "two "]
    def __iter__(self):
        return self
    def __next__(self):
        return self.left.pop(0)

@sg.trace
def tokens():
    yield "a generator"
    yield "two "

@sg.trace
def stream_object():
    return Stream()

endpoint, forks = sys.argv[1:3]
sg.configure(endpoint=endpoint, metrics=[words])
parents = tokens()
next(parents)
if forks == "forks":
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        sys.exit(0)
    kept = stream_object()  # of the child, which does nothing else
    next(kept)
    sys.exit(0)
kept = stream_object()
next(kept)
"""


@pytest.mark.parametrize("forks", ["stays", "forks"])
def test_what_is_half_read_at_exit_is_scored_and_sent_with_what_there_was(
    forks: str, receiver: ReceiverProcess
) -> None:
    done = run_program(CODE, receiver.base_url, forks, env=environment())
    assert (done.returncode, done.stderr) == (0, "")
    assert scored(receiver) == {"an object ": {"words": 2}, "a generator": {"words": 2}}  # each once
    assert {span["attributes"]["spangrade.ended"] for span in receiver.spans()} == {"closed"}
