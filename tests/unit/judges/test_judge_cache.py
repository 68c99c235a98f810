"""A judge with a cache asks once about a prompt, and its scores say so."""

import threading

import pytest

import spangrade as sg
from spangrade import semconv as s
from spangrade.errors import JudgeError
from spangrade.judges.cache import Cache
from spangrade.judges.grading import Grading
from spangrade.model.sample import FrozenDict

from .test_cascade import DOWN, judge

SAMPLE = sg.Sample(input="q", output="a")


def test_the_same_prompt_is_graded_once_and_the_second_score_is_marked_and_free() -> None:
    made, client = judge("helpful", 4)
    cached = made.with_cache()
    first, second = cached.evaluate(SAMPLE), cached.evaluate(SAMPLE)
    assert client.asked == 1
    assert first.scores == second.scores
    assert s.JUDGE_CACHED not in first.details
    assert second.details[s.JUDGE_CACHED] is True
    assert second.details[s.JUDGE_PROMPT_HASH] == first.details[s.JUDGE_PROMPT_HASH]
    assert second.details[s.JUDGE_MODEL] == "m-helpful-1"
    assert s.JUDGE_INPUT_TOKENS not in second.details
    assert cached.info.config_hash == made.info.config_hash


def test_another_sample_or_model_or_scale_is_asked_about() -> None:
    made, client = judge("helpful", 4)
    cached = made.with_cache()
    cached.evaluate(SAMPLE)
    cached.evaluate(sg.Sample(input="q", output="b"))
    sg.LlmJudge("helpful", "It helps.", model="other").with_client(client).with_cache().evaluate(SAMPLE)
    assert client.asked == 3


def test_it_is_off_by_default_and_a_preview_asks_again() -> None:
    made, client = judge("helpful", 4)
    for _ in range(2):
        made.evaluate(SAMPLE)
    cached = made.with_cache()
    cached.evaluate(SAMPLE)
    assert cached.preview(input="q", output="a").score == 0.75
    assert client.asked == 4


def test_an_error_is_not_kept() -> None:
    made, client = judge("helpful", DOWN)
    cached = made.with_cache()
    for _ in range(2):
        with pytest.raises(JudgeError):
            cached.evaluate(SAMPLE)
    client.what = 5
    assert cached.evaluate(SAMPLE).scores[0].value == 1.0
    assert client.asked == 3


def test_it_is_bounded_and_forgets_the_least_recently_used_and_the_old() -> None:
    now = [0.0]
    cache = Cache(2, max_age=10, clock=lambda: now[0])
    grading = Grading(1.0, "", FrozenDict())
    cache.put("a", grading)
    cache.put("b", grading)
    assert cache.get("a") is not None
    cache.put("c", grading)
    assert len(cache) == 2
    assert cache.get("b") is None
    now[0] = 11
    assert cache.get("a") is None
    assert len(cache) == 1


def test_threads_share_it() -> None:
    made, client = judge("helpful", 4)
    cached = made.with_cache(10)
    cached.evaluate(SAMPLE)
    threads = [threading.Thread(target=cached.evaluate, args=(SAMPLE,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.asked == 1


@pytest.mark.parametrize("entries", [0, -1, True, "many"])
def test_a_cache_of_nothing_is_refused(entries: object) -> None:
    with pytest.raises(sg.ConfigError, match=r"cache .* is not a number of entries"):
        sg.LlmJudge("helpful", "It helps.").with_cache(entries)  # type: ignore[arg-type]
