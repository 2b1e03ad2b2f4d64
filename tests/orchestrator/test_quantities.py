"""Amounts as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.quantities import parse_count, parse_duration, parse_money, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("1.5h", 5400), ("250ms", 0.25), (" 2D ", 172800), ("7", 7),
     (0.5, 0.5), ("unlimited", None)],
)  # fmt: skip
def test_durations(text: str | float, seconds: float | None) -> None:
    """Units may be combined; a number alone is seconds."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "count"),
    [("5", 5), (5, 5), ("200k", 200_000), ("1.5M", 1_500_000), ("2_000", 2_000), ("2,000", 2_000), ("Unlimited", None)],
)
def test_counts(text: str | int, count: int | None) -> None:
    """Thousands and millions may be abbreviated, digits may be grouped."""
    assert parse_count(text) == count


@pytest.mark.parametrize(("text", "micro"), [("0.50", 500_000), (2, 2_000_000), ("1e-6", 1), ("unlimited", None)])
def test_money(text: str | float, micro: int | None) -> None:
    """Money is counted in millionths."""
    assert parse_money(text) == micro


@pytest.mark.parametrize("parse", [parse_duration, parse_count, parse_money])
@pytest.mark.parametrize(
    "text", ["", "x", "10x", "-5", "0", "nan", "inf", "1e999", "5 attempts", "1.2.3", "9" * 40, "²"]
)
def test_nonsense(parse: object, text: str) -> None:
    """What is no amount is refused with what it should look like, and with what was found."""
    assert callable(parse)
    with pytest.raises(ValueError, match="expected") as caught:
        parse(text)
    assert repr(text) in str(caught.value)


def test_counts_are_whole() -> None:
    """Half an attempt is none."""
    with pytest.raises(ValueError, match="whole number above 0"):
        parse_count("1.5")


@given(some.text())
def test_any_text(text: str) -> None:
    """Any text is an amount above 0, no limit, or a ValueError."""
    for parse in (parse_duration, parse_count, parse_money):
        try:
            amount = parse(text)
        except ValueError:
            continue
        assert amount is None or amount > 0


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (65_536, 65_536), ("65536 bytes", 65_536), ("1_000", 1_000), ("2k", 2_048), ("512M", 512 * 1024**2),
        ("4 GiB", 4 * 1024**3), ("1tb", 1024**4), ("unlimited", None),
    ],
)  # fmt: skip
def test_sizes(text: str | int, size: int | None) -> None:
    """Sizes are bytes; every unit counts by 1024."""
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5G", "5x", "9" * 30, "1 G B"])
def test_what_is_no_size(text: str) -> None:
    """Anything else is refused with a word on how to write it."""
    with pytest.raises(ValueError, match="expected a size above 0 such as 512M"):
        parse_size(text)
