"""What a table of prices promises."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import DocumentError
from orchestrator.prices import Price, UnpricedModelError, load_prices, read_prices

TOML = """
as_of = "2026-01-31"
currency = "USD"
[models."gpt-x"]
input = "2.50"
output = "10"
cached-input = "1.25"
[models."vendor/small-1.5"]
input = "0"
output = "0.000000000001"
"""

AMOUNTS = st.decimals(0, 10**9 - 1, places=12).map(lambda amount: f"{amount:f}")


def table(**changes: Any) -> dict[str, Any]:
    """A table as plain data."""
    return {"as_of": "2026-01-31", "currency": "USD", "models": {"m": {"input": "1", "output": "2"}}} | changes


def test_a_file_holds_a_dated_table(tmp_path: Path) -> None:
    """With a currency and the price of a million tokens for each model."""
    (tmp_path / "prices.toml").write_text(TOML)
    prices = load_prices(tmp_path / "prices.toml")
    assert (prices.as_of, prices.currency, prices.models) == (
        "2026-01-31",
        "USD",
        {
            "gpt-x": Price(input="2.50", output="10", cached_input="1.25"),
            "vendor/small-1.5": Price(input="0", output="0.000000000001"),
        },
    )


@pytest.mark.parametrize(
    ("price", "counts", "money"),
    [
        (Price(input="2.50", output="10"), (1_000_000, 1_000_000), 12_500_000),
        (Price(input="2.50", output="10"), (1, 0), 3),
        (Price(input="0.1", output="0.1"), (10, 20), 3),
        (Price(input="2", output="8", cached_input="0.5"), (10, 1, 4), 22),
        (Price(input="2", output="8"), (10, 1, 4), 28),
        (Price(input="0", output="0"), (9, 9, 9), 0),
        (Price(input="0", output="0.000000000001"), (0, 1), 1),
        (Price(input="999999999.999999999999", output="1"), (2**53 - 1, 0), 9007199254740990999990993),
    ],
)
def test_money_is_exact_and_rounded_up_once(price: Price, counts: tuple[int, ...], money: int) -> None:
    """Millionths of the currency; no float ever takes part."""
    assert price.money_micro(*counts) == money


@given(AMOUNTS, AMOUNTS, st.integers(0, 2**53), st.integers(0, 2**53), st.integers(0, 2**53))
def test_money_is_never_less_than_the_exact_sum(fresh: str, written: str, reads: int, writes: int, cached: int) -> None:
    """And less than one millionth more."""
    cached = min(cached, reads)
    exact = reads * Fraction(fresh) + writes * Fraction(written)
    assert 0 <= Price(input=fresh, output=written).money_micro(reads, writes, cached) - exact < 1


@pytest.mark.parametrize("counts", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (1, 0, 2)])
def test_counts_that_cannot_be_are_refused(counts: tuple[int, int, int]) -> None:
    """Nothing lowers what was spent."""
    with pytest.raises(ValueError, match="no sane counts"):
        Price(input="1", output="1").money_micro(*counts)


def test_a_model_without_a_price_is_told_with_those_that_have_one() -> None:
    """And with the one that was probably meant."""
    prices = read_prices(table(models={f"model-{number:02}": {"input": "1", "output": "2"} for number in range(25)}))
    with pytest.raises(UnpricedModelError) as caught:
        prices.price_of("modle-07")
    shown = ", ".join(f"model-{number:02}" for number in range(20))
    assert (str(caught.value), caught.value.model, caught.value.hint, len(caught.value.known)) == (
        f"the prices name no model 'modle-07' (did you mean 'model-07'?): add it, or use one of {shown} and 5 more",
        "modle-07",
        "model-07",
        25,
    )


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        ([], ["$: expected a table, found an array"]),
        (table(as_of="31.1.2026"), ["$.as_of: expected the day the prices are of"]),
        (table(as_of="2026-02-30"), ["$.as_of: expected the day the prices are of"]),
        (table(currency="US Dollar"), ["$.currency: expected one word"]),
        (table(models={}), ["$.models: is empty"]),
        (table(models={"m": {"input": 2.5, "output": "1"}}), ["$.models.m.input: expected a string, found a number"]),
        (
            table(models={"m": {"input": "1e3", "output": "-1"}, "n": {"input": "1", "output": "1", "ouput": "2"}}),
            [
                "$.models.m.input: expected an amount as text",
                "$.models.m.output: expected an amount as text",
                "$.models.n.ouput: unknown key",
            ],
        ),
        ({"currency": "USD"}, ["$.as_of: required key is missing", "$.models: required key is missing"]),
    ],
)
def test_a_bad_table_is_told_with_every_fault_and_its_place(data: Any, faults: list[str]) -> None:
    """Amounts are text, since a float is not what was written."""
    with pytest.raises(DocumentError) as caught:
        read_prices(data, "prices.toml")
    found = sorted(str(fault) for fault in caught.value.faults)
    assert [fault.startswith(expected) for fault, expected in zip(found, faults, strict=True)] == [True] * len(faults)


def test_the_digest_tells_tables_apart() -> None:
    """Whatever changes a price, the day or the currency changes it; the order of models does not."""
    models = {"a": {"input": "1", "output": "1"}, "b": {"input": "2", "output": "2"}}
    same = [read_prices(table(models=dict(items))).digest for items in (models.items(), reversed(models.items()))]
    others = [table(), table(as_of="2026-02-01"), table(currency="EUR")]
    digests = {read_prices(data).digest for data in others}
    assert (len(set(same)), len(digests), same[0] in digests) == (1, 3, False)
