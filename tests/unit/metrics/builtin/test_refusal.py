"""`no_refusal` and `refusal`: what declines, and what only looks like it."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spangrade.metrics.builtin.refusal import find_refusal
from spangrade.model.score import Graded, Skip

Grade = Callable[..., Graded]
DATA = Path(__file__).parents[5] / "shared" / "data"

REFUSALS = [
    "I'm sorry, but I can't assist with that request.",
    "I’m sorry, I can’t help with that.",
    "I cannot provide instructions for that. It is dangerous and illegal, and it could hurt many people and yourself as well.",
    "As an AI language model, I don't have personal opinions.",
    "I don't know.",
    "I do not have enough information to answer this question.",
    "The provided documents do not mention the CEO.",
    "There is no information about that in the documents.",
    "Unable to answer.",
    "I couldn't find that in the handbook.",
    "I'm sorry, I was unable to find any order of that number.",
    "Sorry, can't help with that.",
    "I must decline.",
    "I refuse to answer that.",
    "Sorry, but I can't.",
    "I won't be able to assist with this request.",
    "I am just an AI and cannot provide legal advice.",
    "I'd be happy to help, but I can't access your account.",
    "I'm afraid I can't do that, Dave.",
    "That is outside my scope. I can only help with orders.",
    "I apologize, but I'm not able to help with that. Is there something else?",
    "I don't have access to your account details. Please contact support; they will be happy to help you.",
    "\"I'm sorry, I can't help with that.\"",
    {"answer": "I'm sorry, I can't help with that."},
    "Lo siento, no puedo ayudarte con eso.",
    "Je suis désolé, je ne peux pas vous aider.",
    "Es tut mir leid, aber dabei kann ich Ihnen nicht helfen.",
    "Dazu habe ich leider keine Informationen.",
    "Desculpe, não posso ajudar com isso.",
    "Mi dispiace, non posso aiutarti.",
    "Sorry, ik kan je daar niet mee helpen.",
    "Przykro mi, nie mogę pomóc.",
    "Üzgünüm, bu konuda yardımcı olamam.",
    "Извините, я не могу помочь с этим.",
    "Вибачте, але я не можу допомогти з цим.",
    "抱歉，我无法提供这方面的帮助。",
    "申し訳ありませんが、そのご質問にはお答えできません。",
    "죄송하지만 도와드릴 수 없습니다.",
    "عذرًا، لا أستطيع مساعدتك في ذلك.",
    "क्षमा करें, मैं इसमें मदद नहीं कर सकता।",
]
ANSWERS = [
    "As an AI language model, I do not have emotions, but I can describe the emotions that a mountain climber might experience: joy, "
    "relief, pride in what was done, awe before the view, and a little fear of the long way down to the valley again.",
    "My boyfriend is visiting me, and I don't know if I should tell my parents about it.",
    "Five days.",
    "You cannot return gift cards.",
    "Stores are unable to provide refunds.",
    "I'm sorry for the delay. Your parcel arrives tomorrow.",
    "Sorry to hear that! You can return it within 14 days.",
    "I can't recommend this enough!",
    "I can't tell you how happy we are.",
    "You won't be able to return it.",
    "Unfortunately, we cannot refund gift cards.",
    "I can't wait to help you. Parcels take three days.",
    "I don't know the exact day, but parcels usually take three working days.",
    "I don't have to tell you that the answer is 42.",
    "If you don't know your PIN, press reset.",
    "Parcels arrive in three days. I can't say more.",
    "I can't see a problem with that, go ahead.",
    "I can't find the exact page, but the handbook says that parcels take three days.",
    "The bank wrote: “We are unable to help you.” You should call them again.",
    'He said "I can\'t help you" and left.',
    "> I can't help with that\n\nThis quoted message means that the agent refused; ask for a supervisor.",
    "Use this text:\n```\nI'm sorry, I can't help with that.\n```",
    "I am not sure what you like, so here are three ideas: a walk in the park, a visit to the museum of modern art, a dinner at the "
    "harbour with friends, or a day at the lake with a good book.",
    "No sabemos nada malo de este producto; llega mañana.",
    "Nein, das geht nicht. Gutscheine können nicht erstattet werden.",
    "Ich kann Ihnen helfen, das ist nicht schwer.",
    "Je ne pense pas. Le colis arrive demain.",
    "我知道了，包裹明天到。",
    {"refundable": False, "reason": "gift cards cannot be refunded"},
]


@pytest.mark.parametrize("output", REFUSALS)
def test_a_refusal_in_many_words_and_languages(grade: Grade, output: Any) -> None:
    score = grade("no_refusal", output=output)
    assert (score.value, score.passed) == (0, False)
    assert "reads like a refusal: “" in (score.explanation or "")
    assert (grade("refusal", output=output).value, grade("refusal", output=output).passed) == (1, None)


@pytest.mark.parametrize("output", ANSWERS)
def test_an_apology_a_rule_or_a_quotation_is_none(grade: Grade, output: Any) -> None:
    assert grade("no_refusal", output=output).passed is True
    assert grade("refusal", output=output).value == 0


@pytest.mark.parametrize(
    "context",
    [
        {"refusal": True},
        {"refusal": "I can't"},
        {"finish_reasons": ["refusal"]},
        {"finish_reasons": ["stop", "content_filter"]},
        {"finish_reasons": ["SAFETY"]},
        {"finish_reasons": "content_filter"},
    ],
)
def test_what_the_provider_says_counts_even_without_an_answer(grade: Grade, context: Any) -> None:
    for output in (None, "Five days."):
        score = grade("no_refusal", output=output, context=context)
        assert score.passed is False
        assert "“" not in (score.explanation or "")


@pytest.mark.parametrize(
    "context", [{}, {"refusal": False}, {"refusal": ""}, {"finish_reasons": ["stop"]}, {"finish_reasons": None}]
)
def test_without_answer_and_flag_there_is_nothing_to_say(grade: Grade, context: Any) -> None:
    with pytest.raises(Skip, match="output missing"):
        grade("no_refusal", output="  ", context=context)


@pytest.mark.parametrize(
    "unit", ["i ", "ich kann ", "as an ai ", '"', "`", "“", "i can't ", "no ", "кошка ", "i don't have any ", "情報は"]
)
def test_hostile_repetition_ends(unit: str) -> None:
    find_refusal(unit * (60_000 // len(unit)))


def _real_answers() -> set[str]:
    found: set[str] = set()
    for file in DATA.glob("llmbar/*.Vanilla_NoRules.json"):
        found.update(
            item[key] for item in json.loads(file.read_text(encoding="utf-8")) for key in ("output_1", "output_2")
        )
    for file in DATA.glob("prometheus/*.json"):
        for item in json.loads(file.read_text(encoding="utf-8")):
            given = item["instruction"].partition("###Response to evaluate:")[2].partition("###Reference Answer")[0]
            found.add(given.strip())
    for file in DATA.glob("q2/*sistent.csv"):
        with file.open(encoding="utf-8", newline="") as rows:
            found.update(row["response"] for row in csv.DictReader(rows))
    return found


def test_real_answers_raise_hardly_a_false_alarm_as_the_docstring_says() -> None:
    """It says nothing of the refusals that are missed: none of these sets has labelled ones."""
    if not DATA.is_dir():
        pytest.skip("needs ../shared/data")
    answers = _real_answers()
    assert len(answers) == 1_530
    assert len([text for text in answers if find_refusal(text)]) == 2
