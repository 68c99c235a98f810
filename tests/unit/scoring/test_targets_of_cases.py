"""Cases from the field (../shared/cases) of what is scored how often: C066, C070, C083, C056, C093; in both hosts the same."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spangrade.model.outcome import Outcome
from spangrade.model.sample import Sample
from spangrade.model.span import SpanData
from spangrade.samples.dialects import DIALECTS

from .hosts import HOSTS, Seen

Scored = Callable[[str, Any], dict[str, list[Sample]]]


def case(name: str) -> dict[int, list[SpanData]]:
    """The spans of a case file by trace; the test is skipped where the file is not there."""
    helper = Path(__file__).parents[1] / "samples" / "otlp_json.py"
    spec = importlib.util.spec_from_file_location("targets_otlp_json", helper)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    traces: dict[int, list[SpanData]] = {}
    for span in module.case_spans(name).values():
        traces.setdefault(span.trace_id, []).append(span)
    return traces


@pytest.fixture
def scored(harness: Any) -> Scored:
    """The samples of all traces of a case by their span's name, the same in both hosts and in every order."""

    def run(name: str, target: Any) -> dict[str, list[Sample]]:
        found: list[list[Sample]] = []
        for host in HOSTS:
            samples: list[Sample] = []
            for trace in case(name).values():
                seen = Seen(target)
                h = harness(seen.metric)
                host(h, trace)
                assert h.counts("seen").of(Outcome.SCORED) == h.counts("seen").met
                samples += sorted(
                    seen.samples, key=lambda sample: (str(sample.context["span_name"]), str(sample.output))
                )
            found.append(samples)
        for other in found[1:]:
            assert other == found[0]
        by_name: dict[str, list[Sample]] = {}
        for sample in found[0]:
            by_name.setdefault(sample.context["span_name"], []).append(sample)
        return by_name

    return run


@pytest.mark.skipif(all(d.name != "vercel" for d in DIALECTS), reason="the Vercel AI SDK's dialect is not there yet")
@pytest.mark.parametrize("target", ["root", "llm"])
def test_c066_a_wrapper_and_what_it_wraps_are_one_sample(scored: Scored, target: str) -> None:
    """Its tokens once."""
    found = scored("C066", target)
    wrapped = [s for name, some in found.items() if name.startswith("ai.generateText") for s in some]
    assert len(wrapped) == 1
    (sample,) = wrapped
    assert (sample.input, sample.output) == ("Hi", "Hello there")
    assert sample.context["usage"] == {"input_tokens": 9, "output_tokens": 2}


def test_c070_an_agent_is_one_root_and_its_doubled_call_one_call(scored: Scored) -> None:
    (root,) = [sample for some in scored("C070", "root").values() for sample in some]
    assert root.context["usage"] == {"input_tokens": 113, "output_tokens": 11}
    calls = scored("C070", "llm")
    assert [sample.output for sample in calls["chat m"]] == ["Hello", "Hello again"]
    assert "ChatCompletion" not in calls
    assert calls["chat m"][1].context["usage"] == {"input_tokens": 57, "output_tokens": 6}


@pytest.mark.parametrize("target", ["root", "llm", "chain", "name = *"])
def test_c083_only_the_answer_is_scored(scored: Scored, target: str) -> None:
    """Nothing of a judge, whoever runs it, and nothing below one."""
    assert sorted(scored("C083", target)) == ([] if target == "llm" else ["answer"])


def test_c056_each_retrieval_is_one_and_the_answer_has_the_last_ones_documents(scored: Scored) -> None:
    (root,) = scored("C056", "root")["rag"]
    assert [document["content"] for document in root.documents] == ["type F"]
    assert root.documents[0]["score"] == 0.99
    assert [one["name"] for one in root.context["retrievals"]] == ["ensemble", "bm25", "vector"]
    (chat,) = scored("C056", "llm")["chat"]
    assert chat.documents == root.documents
    assert sorted(scored("C056", "retriever")) == ["bm25", "ensemble", "vector"]
    (rerank,) = scored("C056", "reranker")["rerank"]
    assert rerank.documents == root.documents


def test_c093_parts_of_two_services_in_any_order_are_one_sample(harness: Any) -> None:
    """In the agent: the file does not say which parents are remote, so all of it is one process."""
    for host in HOSTS[1:]:
        for trace in case("C093").values():
            seen = Seen("root")
            host(harness(seen.metric), trace)
            (sample,) = seen.samples
            if sample.input != "alone":
                assert (sample.output, [d["content"] for d in sample.documents]) == ("Type F.", ["type F"])
