"""`evaluate`: tasks, evaluators, and how each pair ends."""

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import spangrade as sg
from spangrade.experiments import EvaluationInterrupted, Results, SourceChanged
from spangrade.experiments.item import Item
from spangrade.model.outcome import Outcome
from spangrade.testing import ScriptedJudgeClient

ROWS = [
    {"id": "a", "question": "one", "expected": "ONE"},
    {"id": "b", "question": "two", "expected": "2", "lang": "fr"},
]
PASS = '{"reasoning": "fine", "verdict": "pass"}'


@sg.metric
def exact(output: Any, expected: Any) -> bool:
    return bool(output == expected)


def outputs(results: Results) -> list[Any]:
    return [item.output for item in results.items]


# --- the task -----------------------------------------------------------------------------------------------------------


def by_any_name(message: str) -> str:
    return message.upper()


def by_alias(question: str) -> str:
    return question.upper()


def by_input(input: str) -> str:  # noqa: A002
    return input.upper()


def whole_item(item: Any) -> str:
    return str(item["question"]).upper()


def typed_item(x: dict[str, Any]) -> str:
    return str(x["input"]).upper()


def typed_sample(x: sg.Sample) -> str:
    return str(x.input).upper()


def with_default(text: str, model: str = "m") -> str:
    return text.upper()


def only_by_keyword(*, query: str) -> str:
    return query.upper()


def streamed(text: str) -> Iterator[str]:
    yield from text.upper()


async def awaited(text: str) -> str:
    await asyncio.sleep(0)
    return text.upper()


async def streamed_async(text: str) -> AsyncIterator[str]:
    for letter in text.upper():
        yield letter


def gives_a_coroutine(text: str) -> Any:
    return awaited(text)


class Bot:
    def __call__(self, text: str) -> str:
        return text.upper()

    def answer(self, text: str) -> str:
        return text.upper()


class AsyncBot:
    async def __call__(self, text: str) -> str:
        return text.upper()


TASKS = [
    by_any_name, by_alias, by_input, whole_item, typed_item, typed_sample, with_default, only_by_keyword, streamed, awaited,
    streamed_async, gives_a_coroutine, Bot(), Bot().answer, AsyncBot(), str.upper, lambda x: x.upper(), sg.trace(by_any_name),
    sg.trace(awaited), sg.trace(streamed),
]  # fmt: skip


@pytest.mark.parametrize("task", TASKS, ids=lambda task: getattr(task, "__qualname__", type(task).__name__))
def test_a_task_of_any_sort_gives_its_output(task: Any) -> None:
    results = sg.evaluate(ROWS, task, [exact])
    assert outputs(results) == ["ONE", "TWO"]
    assert [score.value for score in results.scores("exact")] == [1.0, 0.0]


def test_parameters_are_filled_by_the_names_of_fields_and_of_columns() -> None:
    def task(question: str, expected: str, lang: str = "en", *, retries: int = 3) -> list[Any]:
        return [question, expected, lang, retries]

    assert outputs(sg.evaluate(ROWS, task)) == [["one", "ONE", "en", 3], ["two", "2", "fr", 3]]


def test_a_task_gets_values_as_they_were_given_and_its_lists_are_its_own_to_change() -> None:
    class Image:
        pass

    image, numbers = Image(), list(range(30_000))
    rows = [{"input": [{"role": "user"}], "image": image, "numbers": numbers, "big": 2**70}]
    seen: list[Any] = []

    def task(input: list[Any], image: Any, numbers: list[int], big: int) -> int:  # noqa: A002
        input.append({"role": "assistant"})
        numbers.append(1)
        seen.append((len(input), image, len(numbers), big))
        return len(input)

    results = sg.evaluate(rows, task, [exact], repeats=2)
    assert seen == [(2, image, 30_001, 2**70)] * 2
    assert outputs(results) == [2, 2]
    assert results.items[0].input == [{"role": "user"}]
    assert len(numbers) == 30_000
    assert "Image" in results.items[0].metadata["image"]
    assert sg.evaluate(rows, lambda item: item["input"].append(1) or len(item["input"])).items[0].output == 2


def test_a_fault_of_ours_costs_its_run_and_no_other(
    monkeypatch: pytest.MonkeyPatch, swallowed_faults: list[Any]
) -> None:
    from spangrade.experiments import experiment

    real = experiment.found_in

    def found(item: Item, *rest: Any, **more: Any) -> Any:
        if item["item_id"] == "a":
            raise RuntimeError("a fault of ours")
        return real(item, *rest, **more)

    monkeypatch.setattr(experiment, "found_in", found)
    first, second = sg.evaluate(ROWS, by_alias, [exact]).items
    assert first.error is not None
    assert "could not read what the task gave: a fault of ours" in first.error.message
    assert second.output == "TWO"
    swallowed_faults.clear()


def test_a_whole_item_is_a_read_only_mapping_with_attributes() -> None:
    seen: list[Item] = []

    def task(item: Item) -> str:
        seen.append(item)
        with pytest.raises(TypeError):
            item["input"] = "changed"
        return str(item.input)

    sg.evaluate(ROWS, task)
    assert seen[1]["lang"] == "fr"


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (3, "int 3 is no function"),
        ([exact], "the order is dataset, task"),
        (Bot, "Bot is a class; give a function, or an instance"),
        (lambda: 1, "takes no parameter"),
        (lambda question, unknown: 1, "parameters unknown cannot be filled; .*item_id, input, .*lang"),
    ],
)
def test_a_task_that_no_item_can_fill_is_refused_before_anything_runs(task: Any, says: str) -> None:
    with pytest.raises(sg.ConfigError, match=says):
        sg.evaluate(ROWS, task)


def test_recorded_outputs_are_scored_without_a_task_and_a_missing_one_is_an_error() -> None:
    results = sg.evaluate(
        [{"input": "q", "output": "A", "expected": "A"}, {"input": "r", "expected": "B"}], None, [exact]
    )
    assert [score.value for score in results.scores("exact")] == [1.0]
    assert results.items[1].error is not None
    assert results.items[1].error.type == "no_output"
    assert results.items[0].duration_s is None
    with pytest.raises(sg.ConfigError, match="no task, and no item of dataset has an output"):
        sg.evaluate([{"input": "q"}], None, [exact])


@sg.metric
def context_size(context: Any) -> int:
    return len(context)


def test_a_recorded_output_has_no_latency_that_a_metric_could_take_for_a_models() -> None:
    results = sg.evaluate([{"input": "q", "output": "A"}], None, [context_size])
    assert results.scores("context_size")[0].value == 0.0


def test_a_task_that_fails_is_an_error_of_its_run_and_no_evaluator_runs_on_it() -> None:
    ran: list[str] = []

    @sg.metric
    def seen(output: str) -> bool:
        ran.append(output)
        return True

    class Broken(Exception):
        def __str__(self) -> str:
            raise ValueError

    def task(text: str) -> str:
        if text == "exit":
            sys.exit("bye")
        if text == "broken":
            raise Broken
        if text == "bad":
            raise KeyError("k")
        return text

    results = sg.evaluate(["bad", "fine", "exit", "broken"], task, [seen])
    assert [item.error and item.error.type for item in results.items] == ["KeyError", None, "SystemExit", "Broken"]
    assert results.items[0].error.message == "'k'"  # type: ignore[union-attr]
    assert ran == ["fine"]
    line = results.summary()["seen"]
    assert (line.n, line.not_run, line.errors) == (1, 3, 0)
    assert "failed in 3 of 4 runs" in str(results)


@pytest.mark.parametrize("kind", ["sync", "async", "cancelled"])
def test_a_task_that_does_not_come_back_is_given_up_in_time_and_the_rest_go_on(kind: str) -> None:
    hang = threading.Event()

    def waits(text: str) -> str:
        if text == "hang":
            hang.wait(60)
        return text

    async def waits_async(text: str) -> str:
        if text == "hang":
            if kind == "cancelled":
                raise asyncio.CancelledError
            await asyncio.Event().wait()
        return text

    try:
        results = sg.evaluate(
            ["hang", "fine"], waits if kind == "sync" else waits_async, [exact], timeout=0.05, concurrency=1
        )
    finally:
        hang.set()
    wanted = "CancelledError" if kind == "cancelled" else "timeout"
    assert [item.error and item.error.type for item in results.items] == [wanted, None]


def test_a_task_takes_as_long_as_it_likes_without_a_limit_and_its_own_timeouterror_is_an_error() -> None:
    def task(text: str) -> str:
        raise TimeoutError("the database")

    (item,) = sg.evaluate(["q"], task, timeout=60).items
    assert item.error is not None
    assert (item.error.type, item.error.message) == ("TimeoutError", "the database")


# --- the evaluators -----------------------------------------------------------------------------------------------------


def test_every_pair_ends_as_scored_skipped_error_or_timeout_and_a_failure_is_never_a_number() -> None:
    hang = threading.Event()

    @sg.metric(requires=["documents"])
    def needs_documents(documents: Any) -> int:
        return len(documents)

    @sg.metric
    def says_nothing(output: Any) -> None:
        return None

    @sg.metric
    def breaks(output: Any) -> float:
        raise ZeroDivisionError("by zero")

    @sg.metric
    def not_a_number(output: Any) -> float:
        return float("nan")

    @sg.metric(timeout=0.05)
    def hangs(output: Any) -> float:
        hang.wait(60)
        return 1.0

    @sg.metric(timeout=0.05)
    async def hangs_async(output: Any) -> float:
        await asyncio.Event().wait()
        return 1.0

    evaluators = [needs_documents, says_nothing, breaks, not_a_number, hangs, hangs_async, exact]
    try:
        results = sg.evaluate(ROWS[:1], by_alias, evaluators)
    finally:
        hang.set()
    found = {score.name: score for score in results.items[0].scores}
    assert list(found) == [one.name for one in evaluators]
    assert {name: str(score.outcome) for name, score in found.items()} == {
        "needs_documents": "skipped",
        "says_nothing": "skipped",
        "breaks": "error",
        "not_a_number": "error",
        "hangs": "timeout",
        "hangs_async": "timeout",
        "exact": "scored",
    }
    assert all((score.value is None) == (score.outcome != Outcome.SCORED) for score in found.values())
    assert found["needs_documents"].reason == "documents missing"
    assert (found["breaks"].error_type, found["breaks"].reason) == ("ZeroDivisionError", "by zero")
    assert found["hangs"].reason == "gave no result within 0.05 s"


def test_a_metric_that_hangs_on_every_item_is_given_up_and_said_not_waited_for_each_time() -> None:
    hang = threading.Event()

    @sg.metric(timeout=0.02)
    def hangs(output: Any) -> float:
        hang.wait(60)
        return 1.0

    try:
        results = sg.evaluate([f"q{n}" for n in range(40)], by_any_name, [hangs], concurrency=1)
    finally:
        hang.set()
    ends = [score.error_type for score in results.scores("hangs")]
    assert ends[:3] == ["timeout"] * 3
    assert set(ends[3:]) == {"paused"}
    assert "given up" in str(results.scores("hangs")[-1].reason)


def test_evaluator_timeout_stands_in_place_of_each_evaluators_own() -> None:
    hang = threading.Event()
    slow = sg.LocalMetric(lambda output: hang.wait(60), "slow", timeout=30)
    try:
        results = sg.evaluate(["q"], by_any_name, [slow], evaluator_timeout=0.05)
    finally:
        hang.set()
    assert results.scores("slow")[0].outcome == Outcome.TIMEOUT
    assert results.evaluators[0].name == "slow"


def test_a_metric_may_run_in_a_process_of_its_own_with_its_time_limit(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "apart_metrics.py").write_text(
        "import os\nimport time\nimport spangrade as sg\n\n"
        "@sg.metric(process=True)\ndef apart(sample):\n    return sg.Score(os.getpid(), explanation=sample.output)\n\n"
        "@sg.metric(process=True)\ndef spins(sample):\n    while True:\n        time.time()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    results = sg.evaluate(["q"], by_any_name, ["apart_metrics:apart"])
    (score,) = results.scores("apart")
    assert score.value not in (None, float(os.getpid()))
    assert score.explanation == "Q"
    (late,) = sg.evaluate(["q"], by_any_name, ["apart_metrics:spins"], evaluator_timeout=0.5).scores("spins")
    assert (late.outcome, late.value) == (Outcome.TIMEOUT, None)


def test_a_dict_of_scores_gives_one_result_each_and_a_bad_one_fails_alone() -> None:
    @sg.metric
    def several(output: str) -> dict[str, Any]:
        return {"length": len(output), "bad": float("inf"), "label": "short"}

    found = {s.name: s for s in sg.evaluate(["q"], by_any_name, [several]).items[0].scores}
    assert found["several.length"].value == 1.0
    assert found["several.label"].label == "short"
    assert found["several.bad"].outcome == Outcome.ERROR
    assert found["several.bad"].value is None


def test_a_judge_need_not_be_live_and_may_read_what_only_a_test_set_has() -> None:
    client = ScriptedJudgeClient(PASS)
    judge = sg.LlmJudge(
        "right", "It says what is expected.", scale="binary", fields=("output", "expected"), model="m"
    ).with_client(client)
    results = sg.evaluate(ROWS, by_alias, [judge], concurrency=1)
    assert [score.passed for score in results.scores("right")] == [True, True]
    assert "ONE" in client.requests[0].messages[-1].content
    record = results.evaluator("right")
    assert (record.kind, record.judge_model, record.threshold, bool(record.config_hash)) == ("llm", "m", 0.5, True)
    assert results.scores("right")[0].details["spangrade.judge.model"] == "m"


def test_a_live_policy_is_left_off() -> None:
    judge = sg.LlmJudge("j", "c", scale="binary", model="m").with_client(ScriptedJudgeClient(PASS))
    rare = sg.live(judge, rate=0.000001, when="overlap.fail", budget={"calls_per_day": 0})
    assert sg.evaluate(ROWS, by_alias, [rare]).summary()["j"].n == 2


def test_a_judge_that_fails_is_an_error_with_its_kind() -> None:
    judge = sg.LlmJudge("j", "c", scale="binary", model="m").with_client(ScriptedJudgeClient("gibberish"))
    score = sg.evaluate(ROWS[:1], by_alias, [judge]).scores("j")[0]
    assert (score.outcome, score.value, bool(score.error_type)) == (Outcome.ERROR, None, True)


def test_a_judge_without_a_model_is_refused_before_anything_runs() -> None:
    with pytest.raises(sg.ConfigError, match="has no model"):
        sg.evaluate(ROWS, by_alias, [sg.LlmJudge("j", "c")])


def test_evaluators_are_named_as_in_configure_and_one_alone_needs_no_list() -> None:
    assert sg.evaluate(ROWS, by_alias, "length_words").names() == ["length_words"]
    assert sg.evaluate(ROWS, by_alias, exact).names() == ["exact"]
    assert sg.evaluate(ROWS, by_alias, lambda output: 1).names() == ["<lambda>"]
    assert sg.evaluate(ROWS, by_alias).names() == []
    with pytest.raises(sg.ConfigError, match="two evaluators are named 'exact'"):
        sg.evaluate(ROWS, by_alias, [exact, exact])
    with pytest.raises(sg.ConfigError, match="nope"):
        sg.evaluate(ROWS, by_alias, ["nope"])


def test_a_metric_sees_the_item_as_a_sample() -> None:
    seen: list[sg.Sample] = []

    @sg.metric
    def look(sample: sg.Sample) -> None:
        seen.append(sample)

    sg.evaluate(ROWS, by_alias, [look], concurrency=1)
    second = seen[1]
    assert (second.input, second.output, second.expected, second.item_id) == ("two", "TWO", "2", "b")
    assert second.metadata["lang"] == "fr"
    assert len(second.trace_id or "") == 32


def test_fn_of_item_and_output_gets_the_dataset_item() -> None:
    @sg.metric
    def same(item: Any, output: str) -> bool:
        return bool(item["expected"] == output and item["metadata"] == {})

    assert [score.value for score in sg.evaluate(ROWS, by_alias, [same]).scores("same")] == [1.0, 0.0]


def test_an_output_is_graded_as_it_was_given_also_where_its_keys_look_like_secrets() -> None:
    rows = [{"input": "q", "expected": {"token": "abc"}}]
    results = sg.evaluate(rows, lambda q: {"token": "abc"}, [exact])
    assert results.scores("exact")[0].value == 1.0


# --- the run ------------------------------------------------------------------------------------------------------------


def test_items_stand_in_the_datasets_order_with_their_repeats_together_however_they_ended() -> None:
    gate = threading.Event()

    def task(text: str) -> str:
        if text == "q0":
            assert gate.wait(60)
        elif text == "q3":
            gate.set()
        return text

    results = sg.evaluate([{"id": f"{n}", "input": f"q{n}"} for n in range(4)], task, repeats=1, concurrency=4)
    assert [item.item_id for item in results.items] == ["0", "1", "2", "3"]
    again = sg.evaluate([{"id": f"{n}", "input": f"q{n}"} for n in range(2)], by_any_name, repeats=3)
    assert [(item.item_id, item.repeat) for item in again.items] == [(n, r) for n in "01" for r in range(3)]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_no_more_runs_are_under_way_than_concurrency_says_and_as_many_as_it_says(kind: str) -> None:
    lock, running, most = threading.Lock(), 0, 0
    full = threading.Event()

    def begin() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == 3:
                full.set()

    def end() -> None:
        nonlocal running
        with lock:
            running -= 1

    def task(text: str) -> str:
        begin()
        assert full.wait(60)
        end()
        return text

    async def task_async(text: str) -> str:
        begin()
        assert await asyncio.to_thread(full.wait, 60)
        end()
        return text

    sg.evaluate([f"q{n}" for n in range(9)], task if kind == "sync" else task_async, concurrency=3)
    assert most == 3


def test_it_works_inside_a_running_event_loop_and_aevaluate_runs_on_that_loop() -> None:
    loops: list[Any] = []

    async def task(text: str) -> str:
        loops.append(asyncio.get_running_loop())
        return text

    async def main() -> None:
        blocking = sg.evaluate(["q"], task, [exact])
        native = await sg.aevaluate(["q"], task, [exact])
        assert outputs(blocking) == outputs(native) == ["q"]
        assert loops[0] is not asyncio.get_running_loop()
        assert loops[1] is asyncio.get_running_loop()

    asyncio.run(main())


def test_aevaluate_lets_others_run_while_a_plain_task_blocks_its_thread() -> None:
    gate = threading.Event()

    def task(text: str) -> str:
        assert gate.wait(60)
        return text

    async def main() -> Results:
        running = asyncio.ensure_future(sg.aevaluate(["q"], task))
        await asyncio.sleep(0)
        gate.set()
        return await running

    assert outputs(asyncio.run(main())) == ["q"]


def test_aevaluate_that_is_cancelled_ends() -> None:
    async def main() -> None:
        begun = asyncio.Event()

        async def task(text: str) -> str:
            begun.set()
            await asyncio.Event().wait()
            return text

        running = asyncio.ensure_future(sg.aevaluate(["q", "r"], task, [exact]))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_ctrl_c_gives_what_was_done_until_then() -> None:
    import _thread

    ended = threading.Event()

    def task(text: str) -> str:
        if text == "q1":
            _thread.interrupt_main()
            ended.wait(60)
        return text

    with pytest.raises(EvaluationInterrupted) as caught:
        sg.evaluate(["q0", "q1", "q2"], task, [exact], concurrency=1)
    ended.set()
    results = caught.value.results
    assert isinstance(caught.value, KeyboardInterrupt)
    assert outputs(results) == ["q0"]
    assert results.run.interrupted
    assert "(interrupted)" in str(results)


def test_ctrl_c_stops_it_inside_a_running_event_loop_too() -> None:
    import _thread

    ended = threading.Event()
    found: list[Results] = []

    def task(text: str) -> str:
        if text == "q1":
            _thread.interrupt_main()
            ended.wait(60)
        return text

    async def main() -> None:
        try:
            sg.evaluate(["q0", "q1", "q2"], task, concurrency=1)
        except EvaluationInterrupted as stopped:
            found.append(stopped.results)
        finally:
            ended.set()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert outputs(found[0]) == ["q0"]


@pytest.mark.parametrize(
    "wrong",
    [{"concurrency": 0}, {"concurrency": True}, {"repeats": 1.5}, {"timeout": 0}, {"timeout": "1"}, {"evaluator_timeout": -1}, {"baseline": 3}, {"name": ""}, {"metadata": ["x"]}],
)  # fmt: skip
def test_settings_that_cannot_work_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(sg.ConfigError, match=next(iter(wrong))):
        sg.evaluate(ROWS, by_alias, [exact], **wrong)


@pytest.mark.parametrize("variable", ["SPANGRADE_SCORING", "SPANGRADE_DISABLED"])
def test_a_kill_switch_that_would_leave_nothing_scored_is_said(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "off" if variable == "SPANGRADE_SCORING" else "true")
    with pytest.raises(sg.ConfigError, match="switched off"):
        sg.evaluate(ROWS, by_alias, [exact])


def test_the_run_says_what_was_run_with_what_and_where() -> None:
    run = sg.evaluate(ROWS, by_alias, [exact], repeats=2, concurrency=3, metadata={"commit": "abc"}).run
    assert (run.name, run.task, run.dataset, run.dataset_items) == ("by_alias", "by_alias", "dataset", 2)
    assert (run.repeats, run.concurrency, dict(run.metadata), run.interrupted) == (2, 3, {"commit": "abc"}, False)
    assert run.spangrade == sg.__version__
    assert run.started.endswith("+00:00")
    assert len(run.dataset_hash) == 16


def test_what_evaluate_gives_is_saved_and_loaded_equal(tmp_path: Any) -> None:
    results = sg.evaluate(ROWS, by_alias, [exact, "overlap"])
    results.save(tmp_path / "r.json")
    loaded = Results.load(tmp_path / "r.json")
    assert loaded.items == results.items
    assert loaded == results


def test_a_baseline_is_compared_with_and_read_before_anything_runs(tmp_path: Any) -> None:
    before = sg.evaluate(ROWS, lambda q: "2", [exact])
    before.save(tmp_path / "base.json")
    after = sg.evaluate(ROWS, by_alias, [exact], baseline=tmp_path / "base.json")
    assert after.comparison["exact"].n == 2
    assert after.comparison["exact"].delta == 0.0

    def never(text: str) -> str:
        raise AssertionError

    with pytest.raises(sg.ConfigError, match="cannot be read"):
        sg.evaluate(ROWS, never, [exact], baseline=tmp_path / "gone.json")


def test_a_metric_whose_code_changed_under_the_same_version_is_warned_of_once() -> None:
    def first(output: Any) -> float:
        return 1.0

    def second(output: Any) -> float:
        return 0.5

    before = sg.evaluate(ROWS, by_alias, [sg.LocalMetric(first, "m")])
    with pytest.warns(SourceChanged, match="the code of m changed") as caught:
        sg.evaluate(ROWS, by_alias, [sg.LocalMetric(second, "m")], baseline=before)
    assert len(caught) == 1
    sg.evaluate(ROWS, by_alias, [sg.LocalMetric(first, "m")], baseline=before)
    sg.evaluate(ROWS, by_alias, [sg.LocalMetric(second, "m", config={"version": 2})], baseline=before)
