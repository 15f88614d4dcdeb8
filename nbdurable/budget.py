"""Budgets: a call that could pass one is refused before it is sent (B26)."""

from __future__ import annotations

import threading
from numbers import Real

from nbdurable.errors import BudgetExceeded, shown


class Budget:
    """A limit in USD over the calls that share it.

    A call holds the most it can cost while it is in flight; afterwards it counts what it did cost,
    or all it held when that is unknown.
    """

    def __init__(self, limit_usd: float) -> None:
        is_number = isinstance(limit_usd, Real) and not isinstance(limit_usd, bool)
        if not (is_number and limit_usd >= 0):
            raise ValueError(f"budget_usd is {shown(limit_usd)}; give a number of USD, 0 or more")
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self._held_usd = 0.0
        self._lock = threading.Lock()

    def hold(self, most_usd: float | None, model: str) -> float:
        """Set aside the most a call can cost; return it.

        Raises
        ------
        BudgetExceeded
            The call could pass the limit, or its price or output limit is unknown.
        """
        if most_usd is None:
            raise BudgetExceeded(
                f"a call of model {model!r} has no known price or output limit, so budget_usd="
                f"{self.limit_usd:g} cannot hold; set max_tokens, or run without a budget"
            )
        with self._lock:
            free = self.limit_usd - self.spent_usd - self._held_usd
            if most_usd > free + 1e-12:
                raise BudgetExceeded(
                    f"a call of model {model!r} could cost ${most_usd:.6f}, and ${free:.6f} is "
                    f"left of budget_usd={self.limit_usd:g}; raise the budget or lower max_tokens"
                )
            self._held_usd += most_usd
        return most_usd

    def settle(self, held_usd: float, cost_usd: float | None) -> None:
        """Give back what a call held and count what it cost; None counts all it held."""
        with self._lock:
            self._held_usd -= held_usd
            self.spent_usd += held_usd if cost_usd is None else cost_usd
