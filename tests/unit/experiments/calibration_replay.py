"""Judgements that were recorded of real models, answered again over HTTP to whoever asks about the same item.

The server finds what is graded inside the fences of the prompt with code of its own, looks it up among the recordings, and
gives the recorded judgement in the form that our judge asks for: ``{"reasoning": <what was recorded>, "score" or "verdict"}``.
The recordings had other forms (XML, "Output (a)", "[RESULT] 4"); nothing else of them is changed.
"""

import json
import re
import threading
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from tests.unit.judges.conftest import JudgeServer, Received, Reply, completion

DATA: Final = Path(__file__).resolve().parents[4] / "shared" / "data"
_FENCED: Final = re.compile(r"<<<([0-9a-f]{16}) (.+?)>>>\n(.*?)\n<<<\1 end of \2>>>", re.DOTALL)
_DOCUMENT: Final = re.compile(r"document \d+ of \d+")
_CHANGED: Final = re.compile(
    r"[<>\u2039\u203a\u226a\u226b]+|\[(?=/?INST)|\s+"
)  # what a prompt may show as something else


def recorded(path: str) -> Path:
    """A file of the shared data; the test is skipped where it is not there."""
    found = DATA / path
    if not found.is_file():
        pytest.skip(f"the recorded judgements are not beside this checkout: ../shared/data/{path}")
    return found


class Recording:
    """What a model said of each item, in the order in which it was asked."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, ...], list[Reply]] = defaultdict(list)
        self._asked: dict[tuple[str, ...], int] = defaultdict(int)
        self._lock = threading.Lock()
        self.unknown = 0

    def add(self, reply: Reply, output: str, input: str = "", documents: Sequence[str] = ()) -> None:  # noqa: A002
        self._said[_key(output, input, documents)].append(reply)

    def respond(self, received: Received) -> Reply:
        """The next of an item's recorded judgements; the last one again after that. 404 for an item that was not recorded."""
        pieces = [(name, text) for _, name, text in _FENCED.findall(received.body["messages"][1]["content"])]
        fields = dict(pieces)
        documents = [text for name, text in pieces if _DOCUMENT.fullmatch(name)]
        key = _key(fields.get("the output to grade", ""), fields.get("the input", ""), documents)
        with self._lock:
            said = self._said.get(key)
            if said is None:
                self.unknown += 1
                return Reply(404, {"error": {"message": "no such item was recorded"}})
            n = self._asked[key]
            self._asked[key] += 1
        return said[min(n, len(said) - 1)]

    def served(self) -> JudgeServer:
        return JudgeServer(respond=self.respond)


def verdict(reasoning: str, **said: Any) -> Reply:
    """A recorded judgement in the form that is asked for."""
    return completion(json.dumps({"reasoning": reasoning, **said}))


def _key(output: str, input: str, documents: Sequence[str]) -> tuple[str, ...]:  # noqa: A002
    return tuple(_CHANGED.sub("", text) for text in (output, input, *documents))


# --- WiCE: is a claim supported by the evidence? ---------------------------------------------------------------------

_CLAIM: Final = re.compile(r"<claim>(.*?)</claim>", re.DOTALL)
_SENTENCE: Final = re.compile(r"<sentence_(\d+)>(.*?)</sentence_\1>", re.DOTALL)
_ANSWER: Final = re.compile(r"<answer>\s*(supported|partially_supported|not_supported)\s*</answer>")
WICE_LEVELS: Final = {"supported": 5, "partially_supported": 3, "not_supported": 1}

#: People's labels of the 100 claims, in the order in which the recorded prompts ask about them: supported, partially, not. The
#: judgements are of WiCE's test split, and the shared data has the dev split's labels only. Annotations of the WiCE authors, under
#: ODC-BY 1.0: ryokamoi/wice, code_and_resources/entailment_inputs/oracle_chunks/claim/test.jsonl; their own count of these
#: hundred (label_distribution in test.entailment_score.evaluation.json) is 22, 73 and 5. 98 were read there; those of claims 73 and 87
#: could not be, and follow from that count, the authors' scores of GPT-4, and how often GPT-3.5 agrees: for these two (6 of
#: 300 judgements) the kappas that come out are no evidence of their own.
_WICE_PEOPLE: Final = (
    "PPPPSPPPSSPPPPPPSPPPPNPSSPPNPPNPPPPPSSPSPPPSPPPSPPSPPPSPPPPPPPPPPSPPPPPPPPPPPNPSPSPPPPNPSPPSSSPSSPPP"
)
_WICE_LETTERS: Final = {"S": "supported", "P": "partially_supported", "N": "not_supported"}


def wice_people(rows: Sequence[dict[str, Any]]) -> list[str]:
    """People's label for each of the 300 prompts: that of its claim."""
    claims = list(dict.fromkeys(row["claim"] for row in rows))
    labels = dict(zip(claims, (_WICE_LETTERS[letter] for letter in _WICE_PEOPLE), strict=True))
    return [labels[row["claim"]] for row in rows]


def wice_rows(model: str) -> list[dict[str, Any]]:
    """One for each of the 300 prompts: claim, evidence (sentences), indices, answer, and the whole response.

    The graded item is the last ``<input>`` of the prompt; those before it are its examples.
    """
    rows = []
    for line in recorded(f"wice/claim.{model}.raw.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        asked = row["prompt"][row["prompt"].rindex("<input>") :]
        sentences = _SENTENCE.findall(asked)
        answer = _ANSWER.search(row["response"])
        rows.append(
            {
                "claim": _CLAIM.findall(asked)[0],
                "evidence": [text for _, text in sentences],
                "indices": [int(index) for index, _ in sentences],
                "answer": answer[1] if answer else None,
                "response": row["response"],
            }
        )
    return rows


def wice_recording(rows: Sequence[dict[str, Any]], scale: str) -> Recording:
    """``binary``: supported passes, the other two fail. ``1-5``: not, partially and fully supported are 1, 3 and 5."""
    made = Recording()
    for row in rows:
        said = (
            {"score": WICE_LEVELS[row["answer"]]}
            if scale == "1-5"
            else {"verdict": _pass(row["answer"] == "supported")}
        )
        made.add(verdict(row["response"], **said), row["claim"], documents=["\n".join(row["evidence"])])
    return made


def wice_items(rows: Sequence[dict[str, Any]], labels: Sequence[str], scale: str) -> list[dict[str, Any]]:
    """The items as a labels' file has them; the three chunks of a claim have its claim as their cluster."""
    return [
        {
            "id": f"{n}",
            "output": row["claim"],
            "documents": ["\n".join(row["evidence"])],
            "metadata": {"claim": row["claim"]},
            "label": WICE_LEVELS[label] if scale == "1-5" else _pass(label == "supported"),
        }
        for n, (row, label) in enumerate(zip(rows, labels, strict=True))
    ]


# --- LLMBar: which of two outputs is the better? ---------------------------------------------------------------------


def llmbar_pairs(
    model: str, prompt: str, sets: Sequence[str] = ("Natural", "Adversarial_Manual")
) -> list[dict[str, Any]]:
    return [
        {**pair, "set": name}
        for name in sets
        for pair in json.loads(recorded(f"llmbar/{name}.{model}.{prompt}.json").read_text(encoding="utf-8"))
    ]


def llmbar_recording(pairs: Sequence[dict[str, Any]]) -> Recording:
    """Both outputs are the documents, the first is what is graded, and pass says that it is the better one.

    ``winner`` names the output (1 or 2) in either order; a judgement without one is answered as it was recorded.
    """
    made = Recording()
    for pair in pairs:
        both = [pair["output_1"], pair["output_2"]]
        for order, documents in (("swap = False", both), ("swap = True", both[::-1])):
            said = pair["results"][0][order]
            text = said["completion"][0]
            reply = completion(text) if said["winner"] is None else verdict(text, verdict=_pass(said["winner"] == "1"))
            made.add(reply, pair["output_1"], pair["input"], documents)
    return made


def llmbar_items(pairs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "id": f"{pair['set']}-{n}",
            "input": pair["input"],
            "output": pair["output_1"],
            "documents": [pair["output_1"], pair["output_2"]],
            "label": _pass(pair["label"] == 1),
        }
        for n, pair in enumerate(pairs)
    ]


# --- Prometheus: three judgements of each of 640 responses ------------------------------------------------------------

_RESPONSE: Final = "###Response to evaluate:\n"
_REFERENCE: Final = "###Reference Answer (Score 5):\n"


def prometheus_items(name: str) -> tuple[list[dict[str, Any]], Recording]:
    """Items (nobody labelled them, so the label is the first recorded score) and what was said of them three times."""
    items, made = [], Recording()
    for row in json.loads(recorded(f"prometheus/{name}.json").read_text(encoding="utf-8")):
        asked, rest = row["instruction"].split(_RESPONSE, 1)
        response = rest.split(_REFERENCE, 1)[0].strip()
        for score, feedback in zip(row["gpt4_score"], row["gpt4_feedback"], strict=True):
            made.add(verdict(feedback, score=score), response, asked)
        items.append({"id": f"{len(items)}", "input": asked, "output": response, "label": row["gpt4_score"][0]})
    return items, made


def _pass(passed: bool) -> str:
    return "pass" if passed else "fail"
