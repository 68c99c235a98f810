"""`overlap`: how much of the answer's wording stands in the documents.

What it measures: lexical support. For each sentence of the answer, the share of its content words (and pairs of
neighbouring ones) that occur in the retrieved documents; the score is the mean over sentences, weighted by their number
of content words. The explanation quotes the weakest sentence and the words that no document has.

What it does not: meaning. "Refunds are not possible" and "refunds are possible" score alike, a correct paraphrase
scores low, and a copied sentence scores high whether it answers the question or not. Where it must be right about
meaning, use `groundedness` or a judge. It needs no model, so it can run on every call and choose which ones a judge
reads. Scripts without spaces between words (Chinese, Japanese, Thai) are compared by pairs of characters; the values
in a JSON answer are compared, its keys are not, nor are citation markers such as [1]; a number counts as a word with its decimals. The first 20,000
characters of an answer and 200,000 of the documents are read. Without documents it is *skipped*, also after a search
that found none: there is no wording to compare with. (`groundedness` says 0 there: that nothing bears the answer out is
its subject.)

Threshold 0.5: at least half of what the answer says, weighted, is worded as a document words it. It is a tripwire, not
a fitted threshold; on the labelled set q2 (dialogue) such a measure has an AUROC of about 0.74.

Source: unigram and bigram precision of the answer against its source, as in ROUGE (Lin 2004) turned round.
"""

import re
from itertools import pairwise
from typing import Final

from spangrade.metrics.builtin.text import document_texts, prose, quoted
from spangrade.metrics.builtin.words import STOPWORDS, content_words, sentences, stem, words
from spangrade.metrics.local import metric
from spangrade.model.sample import Sample
from spangrade.model.score import Score, Skip

MAX_ANSWER_CHARS: Final = 20_000
MAX_DOCUMENT_CHARS: Final = 200_000
_WORD_WEIGHT: Final = 0.7  # single words against pairs; pairs punish words that are all there but in another relation
# The numbers of citations are no words of the answer.
_MARKER: Final = re.compile(r" ?(?:\[\^?\d{1,3}(?:\s?[,;–-]\s?\d{1,3}){0,20}\]|【[^【】\n]{1,80}】)")


class Source:
    """Words and pairs of neighbouring words of some texts."""

    def __init__(self, texts: list[str], limit: int = MAX_DOCUMENT_CHARS) -> None:
        self.words: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        for text in texts:
            if limit <= 0:
                break
            single = content_words(text[:limit])
            limit -= len(text)
            self.words.update(single)
            self.pairs.update(pairwise(single))

    def support(self, sentence: str) -> tuple[float, int] | None:
        """``(share, content words)`` of a sentence: how much of it stands here, 0 to 1. None when it has no content word."""
        single = content_words(sentence)
        if not single:
            return None
        share = sum(map(self.words.__contains__, single)) / len(single)
        if len(single) > 1:
            shared = sum(map(self.pairs.__contains__, pairwise(single))) / (len(single) - 1)
            share = _WORD_WEIGHT * share + (1 - _WORD_WEIGHT) * shared
        return share, len(single)

    def unknown(self, sentence: str) -> list[str]:
        """The sentence's words that stand nowhere here, each once, in order."""
        return [w for w in dict.fromkeys(words(sentence)) if w not in STOPWORDS and stem(w) not in self.words]


@metric(name="overlap", threshold=0.5, version=1, requires=("output", "documents"))
def overlap(sample: Sample) -> Score:
    """Lexical support of the answer in the documents, 0 to 1; passes at 0.5. See the module's docstring."""
    source = Source(document_texts(sample.documents))
    if not source.words:
        raise Skip("the documents have no text")
    total, weighted = 0, 0.0
    weakest: tuple[float, str] | None = None
    for sentence in sentences(_MARKER.sub("", prose(sample.output)[:MAX_ANSWER_CHARS])):
        found = source.support(sentence)
        if found is None:
            continue
        share, count = found
        total += count
        weighted += share * count
        if weakest is None or share < weakest[0]:
            weakest = share, sentence
    if weakest is None:
        raise Skip("the answer has no words to look for")
    why = f"weakest sentence ({weakest[0]:.2f}): {quoted(weakest[1])}"
    unseen = source.unknown(weakest[1])
    if unseen:
        more = f" and {len(unseen) - 8} more" if len(unseen) > 8 else ""
        why += f"; in no document: {', '.join(word[:40] for word in unseen[:8])}{more}"
    return Score(min(weighted / total, 1.0), explanation=why)
