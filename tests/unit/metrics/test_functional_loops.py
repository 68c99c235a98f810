"""`score` and `ascore` where event loops run, and many at once; batches: bounded, in order, interrupted, with progress."""

import asyncio
import contextvars
import io
import os
import signal
import sys
import threading
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import spangrade as sg
from spangrade import ConfigError, MetricResult
from spangrade.metrics import functional_batch, functional_loop

WAIT_S = 20.0
tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")


@sg.numeric_metric(allowed_values=(0, 1_000_000))
async def later(x: int) -> int:
    await asyncio.sleep(0)
    return x


@sg.numeric_metric(allowed_values=(0, 1_000_000))
def now(x: int) -> int:
    return x


# --- loops ---------------------------------------------------------------------------------------------------------------


def test_score_of_an_async_metric_works_inside_a_running_loop_and_patches_nothing() -> None:
    async def main() -> list[MetricResult]:
        running = asyncio.get_running_loop()
        before = (asyncio.run, type(running).run_until_complete, asyncio.get_running_loop)
        found = [later.score(x=1), *later.batch_score([{"x": 2}, {"x": 3}])]
        assert asyncio.get_running_loop() is running
        assert before == (asyncio.run, type(running).run_until_complete, asyncio.get_running_loop)
        return [*found, await later.ascore(x=4)]

    assert asyncio.run(main()) == [1, 2, 3, 4]
    assert "nest_asyncio" not in sys.modules


def test_scores_from_everywhere_run_on_one_loop_that_stays_open() -> None:
    loops = []

    @sg.numeric_metric
    async def where() -> float:
        loops.append(asyncio.get_running_loop())
        return 1

    async def inside() -> None:
        where.score()

    where.score()
    asyncio.run(inside())
    thread = threading.Thread(target=where.score)
    thread.start()
    thread.join(WAIT_S)
    where.batch_score([{}] * 3)
    assert len(loops) == 6
    assert len(set(loops)) == 1
    assert not loops[0].is_closed()


def test_many_threads_that_score_first_share_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional_loop, "_loops", functional_loop._Loops())
    start, loops = threading.Barrier(16), []

    @sg.numeric_metric
    async def where() -> float:
        loops.append(asyncio.get_running_loop())
        return 1

    def run() -> None:
        start.wait(WAIT_S)
        where.score()

    threads = [threading.Thread(target=run) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert len(loops) == 16
    assert len(set(loops)) == 1


def test_an_async_metric_may_score_another_inside_itself() -> None:
    @sg.numeric_metric(allowed_values=(0, 100))
    async def outer(x: int) -> float:
        return float(later.score(x=x)) + float((await later.ascore(x=1)).value)

    @sg.numeric_metric(allowed_values=(0, 100))
    async def outermost(x: int) -> float:
        return float(outer.score(x=x)) + 1

    for _ in range(20):
        assert outermost.score(x=5) == 7
    assert sum(thread.name == "spangrade-metrics-loop" for thread in threading.enumerate()) <= 4


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system interrupts no thread of choice")
def test_an_interruption_of_the_caller_cancels_the_coroutine() -> None:
    ended, main = threading.Event(), threading.main_thread()
    assert main.ident is not None

    @sg.numeric_metric
    async def waits() -> float:
        try:
            signal.pthread_kill(main.ident, signal.SIGINT)
            await asyncio.Event().wait()
            return 1
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        waits.score()
    assert ended.wait(WAIT_S)


def test_a_metric_that_blocks_its_loop_on_another_threads_score_gets_that_score() -> None:
    @sg.numeric_metric(allowed_values=(0, 100))
    async def blocks(x: int) -> Any:
        found = []
        thread = threading.Thread(target=lambda: found.append(functional_loop.run(lambda: later.ascore(x=x), 0.01)))
        thread.start()
        thread.join(WAIT_S)
        return found[0]

    assert blocks.score(x=9) == 9
    assert later.score(x=1) == 1


def test_context_variables_of_the_caller_are_seen_and_not_changed() -> None:
    @sg.discrete_metric(allowed_values=["acme"])
    def seen() -> str:
        found = tenant.get()
        tenant.set("changed")
        return found

    @sg.discrete_metric(allowed_values=["acme"])
    async def seen_later() -> str:
        return seen()

    def all_ways() -> list[Any]:
        token = tenant.set("acme")
        found = [seen_later.score(), *seen.batch_score([{}] * 3), *seen_later.batch_score([{}] * 3)]
        found += [
            asyncio.run(seen.ascore()),
            asyncio.run(seen_later.ascore()),
            *asyncio.run(seen.abatch_score([{}] * 3)),
        ]
        assert tenant.get() == "acme"
        tenant.reset(token)
        return found

    assert contextvars.copy_context().run(all_ways) == ["acme"] * 12


def test_ascore_of_a_plain_function_does_not_block_the_loop() -> None:
    begun, go = threading.Event(), threading.Event()

    @sg.numeric_metric
    def blocks() -> float:
        begun.set()
        assert go.wait(WAIT_S)
        asyncio.run(asyncio.sleep(0))  # no loop runs on its thread
        return 1

    async def main() -> Any:
        task = asyncio.create_task(blocks.ascore())
        await asyncio.to_thread(begun.wait, WAIT_S)
        go.set()  # which only a loop that goes on can do
        return await task

    assert asyncio.run(main()) == 1


def test_ascore_can_be_cancelled() -> None:
    async def main() -> None:
        begun, never = asyncio.Event(), asyncio.Event()

        @sg.numeric_metric
        async def waits() -> float:
            begun.set()
            await never.wait()
            return 1

        task = asyncio.create_task(waits.ascore())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waits.ascore(), 0.001)

    asyncio.run(main())


def test_concurrent_scores_do_not_share_their_inputs() -> None:
    async def main() -> list[MetricResult]:
        return await asyncio.gather(*[later.ascore(x=i) for i in range(300)], *[now.ascore(x=i) for i in range(100)])

    assert asyncio.run(main()) == [*range(300), *range(100)]


def test_a_plain_function_that_returns_an_awaitable_is_awaited() -> None:
    hidden = sg.numeric_metric(allowed_values=(0, 9))(lambda x: later(x))  # noqa: PLW0108 - does not look like a coroutine function
    assert hidden.score(x=3) == 3
    assert asyncio.run(hidden.ascore(x=3)) == 3
    assert hidden.batch_score([{"x": 3}, {"x": 4}]) == [3, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_scores_on_a_loop_of_its_own() -> None:
    assert later.score(x=1) == 1
    child = os.fork()
    if child == 0:
        os._exit(0 if later.score(x=7) == 7 and later.batch_score([{"x": 8}] * 3) == [8] * 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


# --- batches -------------------------------------------------------------------------------------------------------------


def batch(metric: Any, items: Iterable[dict[str, Any]], concurrency: int, awaited: bool) -> list[MetricResult]:
    if awaited:
        return asyncio.run(metric.abatch_score(items, concurrency=concurrency))
    return metric.batch_score(items, concurrency=concurrency)


class Crowd:
    """Counts who is inside, and lets nobody go before as many as expected have met."""

    def __init__(self, expected: int) -> None:
        self.met = threading.Barrier(expected)
        self.lock = threading.Lock()
        self.inside = 0
        self.most = 0

    def enter(self) -> None:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1


@pytest.mark.parametrize("awaited", [False, True])
def test_a_batch_of_a_plain_function_runs_that_many_at_once_and_no_more(awaited: bool) -> None:
    crowd = Crowd(3)

    @sg.numeric_metric(allowed_values=(0, 100))
    def meets(x: int) -> int:
        crowd.enter()
        crowd.met.wait(WAIT_S)
        crowd.leave()
        return x

    assert batch(meets, [{"x": i} for i in range(12)], 3, awaited) == list(range(12))
    assert crowd.most == 3


@pytest.mark.parametrize("awaited", [False, True])
def test_a_batch_of_a_coroutine_function_runs_that_many_at_once_and_no_more(awaited: bool) -> None:
    inside, most = 0, 0

    @sg.numeric_metric(allowed_values=(0, 100))
    async def counts(x: int) -> int:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(x % 5 + 1):
            await asyncio.sleep(0)
        inside -= 1
        return x

    assert batch(counts, [{"x": i} for i in range(40)], 7, awaited) == list(range(40))
    assert most == 7


@given(st.lists(st.integers(0, 1_000), max_size=30), st.integers(1, 40), st.booleans(), st.booleans())
def test_results_are_in_the_order_of_the_items(xs: list[int], concurrency: int, is_async: bool, awaited: bool) -> None:
    items = ({"x": x} for x in xs)  # a generator is read once
    found = batch(later if is_async else now, items, concurrency, awaited)
    assert [result.value for result in found] == xs


def test_with_a_concurrency_of_one_a_function_stays_on_the_callers_thread() -> None:
    threads = []
    metric = sg.numeric_metric(lambda: threads.append(threading.current_thread()) or 1)
    metric.batch_score([{}] * 5, concurrency=1)
    assert set(threads) == {threading.current_thread()}


def test_all_inputs_are_checked_before_the_first_item_runs() -> None:
    ran = []

    @sg.numeric_metric
    def costly(x: float) -> float:
        ran.append(x)
        return x

    for wrong, said in (
        (
            [{"x": 1}, {"x": "much"}],
            r"inputs\[1\]: Type validation errors for costly: x: Input should be a valid number",
        ),
        ([{"x": 1}, {}], r"inputs\[1\]: .*x: Field required"),
        ([{"x": 1}, ["x"]], r"inputs\[1\]: \['x'\] is no dict of inputs by name"),
        ([{"x": 1}, None], r"inputs\[1\]: None is no dict"),
        ({"x": 1}, "takes a list of dicts of inputs, not {'x': 1}; for one, use score"),
        ("x", "takes a list of dicts"),
        (5, "takes a list of dicts"),
    ):
        with pytest.raises(TypeError, match=said):
            costly.batch_score(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=said):
            asyncio.run(costly.abatch_score(wrong))  # type: ignore[arg-type]
    assert ran == []


@pytest.mark.parametrize("concurrency", [0, -1, True, 2.0, "4", None])
def test_a_concurrency_that_is_no_number_is_refused(concurrency: Any) -> None:
    for metric in (now, later):
        with pytest.raises(ConfigError, match="not a number of items at a time"):
            metric.batch_score([{"x": 1}], concurrency=concurrency)
        with pytest.raises(ConfigError, match="not a number of items at a time"):
            asyncio.run(metric.abatch_score([{"x": 1}], concurrency=concurrency))


def test_one_item_that_fails_costs_only_its_own_result() -> None:
    metric = sg.numeric_metric(name="m", allowed_values=(0, 10))(lambda x: 10 / x)
    found = metric.batch_score([{"x": x} for x in (1, 0, 5, 0.1)])
    assert [result.value for result in found] == [10, None, 2, None]
    assert "ZeroDivisionError" in str(found[1].reason)
    assert "in range (0, 10)" in str(found[3].reason)
    assert now.batch_score([]) == []
    assert asyncio.run(later.abatch_score([])) == []


def test_an_interruption_in_one_item_ends_the_batch() -> None:
    begun = []

    @sg.numeric_metric
    def interrupted(x: int) -> float:
        begun.append(x)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted.batch_score([{"x": i} for i in range(1_000)], concurrency=2)
    assert len(begun) <= 2


def test_a_cancelled_batch_begins_no_further_item() -> None:
    begun: list[int] = []
    go, first = threading.Event(), threading.Event()

    @sg.numeric_metric
    def waits(x: int) -> float:
        begun.append(x)
        first.set()
        go.wait(WAIT_S)
        return 1

    async def main() -> None:
        task = asyncio.create_task(waits.abatch_score([{"x": i} for i in range(100)], concurrency=1))
        await asyncio.to_thread(first.wait, WAIT_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()

    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name == "spangrade-batch":
            thread.join(WAIT_S)
    assert begun == [0]


# --- progress ------------------------------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_quick_work_shows_no_bar_on_a_terminal_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    items = [{"x": i} for i in range(20)]
    now.batch_score(items)
    later.batch_score(items)
    asyncio.run(now.abatch_score(items))
    assert terminal.getvalue() == ""
    for run in (now.batch_score, later.batch_score, lambda i, **k: asyncio.run(now.abatch_score(i, **k))):
        run(items, progress=True)  # type: ignore[operator]
        assert "20/20" in terminal.getvalue()
        terminal.truncate(0)
    now.batch_score(items, progress=True, concurrency=1)
    assert "now: 100%" in terminal.getvalue()


def test_without_a_terminal_or_when_not_wanted_tqdm_is_not_even_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    for nowhere in (io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", nowhere)
        assert now.batch_score([{"x": 1}] * 3) == [1, 1, 1]
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert now.batch_score([{"x": 1}] * 3, progress=False) == [1, 1, 1]
    assert now.batch_score([{"x": 1}] * 3) == [1, 1, 1]  # not installed: none
    with pytest.raises(ConfigError, match=r'pip install "spangrade\[experiments\]"'):
        now.batch_score([{"x": 1}], progress=True)


@pytest.mark.parametrize(("wanted", "delay"), [(None, 2.0), (True, 0)])
def test_long_work_is_shown_after_two_seconds(
    wanted: bool | None, delay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    bars = []

    class Bar:
        def __init__(self, **options: Any) -> None:
            self.options, self.updates, self.closed = options, [], False
            bars.append(self)

        def update(self, n: int) -> None:
            self.updates.append(n)

        def close(self) -> None:
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", type("tqdm", (), {"tqdm": Bar}))
    seen = threading.Event()
    monkeypatch.setattr(functional_batch, "_LOOK_S", 0.001)

    @sg.numeric_metric
    def slow(x: int) -> float:
        if x:  # goes on when the first was seen to be done
            while not sum(bars[0].updates):
                seen.wait(0.001)
        return 1

    slow.batch_score([{"x": 0}, {"x": 1}], progress=wanted, concurrency=2)
    assert [(bar.options["delay"], bar.options["total"], sum(bar.updates), bar.closed) for bar in bars] == [
        (delay, 2, 2, True)
    ]
    assert bars[0].options["file"] is sys.stderr
