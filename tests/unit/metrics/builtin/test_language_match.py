"""`language_match`, with the real identifier; skipped where it cannot know."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from spangrade.errors import ConfigError
from spangrade.metrics.builtin import languages
from spangrade.metrics.builtin.language_match import language_match
from spangrade.model.score import Graded, Skip

pytest.importorskip("py3langid", reason="needs the extra local")

Grade = Callable[..., Graded]
EN = "How do I return a parcel?"
DE = "Wie lange dauert die Lieferung?"
EN_ANSWER = (
    "You can return the parcel within 14 days at any shop of ours. We send the money back within five working days."
)
DE_ANSWER = (
    "Sie können das Paket innerhalb von 14 Tagen in jedem Geschäft zurückgeben. Das Geld kommt in fünf Tagen zurück."
)


@pytest.mark.parametrize(
    ("question", "answer", "passed"),
    [
        (EN, EN_ANSWER, True),
        (EN, DE_ANSWER, False),
        (DE, DE_ANSWER, True),
        (DE, EN_ANSWER, False),
        ("¿Cuánto tarda el envío?", "El envío tarda tres días laborables.", True),
        ("Hvor lang tid tar det å få pakken?", "Pakka kjem innan tre yrkedagar, seinast på fredag.", True),
        ("東京の天気はどうですか", "東京は晴れです。気温は20度です。", True),
        ("東京の天気はどうですか", "It is sunny in Tokyo and it has 20 degrees.", False),
        ("你好，包裹什么时候到？", "您的包裹三天内到达。", True),
        (EN, {"answer": EN_ANSWER, "antwortdatum": "2024-01-01"}, True),
        (
            EN,
            f"{EN_ANSWER}\n```python\nfür_immer = lambda: print('Grüße aus München, meine Damen und Herren')\n```",
            True,
        ),
    ],
)
def test_the_answer_is_in_the_language_of_the_question_or_not(
    grade: Grade, question: str, answer: Any, passed: bool
) -> None:
    assert grade(language_match(), input=question, output=answer).passed is passed


def test_an_answer_that_changes_its_language_is_in_part_right(grade: Grade) -> None:
    score = grade(language_match(), input=EN, output=f"{EN_ANSWER} {DE_ANSWER}")
    assert score.value is not None
    assert 0.3 < score.value < 0.7
    assert score.passed is False
    assert "en " in (score.explanation or "")
    assert "de " in (score.explanation or "")


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        (EN, "ok", "the answer has too few letters"),
        (EN, "```\nprint(1)\n```", "the answer has too few letters"),
        (EN, "42", "the answer has too few letters"),
        ("ok?", EN_ANSWER, "the question has too few letters"),
        ("", EN_ANSWER, "input missing"),
        (EN, "", "output missing"),
        ("Translate this to French: the cat sleeps", "Le chat dort sur le tapis.", "asks for a translation"),
        ("Antworte bitte auf Englisch: was kostet das?", "It costs five euros and a bit.", "names a language"),
        (EN, "Smith, Jones, Müller, Garcia, Kowalski, Rossi", "cannot be told"),
        ("https://example.com/a/b/c?d=e", EN_ANSWER, "the question has too few letters"),
    ],
)
def test_it_is_skipped_where_it_cannot_know(grade: Grade, question: str, answer: str, reason: str) -> None:
    with pytest.raises(Skip, match=reason):
        grade(language_match(), input=question, output=answer)


@pytest.mark.parametrize(
    ("expected", "passed"),
    [
        ("de", True),
        ("de-AT", True),
        (["en", "de"], True),
        ("en", False),
        ("metadata.lang", True),
        (["context.locale"], True),
    ],
)
def test_the_language_can_be_told(grade: Grade, expected: Any, passed: bool) -> None:
    score = grade(
        language_match(expected=expected), output=DE_ANSWER, metadata={"lang": "de_CH"}, context={"locale": "de"}
    )
    assert score.passed is passed
    with pytest.raises(Skip, match=r"metadata\.tongue names no language"):
        grade(language_match(expected="metadata.tongue"), output=DE_ANSWER)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"expected": "german language"}, "is no language code"),
        ({"expected": []}, "expected is empty"),
        ({"threshold": 2}, "threshold 2 is not a number from 0 to 1"),
        ({"min_letters": 0}, "min_letters 0"),
        ({"min_confidence": "high"}, "min_confidence 'high'"),
    ],
)
def test_options_that_cannot_work_are_refused(options: Any, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        language_match(**options)


def test_threads_share_one_identifier_and_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "_identifier", None)
    barrier, seen, found = threading.Barrier(8), [], []

    def look() -> None:
        barrier.wait(10)
        found.append(languages.identify(DE_ANSWER))
        seen.append(id(languages._loaded()))

    threads = [threading.Thread(target=look) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(set(seen)) == 1
    assert len(set(found)) == 1


FORKED = """
import os
from spangrade.metrics.builtin import languages, pii_names

with languages._lock, pii_names._lock:
    child = os.fork()
    if child == 0:
        free = languages._lock.acquire(timeout=5) and pii_names._lock.acquire(timeout=5)
        os._exit(0 if free else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_a_model_loads_does_not_wait_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "0"


def test_an_application_that_narrows_its_own_identifier_changes_nothing(grade: Grade) -> None:
    import py3langid

    try:
        py3langid.set_languages(["fr", "it"])
        assert grade(language_match(), input=DE, output=DE_ANSWER).passed is True
    finally:
        py3langid.set_languages(None)


def test_without_the_extra_it_is_skipped_with_the_way_out(monkeypatch: pytest.MonkeyPatch, grade: Grade) -> None:
    monkeypatch.setattr(languages, "_identifier", None)
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(Skip, match=r'pip install "spangrade\[local\]"'):
        grade(language_match(), input=EN, output=EN_ANSWER)


@pytest.mark.parametrize("unit", ["a/", "`", "<", "a(", "a@", ".", "http://", "a. "])
def test_hostile_repetition_ends(grade: Grade, unit: str) -> None:
    try:
        grade(language_match(), input=EN, output=unit * (20_000 // len(unit)))
    except Skip:
        pass
