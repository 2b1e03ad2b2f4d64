"""What calls cost: a dated table that the user supplies, exact, in whole millionths of its currency."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from math import ceil
from typing import Any, Final

import attrs

from orchestrator.documents import read_document
from orchestrator.errors import OrchestratorError
from orchestrator.faults import closest_name
from orchestrator.jsondata import JSON
from orchestrator.structuring import structure

__all__ = ["Price", "PriceTable", "UnpricedModelError", "load_prices", "read_prices"]

_AMOUNT: Final = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,12})?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CURRENCY: Final = re.compile(r"[A-Za-z]{1,16}")
_MODELS_SHOWN: Final = 20


class UnpricedModelError(OrchestratorError, LookupError):
    """A table of prices does not name the model; `known` are those it names, `hint` the one probably meant."""

    def __init__(self, model: str, known: tuple[str, ...], hint: str) -> None:
        super().__init__(model, known, hint)
        self.model = model
        self.known = known
        self.hint = hint

    def __str__(self) -> str:
        meant = f" (did you mean {self.hint!r}?)" if self.hint else ""
        more = f" and {len(self.known) - _MODELS_SHOWN} more" if len(self.known) > _MODELS_SHOWN else ""
        return (
            f"the prices name no model {self.model!r}{meant}: add it, or use one of "
            f"{', '.join(self.known[:_MODELS_SHOWN])}{more}"
        )


def _is_amount(_: object, __: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not (isinstance(value, str) and _AMOUNT.fullmatch(value)):
        raise ValueError(f'expected an amount as text such as "2.50", found {value!r}')


@attrs.frozen(kw_only=True)
class Price:
    """Prices of one model in units of the currency per million tokens, as exact decimal text."""

    input: str = attrs.field(validator=_is_amount)
    output: str = attrs.field(validator=_is_amount)
    """Reasoning tokens are output."""
    cached_input: str | None = attrs.field(default=None, validator=_is_amount)
    """Of input tokens that the server had in its cache; None: as any other."""

    def money_micro(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> int:
        """The price of a call in millionths of the currency, rounded up; `cached_tokens` are among the input.

        Raises ValueError for counts below 0 and for more cached tokens than there are input tokens.
        """
        if min(input_tokens, output_tokens, cached_tokens) < 0 or cached_tokens > input_tokens:
            raise ValueError(f"no sane counts: input {input_tokens}, output {output_tokens}, cached {cached_tokens}")
        cached = self.input if self.cached_input is None else self.cached_input
        # Units per million tokens are millionths of a unit per token: no factor is left.
        return ceil(
            (input_tokens - cached_tokens) * Fraction(self.input)
            + cached_tokens * Fraction(cached)
            + output_tokens * Fraction(self.output)
        )


def _is_date(_: object, __: object, value: str) -> None:
    try:
        is_day = _DATE.fullmatch(value) is not None and bool(date.fromisoformat(value))
    except ValueError:
        is_day = False
    if not is_day:
        raise ValueError(f'expected the day the prices are of, such as "2026-01-31", found {value!r}')


def _is_currency(_: object, __: object, value: str) -> None:
    if not _CURRENCY.fullmatch(value):
        raise ValueError(f'expected one word such as "USD", found {value!r}')


def _is_some(_: object, __: object, value: Mapping[str, Price]) -> None:
    if not value:
        raise ValueError("is empty: name at least one model")


@attrs.frozen(kw_only=True)
class PriceTable:
    """Prices as of a day, by model; nothing is looked up anywhere and no price is built in."""

    as_of: str = attrs.field(validator=_is_date)
    """Day the prices are of, YYYY-MM-DD."""
    currency: str = attrs.field(validator=_is_currency)
    models: dict[str, Price] = attrs.field(validator=_is_some)

    def price_of(self, model: str) -> Price:
        """The prices of one model; raises UnpricedModelError, which names those there are."""
        price = self.models.get(model)
        if price is None:
            raise UnpricedModelError(model, tuple(sorted(self.models)), closest_name(model, self.models))
        return price

    @property
    def digest(self) -> str:
        """Lower-case hexadecimal SHA-256 of the whole table in canonical form."""
        text = json.dumps(attrs.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def load_prices(path: str | os.PathLike[str]) -> PriceTable:
    """The table in a .toml, .json, .yaml or .yml file; raises DocumentError with every fault and its place."""
    return structure(read_document(path), PriceTable, os.fspath(path))


def read_prices(data: JSON, source: str = "prices") -> PriceTable:
    """The table in plain data, such as a section of a configuration.

    Raises DocumentError with every fault; `source` is the name it gives the data.
    """
    return structure(data, PriceTable, source)
