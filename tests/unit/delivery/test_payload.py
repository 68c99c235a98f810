"""What is sent of a score."""

from dataclasses import replace

from spangrade import semconv as s
from spangrade.delivery.payload import attributes_of, summary
from spangrade.model.evaluator import EvaluatorInfo
from spangrade.model.outcome import ScoreRecord, SpanRef
from spangrade.model.score import Graded, Rule

REF = SpanRef(1, 2, name="answer", end_ns=5, response_id="r-1", session_id="s-1")
INFO = EvaluatorInfo("overlap", "code", "3", "abcd", threshold=0.5, target="root")
RECORD = ScoreRecord(REF, INFO, Graded("overlap", 0.75, "pass", True, "why"), 9, 0.25, "rate", duration_s=0.01)


def test_every_part_of_promise_five_is_there() -> None:
    found = attributes_of(RECORD)
    assert found[s.EVALUATION_NAME] == "overlap"
    assert found[s.SCORE_VALUE] == 0.75
    assert found[s.SCORE_LABEL] == "pass"
    assert found[s.PASSED] is True
    assert found[s.EXPLANATION] == "why"
    assert found[s.RESPONSE_ID] == "r-1"
    assert found[s.EVALUATOR_VERSION] == "3"
    assert found[s.EVALUATOR_KIND] == "code"
    assert found[s.CONFIG_HASH] == "abcd"
    assert found[s.THRESHOLD] == 0.5
    assert found[s.PROBABILITY] == 0.25
    assert found[s.TARGET] == "root"
    assert len(found[s.SCORE_ID]) == 32
    assert s.ERROR_TYPE not in found


def test_an_error_has_a_type_and_neither_value_nor_label() -> None:
    found = attributes_of(replace(RECORD, error_type="ValueError"))
    assert found[s.ERROR_TYPE] == "ValueError"
    assert not {s.SCORE_VALUE, s.SCORE_LABEL, s.PASSED} & set(found)
    assert summary(replace(RECORD, error_type="ValueError")) == "evaluation: overlap failed (ValueError)"


def test_a_category_is_the_label_with_the_verdict_beside_it() -> None:
    found = attributes_of(replace(RECORD, graded=Graded("topic", 0.9, "billing", True)))
    assert (found[s.SCORE_LABEL], found[s.PASSED]) == ("billing", True)


def test_a_structured_value_goes_as_json() -> None:
    found = attributes_of(replace(RECORD, graded=Graded("m", structured={"a": [1, None]})))
    assert found[s.VALUE_JSON] == '{"a":[1,null]}'


def test_the_score_id_is_the_same_in_every_resend_and_differs_by_what_identifies_it() -> None:
    same = replace(RECORD, time_ns=99, graded=Graded("overlap", 0.1), probability=1.0)
    assert same.score_id == RECORD.score_id
    others = [
        replace(RECORD, span=replace(REF, span_id=3)),
        replace(RECORD, evaluator=replace(INFO, version="4")),
        replace(RECORD, evaluator=replace(INFO, config_hash="ffff")),
        replace(RECORD, graded=Graded("overlap.b", 0.75)),
    ]
    assert len({RECORD.score_id, *(o.score_id for o in others)}) == 5


def test_lone_surrogates_and_huge_explanations_do_not_leave() -> None:
    found = attributes_of(replace(RECORD, graded=Graded("m", 1.0, explanation="\ud83d" + "x" * 2_000_000)))
    found[s.EXPLANATION].encode()
    assert len(found[s.EXPLANATION]) < 9_000


def test_a_leaf_of_a_tree_says_where_it_stands_and_its_own_threshold_and_direction() -> None:
    leaf = Graded("quality.words", 9.0, "pass", True, path="quality/style/words", rule=Rule(20, True, True))
    found = attributes_of(replace(RECORD, graded=leaf))
    assert found[s.EVALUATOR_PATH] == "quality/style/words"
    assert (found[s.THRESHOLD], found[s.LOWER_IS_BETTER]) == (20.0, True)
    bare = attributes_of(replace(RECORD, graded=replace(leaf, rule=Rule(None, False, True))))
    assert not {s.THRESHOLD, s.LOWER_IS_BETTER} & set(bare)
    assert attributes_of(RECORD)[s.THRESHOLD] == 0.5  # what is shared by an evaluator's scores is as it was
    assert s.EVALUATOR_PATH not in attributes_of(RECORD)
