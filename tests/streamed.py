"""An answer of a model, taken to its end."""

from __future__ import annotations

from nbdurable.models.base import Assembly, Model, ModelRequest


async def assemble(model: Model, request: ModelRequest) -> Assembly:
    assembly = Assembly()
    async for delta in model.stream(request):
        assembly.add(delta)
    return assembly
