"""What an experiment can cost before it is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nbdurable.loaded import Loaded
from nbdurable.planning import Ask, prospective_view
from nbdurable.reprs import count, joined, money
from nbdurable.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The price of cells that are missing, their first calls alone: tools may lead to more.

    ``input_tokens`` are those that are sent. ``most_usd`` counts the longest answers that are
    allowed, or is None when a price or output limit is unknown: of ``unknown`` models.
    """

    cells: int
    input_tokens: int
    most_usd: float | None
    unknown: tuple[str, ...] = ()

    def __repr__(self) -> str:
        price = "price unknown" if self.most_usd is None else f"at most {money(self.most_usd)}"
        said = (count(self.cells, "call"), count(self.input_tokens, "token") + " in", price)
        return f"<Estimate {joined([*said, ', '.join(self.unknown)])}>"


def estimate(image: Loaded, asked: Iterable[tuple[Ask, Settings]]) -> Estimate:
    """Price what is asked; equal requests are counted once and multiplied."""
    priced: dict[tuple[object, ...], tuple[int, float | None]] = {}
    tokens, most, cells = 0, 0.0, 0
    unknown: dict[str, None] = {}
    for ask, settings in asked:
        mark = (id(settings), ask.leaf_id, id(ask.input) if ask.input else 0)
        if mark not in priced:
            view = prospective_view(image, settings, ask)
            request = settings.request(view.messages)
            model = settings.model
            priced[mark] = model.count_tokens(request), model.max_cost_usd(request)
        sent, price = priced[mark]
        cells, tokens = cells + 1, tokens + sent
        if price is None:
            unknown[settings.model.name] = None
        else:
            most += price
    return Estimate(
        cells=cells,
        input_tokens=tokens,
        most_usd=None if unknown else most,
        unknown=tuple(unknown),
    )
