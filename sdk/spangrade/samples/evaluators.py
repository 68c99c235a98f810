"""Evaluator traffic of libraries that are no dialect: how their own spans can be told by an attribute.

What dialects say of evaluators stands in their ``kind_marks`` (OpenInference EVALUATOR, which Phoenix evals write;
``gen_ai.operation.name`` evaluation; Langfuse, MLflow, TruLens; our own experiments). A library whose evaluators leave no
mark (deepeval's metrics call a model like anybody else) is known only by a span around them that says so.
"""

from collections.abc import Mapping
from typing import Final

from spangrade.samples.dialects.base import EVALUATOR, KindMark

MARKS: Final[Mapping[str, KindMark]] = {
    # Pydantic Evals, of a dataset's cases and of live evaluations (pydantic_evals/evaluators/_run_evaluator.py).
    "logfire.msg_template": KindMark(
        {"evaluator: {evaluator_name}": EVALUATOR, "calling evaluator: {evaluator_name}": EVALUATOR}
    ),
    # Ragas, whose runs are LangChain runs with this metadata (ragas/callbacks.py, ChainType), as OpenInference writes it.
    "metadata": KindMark(
        prefixes=tuple((f'{{"type": "chaintype.{kind}', EVALUATOR) for kind in ("evaluation", "metric", "row", "ragas"))
    ),
}
