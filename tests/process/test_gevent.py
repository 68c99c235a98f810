"""Under gevent threads are greenlets of one thread: whoever blocks it blocks every request."""

import json
import signal

import pytest

from .programs import Program, ReceiverProcess, run_program, scored

PARTS = {
    "patch": "from gevent import monkey; monkey.patch_all()",
    "import": "import spangrade as sg",
    "configure": """
@sg.metric
def slow(output):
    time.sleep(0.01)
    return 1

@sg.metric
async def later(output):
    await asyncio.sleep(0.01)
    return 1

sg.configure(service_name="greenlets", endpoint=sys.argv[1], metrics=[slow, later], hold=20)
""",
    "work": """
import gevent, gevent.timeout

@sg.trace
def answer(question):
    time.sleep(0.001)
    return question

longest, before = 0.0, time.perf_counter()

def heart():  # a greenlet of the application's: how long is it kept from running?
    global longest, before
    while True:
        before = time.perf_counter()
        gevent.sleep(0.005)
        longest = max(longest, time.perf_counter() - before)

def client(n):
    for k in range(10):
        answer(f"{n}/{k}")
    try:  # the application's own time-outs are not stopped by our guards
        with gevent.Timeout(0.01):
            gevent.sleep(5)
        print("no time-out")
    except gevent.timeout.Timeout:
        pass

watch = gevent.spawn(heart)
gevent.joinall([gevent.spawn(client, n) for n in range(50)], timeout=30, raise_error=True)
answer("asyncio")
if len(sys.argv) > 2:
    asyncio.run(asyncio.sleep(0.05))
flushed = sg.flush(20)
watch.kill()
print(json.dumps({"flushed": flushed, "longest": longest}))
""",
}
HEAD = "import asyncio, json, sys, time\n"


@pytest.mark.parametrize(
    "order",
    [
        ("patch", "import", "configure"),
        ("import", "patch", "configure"),
        ("import", "configure", "patch"),
    ],
    ids="-".join,
)
def test_greenlets_are_traced_and_scored_and_never_wait_for_us(
    receiver: ReceiverProcess, order: tuple[str, ...]
) -> None:
    code = HEAD + "\n".join(PARTS[part] for part in (*order, "work"))
    done = run_program(code, receiver.base_url, timeout=30)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stdout.startswith('{"flushed": true'), (done.stdout, done.stderr)
    calls = scored(receiver)
    assert len(calls) == 501
    odd = {output: scores for output, scores in calls.items() if scores != {"slow": 1.0, "later": 1.0}}
    assert not odd, (len(odd), odd, done.stderr)
    assert json.loads(done.stdout)["longest"] < 1.0


@pytest.mark.parametrize("busy", ["while True: pass", "gevent.wait()"])
def test_sigterm_ends_a_process_whose_greenlets_never_yield_as_well(receiver: ReceiverProcess, busy: str) -> None:
    """The work at the end is a greenlet's, too; where it gets no turn the process still ends."""
    code = HEAD + "\n".join(PARTS[part] for part in ("patch", "import", "configure"))
    code += f"""
import gevent
with sg.trace("call"):
    sg.set_output("a")
print("ready", flush=True)
{busy}
"""
    with Program.of(code, receiver.base_url) as program:
        program.wait_for("ready")
        program.kill(signal.SIGTERM)
        assert program.end(20) == -signal.SIGTERM
    if "wait" in busy:
        assert scored(receiver) == {"a": {"slow": 1.0, "later": 1.0}}


#: Our loop gives the thread back while it waits, and not while a callback of it waits for a lock: a greenlet that comes in then
#: may take the running loop from it, or find it there. On a busy machine that was seen in one run of three.
SHARED_RARELY = pytest.mark.xfail(
    reason="a greenlet may come in while a callback of our loop waits for a lock", strict=False
)


@SHARED_RARELY
def test_an_async_metric_does_not_stand_in_the_way_of_the_applications_own_loop(receiver: ReceiverProcess) -> None:
    code = HEAD + "\n".join(PARTS[part] for part in ("patch", "import", "configure", "work"))
    done = run_program(code, receiver.base_url, "with asyncio", timeout=30)
    assert "running event loop" not in done.stderr
    assert done.stdout.startswith('{"flushed": true'), (done.stdout, done.stderr)
    calls = scored(receiver)
    assert len(calls) == 501
    odd = {output: scores for output, scores in calls.items() if scores != {"slow": 1.0, "later": 1.0}}
    assert not odd, (len(odd), odd, done.stderr)


@SHARED_RARELY
def test_the_applications_loop_may_run_first_and_its_generators_stay_its_own(receiver: ReceiverProcess) -> None:
    """Ours starts while that one runs, in the same thread to asyncio."""
    work = """
closed = []

@sg.trace
def answer(question):
    return question

async def items(n):
    try:
        while True:
            await asyncio.sleep(0.001)
            yield n
    finally:
        closed.append(asyncio.get_running_loop())

async def main():
    for n in range(20):
        async for _ in items(n):
            break  # left to the hooks of the loop that runs here
        answer(f"{n}")
        await asyncio.sleep(0.005)
    return asyncio.get_running_loop()

theirs = asyncio.run(main())
flushed = sg.flush(20)
print(json.dumps({"flushed": flushed, "closed": len(closed), "theirs": {theirs} == set(closed)}))
"""
    code = HEAD + "\n".join([*(PARTS[part] for part in ("patch", "import", "configure")), work])
    done = run_program(code, receiver.base_url, timeout=30)
    assert json.loads(done.stdout or "null") == {"flushed": True, "closed": 20, "theirs": True}, done.stderr
    assert len(scored(receiver)) == 20
    assert all(scores == {"slow": 1.0, "later": 1.0} for scores in scored(receiver).values()), done.stderr
