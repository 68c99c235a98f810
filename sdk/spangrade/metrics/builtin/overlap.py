"""`overlap`: how much of the answer's wording stands in the documents.

What it measures: lexical support. For each sentence of the answer, the share of its content words (and pairs of
neighbouring ones) that occur in the retrieved documents; the score is the mean over sentences, weighted by their number
of content words. The explanation quotes the weakest sentence and the words that no document has.

What it does not: meaning. "Refunds are not possible" and "refunds are possible" score alike, a correct paraphrase
scores low, and a copied sentence scores high whether it answers the question or not. It needs no model and costs tens
of microseconds, so it can run on every call and choose which ones a judge reads.

Source: unigram and bigram precision of the answer against its source, as in ROUGE (Lin 2004) turned round.
"""

from itertools import pairwise
from typing import Final

from spangrade.metrics.builtin.text import STOPWORDS, as_text, content_words, sentences, stem, words
from spangrade.metrics.local import metric
from spangrade.model.sample import Sample
from spangrade.model.score import Score, Skip

MAX_ANSWER_CHARS: Final = 20_000
MAX_DOCUMENT_CHARS: Final = 200_000
_WORD_WEIGHT: Final = 0.7  # single words against pairs; pairs punish words that are all there but in another relation


def _grams(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    single = content_words(text)
    return single, list(pairwise(single))


def _unknown(word: str, source: set[str]) -> bool:
    return word not in STOPWORDS and stem(word) not in source


@metric(name="overlap", threshold=0.5, version=1, requires=("output", "documents"))
def overlap(sample: Sample) -> Score:
    """Lexical support of the answer in the documents, 0 to 1; passes at 0.5. See the module's docstring."""
    source_words: set[str] = set()
    source_pairs: set[tuple[str, str]] = set()
    left = MAX_DOCUMENT_CHARS
    for document in sample.documents:
        text = str(document.get("content") or "")[:left]
        left -= len(text)
        single, pairs = _grams(text)
        source_words.update(single)
        source_pairs.update(pairs)
    if not source_words:
        raise Skip("the documents have no text")
    total = weighted = 0.0
    weakest: tuple[float, str, list[str]] | None = None
    for sentence in sentences(as_text(sample.output)[:MAX_ANSWER_CHARS]):
        single, pairs = _grams(sentence)
        if not single:
            continue
        share = sum(word in source_words for word in single) / len(single)
        if pairs:
            share = _WORD_WEIGHT * share + (1 - _WORD_WEIGHT) * sum(pair in source_pairs for pair in pairs) / len(pairs)
        total += len(single)
        weighted += share * len(single)
        if weakest is None or share < weakest[0]:
            weakest = (
                share,
                sentence,
                [word for word in dict.fromkeys(words(sentence)) if _unknown(word, source_words)],
            )
    if weakest is None:
        raise Skip("the answer has no words to look for")
    share, sentence, unseen = weakest
    quote = sentence if len(sentence) <= 160 else sentence[:157] + "..."
    why = f"weakest sentence ({share:.2f}): “{quote}”"
    if unseen:
        why += f"; in no document: {', '.join(unseen[:8])}" + (
            f" and {len(unseen) - 8} more" if len(unseen) > 8 else ""
        )
    return Score(weighted / total, explanation=why)
