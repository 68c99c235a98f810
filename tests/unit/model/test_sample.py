"""A `Sample` is a snapshot that nobody can change."""

import pytest

from spangrade.model.sample import FrozenDict, FrozenList, Sample, thaw


def test_a_sample_is_a_snapshot_all_the_way_down() -> None:
    given_documents = [{"content": "a", "metadata": {"tags": ["x"]}}]
    sample = Sample(documents=given_documents)
    given_documents.append({"content": "b"})
    assert len(sample.documents) == 1
    assert isinstance(sample.documents, list)
    assert isinstance(sample.documents[0]["metadata"]["tags"], FrozenList)
    for change in (
        lambda: sample.documents.append({}),
        lambda: sample.documents[0].update(x=1),
        sample.documents[0]["metadata"]["tags"].clear,
        lambda: sample.context.__setitem__("a", 1),
    ):
        with pytest.raises(TypeError, match="work on a copy"):
            change()
    mine = thaw(sample.documents)
    mine[0]["content"] = "mine"
    assert sample.documents[0]["content"] == "a"


def test_frozen_containers_copy_pickle_and_compare_like_plain_ones() -> None:
    import copy
    import json
    import pickle

    frozen = FrozenDict(a=FrozenList([1, FrozenDict(b=2)]))
    assert frozen == {"a": [1, {"b": 2}]}
    assert json.dumps(frozen) == '{"a": [1, {"b": 2}]}'
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    thawed = copy.deepcopy(frozen)
    thawed["a"][1]["b"] = 3
    assert frozen["a"][1]["b"] == 2
