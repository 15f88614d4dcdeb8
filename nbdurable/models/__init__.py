"""Language models: the protocol, the local one, the scripted one and the way to all others."""

from __future__ import annotations

from nbdurable.errors import shown
from nbdurable.models.base import Model
from nbdurable.wire import is_repaired

__all__ = ["resolve_model"]


def resolve_model(spec: Model | str) -> Model:
    """Return the model that `spec` names.

    Parameters
    ----------
    spec : Model or str
        A model, ``"local"``, or a name as LiteLLM knows it, such as ``"openai/gpt-5-mini"``.

    Raises
    ------
    TypeError
        `spec` is neither text nor a model.
    ValueError
        The name is blank, or holds half a character, which no provider can be sent.
    """
    if isinstance(spec, str):
        if not spec.strip():
            raise ValueError(f"model name {spec!r} is blank; use 'local' or a LiteLLM name")
        return _named(_checked(spec))
    if not isinstance(spec, type) and isinstance(spec, Model):
        _checked(spec.name)
        return spec
    raise TypeError(
        f"model {shown(spec)} is of type {type(spec).__name__}; "
        "use 'local', a LiteLLM name or an object with the methods of Model"
    )


def _checked(name: str) -> str:
    if is_repaired(name):
        raise ValueError(f"model name {shown(name)} holds half a character; correct the name")
    return name


def _named(name: str) -> Model:
    if name == "local":
        from nbdurable.models.local import shared

        return shared()
    from nbdurable.models.litellm import LiteLLMModel

    return LiteLLMModel(name)
