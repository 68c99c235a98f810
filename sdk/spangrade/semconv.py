"""Names on the wire, in one place.

The ``gen_ai.*`` constants are our own because the Python package's are marked as moved (the conventions left the core
repository in 2026). Source: open-telemetry/semantic-conventions-genai; ``openinference`` names: its specification 0.1.42.
"""

from typing import Final

# --- OpenTelemetry GenAI: spans -------------------------------------------------------------------------------------
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
LEGACY_SYSTEM: Final = "gen_ai.system"  # its name until conventions 1.37
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
AGENT_NAME: Final = "gen_ai.agent.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
RETRIEVAL_QUERY: Final = "gen_ai.retrieval.query.text"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
SESSION_ID: Final = "session.id"
USER_ID: Final = "user.id"
ERROR_TYPE: Final = "error.type"

# --- OpenTelemetry GenAI: the evaluation event ----------------------------------------------------------------------
EVALUATION_EVENT: Final = "gen_ai.evaluation.result"
EVALUATION_NAME: Final = "gen_ai.evaluation.name"
SCORE_VALUE: Final = "gen_ai.evaluation.score.value"
SCORE_LABEL: Final = "gen_ai.evaluation.score.label"
EXPLANATION: Final = "gen_ai.evaluation.explanation"
# Not in the conventions; read by Logfire's live evaluations (pydantic-evals writes them).
EVALUATION_TARGET: Final = "gen_ai.evaluation.target"
EVALUATOR_SOURCE: Final = "gen_ai.evaluation.evaluator.source"
EVALUATOR_VERSION: Final = "gen_ai.evaluation.evaluator.version"

# --- OpenInference ---------------------------------------------------------------------------------------------------
OI_KIND: Final = "openinference.span.kind"
OI_INPUT: Final = "input.value"
OI_INPUT_MIME: Final = "input.mime_type"
OI_OUTPUT: Final = "output.value"
OI_OUTPUT_MIME: Final = "output.mime_type"
OI_METADATA: Final = "metadata"
MIME_TEXT: Final = "text/plain"
MIME_JSON: Final = "application/json"

# --- Spangrade's own: on a traced call -------------------------------------------------------------------------------
CONTEXT: Final = "spangrade.context"  # JSON object given by set_context()
COMPLETE: Final = "spangrade.complete"  # true, on a process's entry span: what is below it has been told when it is
SCORED_BY: Final = "spangrade.scored_by"  # string[]: evaluators that somebody has taken, "name@confighash"
ENDED: Final = "spangrade.ended"  # how a call ended where it is no plain return: complete (a stream), closed, unconsumed, cancelled, error

# --- Spangrade's own: on every span of an experiment's run (by the first of them nobody scores it as traffic) -----------
EXPERIMENT_NAME: Final = "spangrade.experiment.name"
EXPERIMENT_DATASET: Final = "spangrade.experiment.dataset"
EXPERIMENT_ITEM: Final = "spangrade.experiment.item_id"
EXPERIMENT_REPEAT: Final = "spangrade.experiment.repeat"

# --- Spangrade's own: on a score --------------------------------------------------------------------------------------
SCORE_ID: Final = "spangrade.score.id"
EVALUATOR_NAME: Final = "spangrade.evaluator.name"
EVALUATOR_KIND: Final = "spangrade.evaluator.kind"
EVALUATOR_PATH: Final = "spangrade.evaluator.path"  # which leaf of a tree of metrics: "tree/branch/leaf"
CONFIG_HASH: Final = "spangrade.evaluator.config_hash"
PASSED: Final = "spangrade.passed"
THRESHOLD: Final = "spangrade.threshold"
LOWER_IS_BETTER: Final = "spangrade.lower_is_better"
PROBABILITY: Final = "spangrade.selection.probability"
SELECTION_REASON: Final = "spangrade.selection.reason"
TARGET: Final = "spangrade.target"
ASSEMBLY: Final = "spangrade.assembly"
VALUE_JSON: Final = "spangrade.value"
SCORE_METADATA: Final = "spangrade.metadata"
DURATION: Final = "spangrade.evaluator.duration"  # seconds, double
JUDGE_MODEL: Final = "spangrade.judge.model"
JUDGE_PROMPT_HASH: Final = "spangrade.judge.prompt_hash"
JUDGE_INPUT_TOKENS: Final = "spangrade.judge.input_tokens"
JUDGE_OUTPUT_TOKENS: Final = "spangrade.judge.output_tokens"
JUDGE_REPAIRS: Final = "spangrade.judge.repairs"  # replies that could not be read and were asked for once more
JUDGE_CACHED: Final = "spangrade.judge.cached"  # true: said of the same prompt before, and paid then
JUDGE_STAGE: Final = "spangrade.judge.stage"  # of a cascade: the one whose verdict this is, from 1
JUDGE_ESCALATED: Final = "spangrade.judge.escalated"  # string[]: why the stages before it were not believed
JUDGE_COST: Final = "spangrade.judge.cost"
JUDGE_COST_AT_MOST: Final = (
    "spangrade.judge.cost_at_most"  # in its place where a try gave no reply and may have been billed
)

SCOPE: Final = "spangrade"

# The first characters of every judge's system message: by them the extractor knows a judge's call in any telemetry,
# whoever traced it, and never scores it (promise 8, no echo).
JUDGE_MARKER: Final = "[spangrade-judge]"
