"""The verbs that explore: `sample`, `grid`, `redrive`, and experiments of before.

Owns their signatures; what they mean is above, in ``explore``, which is loaded when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING

from nbdurable.asking import Asking
from nbdurable.models.base import Model
from nbdurable.references import LEAF, Reference
from nbdurable.settings import Effects, ToolValue

if TYPE_CHECKING:
    from nbdurable.explore import Experiment
    from nbdurable.explore.progress import Bar
    from nbdurable.explore.verbs import History


class Exploring(Asking):
    """A handle that asks for many answers."""

    def sample(
        self,
        n: int,
        *input: object,
        at: Reference = LEAF,
        model: str | Model | None = None,
        system: str | EllipsisType | None = ...,
        tools: Iterable[ToolValue] | EllipsisType = ...,
        schema: object = None,
        name: str | None = None,
        wait: bool = True,
        show: Bar | EllipsisType = ...,
        concurrency: int = 8,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        start: bool = True,
        **params: object,
    ) -> Experiment:
        """Ask for `n` answers beside each other; the input is stored once (B43).

        Leaf and position stay. Called again it adds `n` more. Other parameters as for `grid`.

        Parameters
        ----------
        n : int
            How many.
        *input : object
            As for `run`. Without input: `n` more answers to what waits for one at the leaf, or to
            what the answer there answered, with this handle's settings.
        """
        from nbdurable.explore import verbs

        go = verbs.Go(
            wait=wait,
            show=show,
            concurrency=concurrency,
            effects=effects,
            budget_usd=budget_usd,
            start=start,
        )
        given = {"model": model, "system": system, "tools": tools, "schema": schema}
        return verbs.sample(self, n, input, at, name, {**given, **params}, go)

    def grid(
        self,
        input: object = None,
        model: object = None,
        system: object = ...,
        n: int = 1,
        *,
        at: Reference = LEAF,
        tools: object = ...,
        schema: object = None,
        name: str | None = None,
        wait: bool = True,
        show: Bar | EllipsisType = ...,
        concurrency: int = 8,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        start: bool = True,
        fresh: bool = False,
        params: Mapping[str, object] | None = None,
        **axes_or_fixed: object,
    ) -> Experiment:
        """Ask for an answer for each combination of what varies (B43).

        A list or dict of values varies, and a dict names them; any other value is fixed. Each
        input is stored once, all answers to it stand under it. Leaf and position stay. An equal
        grid, or one of the same name with more values, calls models only for what is missing.

        Parameters
        ----------
        input, model, system, **axes_or_fixed
            Values, lists or dicts of what `run` takes, also of parameters such as ``temperature``.
        n : int
            Answers for each combination: the axis ``sample``.
        at : reference
            Where, in place of the leaf.
        tools : list or dict of lists
            A list is fixed.
        schema : class, type or dict, optional
            The form of every answer, as for `run`; fixed.
        name : str, optional
            For `experiment`; by default such as ``grid-1``.
        wait : bool
            Block until all cells have ended; failed ones are warned of, and `resume` runs them.
        show : "bar" or None
            A progress bar; by default when waiting.
        concurrency : int
            Calls at once for each provider.
        effects : "refuse" or "run"
            Whether tools with effects may run, once for each answer.
        budget_usd : float, optional
            A limit for all of it; cells that could pass it stay missing.
        start : bool
            False stores and calls nothing, for `Experiment.estimate`; `resume` begins.
        fresh : bool
            Ask all again, beside an equal grid.
        params : mapping, optional
            Fixed parameters whose value is itself a list or dict, such as ``stop``.

        Returns
        -------
        Experiment
            Finished, or live with ``wait=False``.

        Raises
        ------
        RunError
            The name is that of another experiment; the text says in what they differ.
        ModelError, BudgetExceeded
            Refused at the call; nothing was stored.
        """
        from nbdurable.explore import verbs

        go = verbs.Go(
            wait=wait,
            show=show,
            concurrency=concurrency,
            effects=effects,
            budget_usd=budget_usd,
            start=start,
            fresh=fresh,
        )
        varying = {"model": model, "system": system, "tools": tools, **axes_or_fixed}
        fixed = {"schema": schema, **(params or {})}
        return verbs.grid(self, input, n, at, name, varying, fixed, go)

    def redrive(
        self,
        leaf: Reference = LEAF,
        *,
        model: object = None,
        system: object = ...,
        history: History = "new",
        tools: object = ...,
        schema: object = None,
        name: str | None = None,
        wait: bool = True,
        show: Bar | EllipsisType = ...,
        concurrency: int = 8,
        effects: Effects = "refuse",
        budget_usd: float | None = None,
        start: bool = True,
        fresh: bool = False,
        params: Mapping[str, object] | None = None,
        **axes_or_fixed: object,
    ) -> Experiment:
        """Ask every user turn of the path to `leaf` again, of other models or systems.

        Other parameters as for `grid`; the axis ``turn`` counts the turns from 1.

        Parameters
        ----------
        history : "new" or "recorded"
            Whether a turn is asked after the new answers before it, or after the recorded ones.
        """
        from nbdurable.explore import verbs

        go = verbs.Go(
            wait=wait,
            show=show,
            concurrency=concurrency,
            effects=effects,
            budget_usd=budget_usd,
            start=start,
            fresh=fresh,
        )
        varying = {"model": model, "system": system, "tools": tools, **axes_or_fixed}
        fixed = {"schema": schema, **(params or {})}
        return verbs.redrive(self, leaf, history, name, varying, fixed, go)

    def experiments(self) -> list[Experiment]:
        """Return the session's experiments in the order they were made."""
        from nbdurable.explore import verbs

        return verbs.kept_experiments(self)

    def experiment(self, name: str) -> Experiment:
        """Return the latest experiment of a name, or raise `TreeError`."""
        from nbdurable.explore import verbs

        return verbs.kept_experiment(self, name)
