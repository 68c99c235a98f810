"""The recent samples: what is kept, what is not, and within which bounds."""

import threading
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangrade.errors import ConfigError
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import Outcome, ScoreRecord, SpanRef
from spangrade.model.sample import Sample
from spangrade.model.score import Graded
from spangrade.model.span import SpanData
from spangrade.samples.reading import Call, Reading
from spangrade_agent.page.records import size_of_results, size_of_sample
from spangrade_agent.page.texts import MARGIN, MAX_DOCUMENTS, MAX_TEXT
from spangrade_agent.store import SampleStore, StoredSample, sample_id

OVERLAP = EvaluatorInfo("overlap", "code", "2", "aaaa", threshold=0.5)
HELPFUL = EvaluatorInfo("helpful", "llm", "1", "bbbb", threshold=0.75)
Key = tuple[int, int, str]


class Clock:
    """Time stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def time_ns(self) -> int:
        return int(self.now * 1e9)


def begin(
    store: SampleStore,
    number: int,
    sample: Sample | None = None,
    evaluators: Sequence[EvaluatorInfo] = (OVERLAP, HELPFUL),
    *,
    partial: bool = False,
    name: str = "answer",
) -> Key:
    """Sample ``number`` comes in."""
    key = (number, number + 1, "root")
    span = SpanData(*key[:2], None, name, 1_000_000_000, 3_500_000_000, {}, resource={"service.name": "shop"})
    call = Call(span, Reading("test", kind="llm", model="small-model"))
    store.began(key, call, sample or Sample(f"question {number}", "answer"), evaluators, partial)
    assert store.flush(30)
    return key


def end(store: SampleStore, key: Key, info: EvaluatorInfo, *graded: Graded, **changed: Any) -> None:
    """``info`` has scored the sample."""
    ref = SpanRef(*key[:2], name="answer")
    records = [replace(ScoreRecord(ref, info, one, 5, duration_s=0.25), **changed) for one in graded]
    store.ended(key, info, Outcome.SCORED, "", records, changed.get("probability", 1.0))
    assert store.flush(30)


def end_bare(
    store: SampleStore, key: Key, info: EvaluatorInfo, outcome: Outcome, reason: str, *records: ScoreRecord
) -> None:
    """The pair has ended in another way."""
    store.ended(key, info, outcome, reason, records, 0.05)
    assert store.flush(30)


def only(store: SampleStore) -> StoredSample:
    """The one sample there is."""
    (sample,) = store.recent()
    return sample


def ids(samples: Sequence[StoredSample]) -> list[int]:
    """Sample numbers."""
    return [int(sample.trace_id, 16) for sample in samples]


# --- what is kept -------------------------------------------------------------------------------------------------------


def test_a_sample_says_where_it_comes_from_and_what_was_said() -> None:
    store = SampleStore()
    documents = [{"id": "d1", "content": "Three days.", "score": 0.5, "metadata": {"file": "a.md"}}, {"content": "x"}]
    key = begin(store, 7, Sample("When?", {"days": [3]}, documents=documents), partial=True)
    sample = only(store)
    assert sample == store.get(sample_id(key))
    assert (sample.trace_id, sample.span_id, sample.target) == (f"{7:032x}", f"{8:016x}", "root")
    assert (sample.service, sample.span_name, sample.kind, sample.model) == ("shop", "answer", "llm", "small-model")
    assert (sample.time_ns, sample.duration_s, sample.partial) == (3_500_000_000, 2.5, True)
    assert sample.input == "When?"
    assert sample.output == '{\n  "days": [\n    3\n  ]\n}'
    assert [(d.id, d.content, d.score, d.metadata) for d in sample.documents] == [
        ("d1", "Three days.", 0.5, '{\n  "file": "a.md"\n}'),
        (None, "x", None, None),
    ]
    assert [(r.evaluator, r.outcome) for r in sample.results] == [("overlap", "pending"), ("helpful", "pending")]


def test_a_score_brings_everything_that_promise_five_names() -> None:
    store = SampleStore()
    key = begin(store, 1)
    details = {"spangrade.judge.model": "m-2026", "spangrade.judge.input_tokens": 12, "odd": [1], "inf": float("inf")}
    graded = Graded("helpful", 0.25, "billing", False, "why", {"a": 1})
    end(store, key, HELPFUL, graded, probability=0.05, selection_reason="rate", details=details)
    pending, scored = only(store).results
    assert (pending.evaluator, pending.outcome) == ("overlap", "pending")
    assert (scored.value, scored.label, scored.passed, scored.explanation) == (0.25, "billing", False, "why")
    assert (scored.evaluator, scored.version, scored.kind, scored.config_hash) == ("helpful", "1", "llm", "bbbb")
    assert (scored.probability, scored.selection_reason, scored.judge_model) == (0.05, "rate", "m-2026")
    assert (scored.threshold, scored.lower_is_better, scored.duration_s) == (0.75, False, 0.25)
    assert scored.structured == '{\n  "a": 1\n}'
    assert dict(scored.details) == {"spangrade.judge.input_tokens": 12}
    assert len(scored.score_id or "") == 32


def test_several_scores_of_one_evaluator_stand_at_its_place() -> None:
    store = SampleStore()
    key = begin(store, 1)
    end(store, key, OVERLAP, Graded("overlap.a", 1.0), Graded("overlap.b", 0.0))
    assert [r.name for r in only(store).results] == ["overlap.a", "overlap.b", "helpful"]


def test_an_error_has_its_type_and_message_and_no_value() -> None:
    store = SampleStore()
    key = begin(store, 1)
    record = ScoreRecord(
        SpanRef(1, 2), OVERLAP, Graded("overlap", 1.0, "pass", True, "no key"), 5, error_type="KeyError"
    )
    end_bare(store, key, OVERLAP, Outcome.ERROR, "KeyError", record)
    result = only(store).results[0]
    assert (result.outcome, result.error_type, result.explanation) == ("error", "KeyError", "no key")
    assert (result.value, result.label, result.passed) == (None, None, None)


def test_of_several_scores_the_one_that_failed_is_shown_as_an_error_and_the_others_as_scores() -> None:
    store = SampleStore()
    key = begin(store, 1)
    ref = SpanRef(1, 2)
    good = ScoreRecord(ref, OVERLAP, Graded("overlap.a", 1.0, "pass", True), 5)
    bad = ScoreRecord(ref, OVERLAP, Graded("overlap.b", explanation="no key"), 5, error_type="KeyError")
    store.ended(key, OVERLAP, Outcome.SCORED, "", [good, bad], 1.0)
    assert store.flush(30)
    assert [(r.name, r.outcome, r.value, r.error_type) for r in only(store).results[:2]] == [
        ("overlap.a", "scored", 1.0, None),
        ("overlap.b", "error", None, "KeyError"),
    ]
    assert [s.id for s in store.recent(label="error")] == [only(store).id]


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.NOT_SAMPLED, Outcome.OVER_BUDGET, Outcome.DROPPED])
def test_an_end_without_a_score_is_told_too(outcome: Outcome) -> None:
    store = SampleStore()
    end_bare(store, begin(store, 1), HELPFUL, outcome, "why not")
    result = only(store).results[1]
    assert (result.outcome, result.reason, result.probability) == (outcome.value, "why not", 0.05)


def test_searched_and_found_nothing_differs_from_never_searched() -> None:
    store = SampleStore()
    begin(store, 1, Sample("q", "a"))
    begin(store, 2, Sample("q", "a", context={"searched": True}))
    assert [sample.searched for sample in store.recent()] == [True, False]


def test_a_span_that_was_sent_twice_keeps_its_place_and_its_results() -> None:
    store = SampleStore()
    key = begin(store, 1, evaluators=[OVERLAP])
    begin(store, 2)
    end(store, key, OVERLAP, Graded("overlap", 1.0))
    begin(store, 1, Sample("again", "a"))
    newest, oldest = store.recent()
    assert (newest.trace_id, oldest.input) == (f"{2:032x}", "again")
    assert [(r.evaluator, r.outcome) for r in oldest.results] == [("overlap", "scored"), ("helpful", "pending")]


def test_an_evaluator_that_nobody_announced_is_shown_at_the_end() -> None:
    store = SampleStore()
    end(store, begin(store, 1, evaluators=[OVERLAP]), HELPFUL, Graded("helpful", 1.0))
    assert [r.evaluator for r in only(store).results] == ["overlap", "helpful"]


def test_what_a_reader_holds_does_not_change() -> None:
    store = SampleStore()
    key = begin(store, 1)
    before = only(store)
    end(store, key, OVERLAP, Graded("overlap", 1.0))
    assert before.results[0].outcome == "pending"
    assert only(store).results[0].outcome == "scored"


# --- text ---------------------------------------------------------------------------------------------------------------

SECRET = "hunter2"


def hide(text: str) -> str:
    """A redact hook."""
    return text.replace(SECRET, "[redacted]")


def full_of_secrets(store: SampleStore) -> StoredSample:
    """A sample with the secret wherever a sample can have it."""
    document = {"id": SECRET, "content": SECRET, "metadata": {SECRET: [SECRET]}}
    sample = Sample({SECRET: SECRET}, f"it is {SECRET}", documents=[document])
    key = begin(store, 1, sample, name=f"for {SECRET}")
    details = {"note": SECRET}
    end(store, key, OVERLAP, Graded("overlap", 1.0, SECRET, True, f"because of {SECRET}", [SECRET]), details=details)
    record = ScoreRecord(SpanRef(1, 2), HELPFUL, Graded("helpful", explanation=f"bad {SECRET}"), 5, error_type="E")
    end_bare(store, key, HELPFUL, Outcome.ERROR, "E", record)
    return only(store)


def test_redaction_reaches_every_text() -> None:
    sample = full_of_secrets(SampleStore(redact=hide))
    assert SECRET not in str(asdict(sample))
    assert sample.output == "it is [redacted]"
    assert sample.results[0].explanation == "because of [redacted]"


def test_text_is_kept_as_it_is_where_the_configuration_says_so() -> None:
    store = SampleStore(content="keep", redact=hide)
    assert full_of_secrets(store).output == f"it is {SECRET}"
    assert store.keeps == "keep"


def test_the_store_says_when_there_is_nothing_that_redacts() -> None:
    assert SampleStore().keeps == "keep"
    assert SampleStore(redact=hide).keeps == "redacted"


def test_no_text_is_kept_where_none_is_wanted() -> None:
    sample = full_of_secrets(SampleStore(content="none", redact=hide))
    assert SECRET not in str(asdict(sample))
    assert (sample.input, sample.output, sample.documents, sample.documents_given) == (None, None, (), 1)
    assert [r.explanation for r in sample.results] == [None, None]
    assert [r.structured for r in sample.results] == [None, None]
    assert sample.results[0].value == 1.0


@pytest.mark.parametrize("offset", range(-8, 9))
def test_a_secret_at_a_cut_is_gone_whole(offset: int) -> None:
    """Wherever a cut is made, before or after redaction, no half of the secret is left."""
    for edge in (MAX_TEXT // 2, MAX_TEXT // 2 + MARGIN):
        at = edge + offset
        text = "x" * at + SECRET + "y" * 200_000 + SECRET + "z" * at
        store = SampleStore(redact=hide)
        begin(store, 1, Sample(text, "a"))
        kept = only(store).input or ""
        assert len(kept) < MAX_TEXT + 100
        assert not [half for half in ("hunt", "unte", "nter", "ter2") if half in kept]


def test_much_redaction_does_not_pull_the_cut_edge_into_view() -> None:
    """Redacted text is shorter, so what stood past the edge moves up; the margin is thrown away after redaction."""
    text = ("s" * 100) * 2_000
    store = SampleStore(redact=lambda given: given.replace("s" * 100, "r"))
    begin(store, 1, Sample(text, "a"))
    assert "ss" not in (only(store).input or "").replace("characters", "")


@pytest.mark.parametrize("hook", [lambda text: 1 / 0, lambda text: None])
def test_text_is_withheld_when_redaction_fails(hook: Callable[[str], Any], swallowed_faults: list[Any]) -> None:
    store = SampleStore(redact=hook)
    begin(store, 1, Sample("secret", "x" * 1_000_000))
    sample = only(store)
    assert sample.input == sample.output == "[redaction failed, text withheld]"
    swallowed_faults.clear()


def test_long_text_and_many_documents_are_cut_and_counted() -> None:
    store = SampleStore()
    begin(store, 1, Sample("x" * 1_000_000, "a", documents=[{"content": "y" * 50_000}] * 60))
    sample = only(store)
    assert "934464 characters cut" in (sample.input or "")
    assert (len(sample.documents), sample.documents_given) == (MAX_DOCUMENTS, 60)
    assert len(sample.documents[0].content or "") < 8_300


def test_lone_surrogates_are_replaced() -> None:
    store = SampleStore()
    bad = "a\ud83db"
    end(
        store,
        begin(store, 1, Sample(bad, {bad: bad}, documents=[{"content": bad}])),
        OVERLAP,
        Graded(bad, 1.0, bad, True, bad),
    )
    str(asdict(only(store))).encode()


# --- bounds -------------------------------------------------------------------------------------------------------------


def test_the_oldest_leave_when_there_are_too_many() -> None:
    store = SampleStore(max_samples=3)
    for number in range(1, 6):
        begin(store, number)
    assert ids(store.recent()) == [5, 4, 3]
    assert store.stats().left == {"count": 2}


def test_the_oldest_leave_when_there_is_too_much() -> None:
    one = SampleStore()
    begin(one, 1, Sample("x" * 1_000, "a"))
    store = SampleStore(max_bytes=one.stats().bytes * 3)
    for number in range(1, 6):
        begin(store, number, Sample("x" * 1_000, "a"))
    assert ids(store.recent()) == [5, 4, 3]
    assert store.stats().left == {"bytes": 2}


def test_a_late_explanation_counts_as_well() -> None:
    store = SampleStore(max_bytes=40_000)
    first, last = begin(store, 1), begin(store, 2)
    for key in (first, last):
        for info in (OVERLAP, HELPFUL):
            end(store, key, info, *(Graded(f"{info.name}.{i}", 1.0, explanation="e" * 8_000) for i in range(2)))
    assert ids(store.recent()) == [2]
    assert store.stats().bytes <= 40_000


def test_a_sample_that_is_too_large_alone_is_not_kept() -> None:
    store = SampleStore(max_bytes=2_000)
    begin(store, 1, Sample("x" * 10_000, "a"))
    assert store.stats() == replace(store.stats(), samples=0, bytes=0)


def test_old_samples_are_neither_shown_nor_held() -> None:
    clock = Clock()
    store = SampleStore(max_age_s=60, clock=clock)
    old = begin(store, 1)
    clock.now += 30
    begin(store, 2)
    clock.now += 30
    assert store.get(sample_id(old)) is None
    assert ids(store.recent()) == [2]
    clock.now += 30
    store.expire()
    assert store.stats() == replace(store.stats(), samples=0, bytes=0, left={"age": 2})


def test_a_sample_that_was_sent_twice_grows_no_younger() -> None:
    clock = Clock()
    store = SampleStore(max_age_s=60, clock=clock)
    begin(store, 1)
    begin(store, 2)
    clock.now += 50
    begin(store, 1)
    clock.now += 10
    assert store.recent() == []


def test_a_result_for_a_sample_that_has_left_brings_nothing_back() -> None:
    store = SampleStore(max_samples=1)
    gone = begin(store, 1)
    begin(store, 2)
    end(store, gone, OVERLAP, Graded("overlap", 1.0))
    end(store, (8, 9, "root"), OVERLAP, Graded("overlap", 1.0))
    assert ids(store.recent()) == [2]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"max_samples": 0}, "store.max_samples 0"),
        ({"max_bytes": -1}, "store.max_bytes -1"),
        ({"max_age_s": 0}, "store.max_age 0"),
        ({"content": "all"}, "store.content 'all'"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name(setting: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        SampleStore(**setting)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["began", "ended", "later"]), st.integers(1, 9), st.integers(0, 3_000)), max_size=60
    )
)
def test_the_bounds_hold_and_the_bytes_add_up_whatever_happens(steps: list[tuple[str, int, int]]) -> None:
    clock = Clock()
    store = SampleStore(max_samples=4, max_bytes=12_000, max_age_s=50, clock=clock)
    for step, number, length in steps:
        if step == "began":
            begin(store, number, Sample("x" * length, "a"))
        elif step == "ended":
            end(store, (number, number + 1, "root"), OVERLAP, Graded("overlap", 1.0, explanation="e" * length))
        else:
            clock.now += length / 100
        stats = store.stats()
        assert stats.samples <= 4
        assert stats.bytes <= 12_000
        assert stats.bytes == sum(size_of_sample(sample) + size_of_results(sample.results) for sample in store.recent())


def test_threads_do_not_lose_results_or_bytes() -> None:
    store = SampleStore(max_samples=50)
    start = threading.Barrier(4)

    def work(first: int) -> None:
        start.wait(10)
        for number in range(first, first + 100):
            key = begin(store, number)
            end(store, key, OVERLAP, Graded("overlap", 1.0))
            end(store, key, HELPFUL, Graded("helpful", 0.0))
            store.recent(5)

    threads = [threading.Thread(target=work, args=(n * 1_000 + 1,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    kept = store.recent(100)
    assert len(kept) == 50
    assert all(result.outcome == "scored" for sample in kept for result in sample.results)
    assert store.stats().bytes == sum(size_of_sample(sample) + size_of_results(sample.results) for sample in kept)
    assert store.stats().left == {"count": 350}


def test_what_is_counted_is_about_what_is_used() -> None:
    store = SampleStore(content="redacted", redact=lambda text: (text + " ")[:-1])  # texts of the store's own
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1, 301):
            documents = [{"id": f"d{number}", "content": f"{number} " * 200}] * 2
            key = begin(store, number, Sample(f"{number} " * 50, f"{number} " * 150, documents=documents))
            end(store, key, OVERLAP, Graded("overlap", 0.5, "pass", True, f"{number} because " * 20))
        used = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.9 < store.stats().bytes / used < 1.3


# --- the store's own thread ---------------------------------------------------------------------------------------------


class SlowHook:
    """A redact hook that hangs until it is let go, as a bad pattern does."""

    def __init__(self) -> None:
        self.entered, self.go = threading.Event(), threading.Event()

    def __call__(self, text: str) -> str:
        self.entered.set()
        assert self.go.wait(30)
        return text


def give(store: SampleStore, number: int, sample: Sample) -> Key:
    """As `begin`, without waiting."""
    key = (number, number + 1, "root")
    span = SpanData(*key[:2], None, "answer", 0, 1, {})
    store.began(key, Call(span, Reading("test", kind="llm")), sample, [OVERLAP])
    return key


def test_a_redact_hook_that_hangs_holds_up_nobody_else() -> None:
    hook = SlowHook()
    store = SampleStore(redact=hook)
    key = give(store, 1, Sample("q", "a"))
    assert hook.entered.wait(30)
    store.ended(key, OVERLAP, Outcome.SKIPPED, "documents missing", [], 1.0)
    assert store.recent() == []
    assert store.flush(0.0) is False
    hook.go.set()
    assert store.flush(30)
    assert [r.reason for r in only(store).results] == ["documents missing"]


def test_what_waits_is_bounded_and_what_is_refused_is_counted() -> None:
    hook = SlowHook()
    store = SampleStore(redact=hook)
    give(store, 1, Sample("q", "a"))
    assert hook.entered.wait(30)
    given_up = [give(store, number, Sample("x" * 1_000_000, "a")) for number in range(2, 32)][-1]
    store.ended(given_up, OVERLAP, Outcome.SKIPPED, "why", [], 1.0)
    hook.go.set()
    assert store.flush(30)
    stats = store.stats()
    assert stats.samples + stats.left["busy"] == 31
    assert 14 <= stats.left["busy"] <= 16
    assert store.get(sample_id(given_up)) is None
    begin(store, 99, Sample("x" * 10_000_000, "a"))
    begin(store, 100, Sample("x" * 10_000_000, "a"))  # the room is free again
    assert ids(store.recent(2)) == [100, 99]


def test_the_ends_of_pairs_that_wait_are_bounded_too() -> None:
    hook = SlowHook()
    store = SampleStore(redact=hook)
    key = give(store, 1, Sample("q", "a"))
    assert hook.entered.wait(30)
    graded = Graded("overlap", 1.0, explanation="x" * 1_000_000)
    record = ScoreRecord(SpanRef(*key[:2], name="answer"), OVERLAP, graded, 5, duration_s=0.25)
    for _ in range(60):
        store.ended(key, OVERLAP, Outcome.SCORED, "", [record], 1.0)
    hook.go.set()
    assert store.flush(30)
    assert 25 <= store.stats().left["busy_results"] <= 30
    assert [r.outcome for r in only(store).results] == ["scored"]


def test_after_the_end_nothing_is_taken_and_everything_can_be_read() -> None:
    store = SampleStore()
    begin(store, 1)
    give(store, 2, Sample("q", "a"))
    assert store.close(30)
    give(store, 3, Sample("q", "a"))
    assert store.close(30)
    assert ids(store.recent()) == [2, 1]
    assert store.stats().left == {"busy": 1}


def test_a_store_that_nobody_used_ends_at_once() -> None:
    store = SampleStore()
    assert store.flush(0.0)
    assert store.close(0.0)


# --- asking -------------------------------------------------------------------------------------------------------------


def test_pages_follow_each_other_without_a_gap() -> None:
    store = SampleStore()
    for number in range(1, 8):
        begin(store, number)
    seen: list[int] = []
    before = None
    while page := store.recent(limit=3, before=before):
        seen += ids(page)
        before = page[-1].id
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    assert store.recent(before="never was here") == []


def test_samples_are_found_by_evaluator_and_by_what_it_said() -> None:
    store = SampleStore()
    end(store, begin(store, 1), OVERLAP, Graded("overlap", 0.1, "fail", False))
    end(store, begin(store, 2), HELPFUL, Graded("helpful", 0.9, "billing", True))
    end_bare(store, begin(store, 3, evaluators=[OVERLAP]), OVERLAP, Outcome.ERROR, "E")
    assert ids(store.recent(evaluator="overlap")) == [3, 2, 1]
    assert ids(store.recent(evaluator="helpful")) == [2, 1]
    assert ids(store.recent(label="fail")) == [1]
    assert ids(store.recent(label="pass")) == [2]
    assert ids(store.recent(label="billing")) == [2]
    assert ids(store.recent(label="error")) == [3]
    assert ids(store.recent(evaluator="helpful", label="fail")) == []
    assert ids(store.recent(evaluator="overlap", label="pending")) == [2]
    assert store.recent(evaluator="unknown") == []
