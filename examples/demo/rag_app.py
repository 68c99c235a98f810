"""A small RAG application: find support pages, put them in front of the model, return its answer.

Three lines in it are about Spangrade: the two `@sg.trace`, and `sg.set_retrieval_documents`. The rest is what such an
application looks like anyway.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

from openai import OpenAI

import spangrade as sg

DOCUMENTS_FOLDER = Path(__file__).with_name("documents")

INSTRUCTIONS = (
    "You answer customers of Lumen Lane, a maker of lamps. Answer in one short sentence, and only from the support "
    "pages. If they do not answer the question, say that you do not know."
)
NO_ANSWER = "I do not know the answer. Please ask our support team."


class Document(TypedDict):
    """A retrieved document in the form that `sg.set_retrieval_documents` takes."""

    id: str
    content: str
    score: float
    metadata: dict[str, str]


class Bm25:
    """Ranks texts by the words that they share with a query: rare words count more, and long texts count less."""

    SATURATION = 1.5
    LENGTH_PENALTY = 0.75

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        self._counts = {key: Counter(words(text)) for key, text in texts.items()}
        self._lengths = {key: counts.total() for key, counts in self._counts.items()}
        self._mean_length = sum(self._lengths.values()) / max(1, len(texts))
        self._texts_with = Counter(word for counts in self._counts.values() for word in counts)

    def search(self, query: str, top_k: int) -> list[tuple[str, float]]:
        """The best texts and their scores, best first, without those that share no word with the query."""
        terms = set(words(query))
        scored = [(key, self._score(key, terms)) for key in self._texts]
        scored = [(key, score) for key, score in scored if score > 0]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:top_k]

    def _score(self, key: str, terms: Iterable[str]) -> float:
        counts = self._counts[key]
        length = 1 - self.LENGTH_PENALTY + self.LENGTH_PENALTY * self._lengths[key] / self._mean_length
        total = 0.0
        for term in terms:
            found, containing = counts[term], self._texts_with[term]
            rarity = math.log(1 + (len(self._texts) - containing + 0.5) / (containing + 0.5))
            total += rarity * found * (self.SATURATION + 1) / (found + self.SATURATION * length)
        return total


def words(text: str) -> list[str]:
    """Lower-case words without their plural s, so that "refunds" finds "refund"."""
    return [word.removesuffix("s") for word in re.findall(r"[a-z0-9]+", text.lower())]


class SupportBot:
    """The application. `client` is an ordinary OpenAI client, pointed at whatever serves the model."""

    def __init__(self, client: OpenAI, model: str) -> None:
        self._client = client
        self._model = model
        self._pages = {file.stem: file.read_text(encoding="utf-8") for file in sorted(DOCUMENTS_FOLDER.glob("*.md"))}
        self._index = Bm25(self._pages)

    @sg.trace(name="retrieve", kind="retriever")
    def retrieve(self, question: str, top_k: int = 2) -> list[Document]:
        """The support pages that fit the question best."""
        return [
            Document(id=key, content=self._pages[key], score=round(score, 3), metadata={"source": f"{key}.md"})
            for key, score in self._index.search(question, top_k)
        ]

    @sg.trace(name="answer")
    def answer(self, question: str) -> str:
        """One question in, one answer out. This is the call whose span carries the scores."""
        documents = self.retrieve(question)
        sg.set_retrieval_documents(documents)
        pages = "\n\n".join(document["content"] for document in documents)
        completion = self._client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": f"Support pages:\n\n{pages}\n\nQuestion: {question}"},
            ],
            temperature=0.0,
            max_tokens=60,
            stop=["\n\n", "Question:"],  # a small model likes to go on with a question of its own
        )
        text = (completion.choices[0].message.content or "").strip()
        # A model this small sometimes writes nothing but list numbers. No customer should see that.
        return text if re.search("[A-Za-z]{2}", text) else NO_ANSWER
