"""Run by each Python that `record_answers.py` starts: the local model's answers are kept in a file.

So the answers of a notebook's kernel and of the processes that it starts are all there.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

from nbdurable.blocks import Json
from nbdurable.models import local
from nbdurable.models.local_answers import keep_answer
from nbdurable.models.local_engine import Chunk, Engine, decoded


async def kept(engine: Engine, body: dict[str, Json]) -> AsyncGenerator[Chunk, None]:
    """Yield what `decoded` yields, and keep it when it is whole."""
    chunks = []
    async with aclosing(decoded(engine, body)) as stream:
        async for chunk in stream:
            chunks.append(chunk)
            yield chunk
    asked = {name: value for name, value in body.items() if name not in local.STREAMED}
    origin = {"answered_by": engine.answered_by, "fingerprint": local.fingerprint()}
    keep_answer(Path(os.environ["KEPT_ANSWERS"]), asked, chunks, **origin)


local.decoded = kept
