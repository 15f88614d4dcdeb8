"""Explore: many answers beside each other, as durable experiments.

``plan`` is what is asked, as values; ``draft`` makes it from what a verb was given; ``stored``
finds it again; ``drive`` runs what is missing; ``experiment`` is what a verb returns.
"""

from __future__ import annotations

from nbdurable.explore.cell import Cell
from nbdurable.explore.experiment import Experiment

__all__ = ["Cell", "Experiment"]
