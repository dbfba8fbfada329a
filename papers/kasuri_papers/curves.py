"""What verdicts ask of curves. A curve maps places, ascending, to values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Curve = Mapping[Any, float]

#: A rise or fall is real if first and last point differ by more than this part of the first, or by three standard errors.
REAL_CHANGE = 0.02


def never_rises(curve: Curve, slack: float = 0.01) -> bool:
    """Is no point higher than the one before by more than ``slack`` of it?"""
    values = list(curve.values())
    return len(values) > 1 and all(after <= before * (1 + slack) for before, after in zip(values, values[1:], strict=False))


def falls(curve: Curve, errors: Curve | None = None) -> bool:
    """Is the last point lower than the first, by more than 2 % or three standard errors of the difference?"""
    places = list(curve)
    if len(places) < 2:
        return False
    first, last = curve[places[0]], curve[places[-1]]
    spread = math.hypot((errors or {}).get(places[0], 0.0), (errors or {}).get(places[-1], 0.0))
    beyond_noise = spread > 0 and first - last > 3 * spread
    return last < first and (first - last > REAL_CHANGE * abs(first) or beyond_noise)


def rises(curve: Curve, slack: float = 0.01) -> bool:
    """Is no point lower than the one before by more than ``slack`` of it, and the last really higher than the first (by more than 2 %)?"""
    values = list(curve.values())
    steady = all(after >= before * (1 - slack) for before, after in zip(values, values[1:], strict=False))
    return len(values) > 1 and steady and values[-1] > values[0] * (1 + REAL_CHANGE)


def distances(one: Curve, other: Curve, relative_to: Curve | None = None) -> dict[Any, float]:
    """Give the distance of two curves at the places that both have, or that distance over a third curve."""
    common = [place for place in one if place in other and (relative_to is None or place in relative_to)]
    return {place: abs(one[place] - other[place]) / (1.0 if relative_to is None else relative_to[place]) for place in common}


def largest(curve: Curve) -> float:
    """Give the largest value; infinite for a curve without points, so that nothing passes for lack of data."""
    return max(curve.values(), default=math.inf)


def mean(curve: Curve) -> float:
    """Give the mean over all points; infinite for a curve without points."""
    return math.fsum(curve.values()) / len(curve) if curve else math.inf


def text(curve: Curve, digits: int = 3) -> str:
    """Write a curve in one line: ``2: 0.981, 4: 0.873``."""
    return ", ".join(f"{place}: {value:.{digits}f}" for place, value in curve.items())
