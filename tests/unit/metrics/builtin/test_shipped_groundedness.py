"""The shipped numbers of `groundedness` are what its fitting script makes of the labelled sets."""

import json

import pytest
from tests.benchmarks.labelled import missing
from tests.unit.metrics.builtin.local_model import needs_model


@needs_model
@pytest.mark.benchmark  # embeds 13,000 sentences: two minutes
@pytest.mark.skipif(bool(missing()), reason=f"missing: {', '.join(missing())}")
def test_fitting_again_gives_the_shipped_numbers() -> None:
    from tests.benchmarks.fit_groundedness import FILE, as_file, fit, read
    from tests.benchmarks.labelled import q2, wice

    again, shipped = as_file(fit(read(q2()), read(wice()))), json.loads(FILE.read_text(encoding="utf-8"))
    for made, kept in (
        (again.pop("weights"), shipped.pop("weights")),
        ({"b": again.pop("intercept")}, {"b": shipped.pop("intercept")}),
    ):
        assert made == pytest.approx(kept, abs=0.02)  # another processor rounds otherwise
    assert again == shipped
