"""Hit rates of predictors on fat trees: the figures of the paper on prediction routers that compare them, and their closed forms."""

from __future__ import annotations

import math
from typing import Any

from kasuri_papers import curves
from kasuri_papers.figure import Findings, Table, Verdict

RATE = "prediction_hit_rate"

# --- closed forms --------------------------------------------------------------------------------------------------


def turn(levels: int, down: int = 4) -> tuple[float, float]:
    """Give the mean level at which a packet turns, and the probability of the top, for uniform traffic to others."""
    terminals = down**levels
    return levels * terminals / (terminals - 1) - 1 / (down - 1), (down - 1) * down ** (levels - 1) / (terminals - 1)


def hit_rate(predictor: str, levels: int, *, up_chance: float = 1.0, fold: bool = True, down: int = 4) -> float:
    """Give hits over routers crossed. ``up_chance``: how often the predicted up port is right where a packet goes up."""
    height, top = turn(levels, down)
    hits = (height - 1) * up_chance
    if predictor == "ss":
        hits += (height - 1) / down + (top / (down - 1) if fold else 0.0)
    return hits / (2 * height - 1)


# --- figures -----------------------------------------------------------------------------------------------------------------------


def hit_rates_rise_and_level_off(table: Table) -> Verdict:
    """Hit rates of both predictors rise with the levels, by less and less, to about 60 and 45 %."""
    found = Findings()
    for series, (low, high) in {"ss": (0.56, 0.62), "up": (0.43, 0.48)}.items():
        rates = table.of(series).curve(RATE, "levels")
        found.must(
            set(rates) >= set(range(1, 7)) and curves.rises(rates),
            f"{series} over levels {curves.text(rates, 4)} (never falls, 1 to 6 levels)",
        )
        found.within(rates.get(6, math.nan), low, high, f"{series} at 6 levels")
        found.near(rates, {levels: hit_rate(series, levels) for levels in range(1, 7)}, 0.01, f"{series} beside the closed form")
        steps = [rates[more] - rates[less] for less, more in zip(range(1, 6), range(2, 7), strict=True) if {less, more} <= set(rates)]
        shrink = len(steps) == 5 and all(after < before for before, after in zip(steps, steps[1:], strict=False))
        found.must(shrink, f"{series} increments {', '.join(f'{step:.4f}' for step in steps)} (they shrink)")
    return found.verdict()


def more_chances_than_hits(table: Table) -> Verdict:
    """Static-straight predicts more than twice as often as up-priority, and is not right twice as often."""
    found = Findings()
    chances = {series: _over_packets(table.of(series), "prediction_attempts") for series in ("ss", "up")}
    ratios = {levels: chances["ss"][levels] / chance for levels, chance in chances["up"].items() if levels > 1 and levels in chances["ss"]}
    complete = set(ratios) >= set(range(2, 7))
    found.must(complete and all(ratio > 2 for ratio in ratios.values()), f"chances, ss/up {curves.text(ratios)} (> 2)")
    rates = {series: table.of(series).curve(RATE, "levels") for series in ("ss", "up")}
    hits = {levels: rate / rates["up"][levels] for levels, rate in rates["ss"].items() if levels > 1 and levels in rates["up"]}
    found.must(set(hits) >= set(range(2, 7)) and curves.largest(hits) < 2, f"hit rates, ss/up {curves.text(hits)} (< 2)")
    found.report(f"expected chances {curves.text({levels: (2 * turn(levels)[0] - 1) / _chances_up(levels) for levels in range(2, 7)})}")
    return found.verdict()


def _over_packets(table: Table, column: str) -> dict[Any, float]:
    return {row["levels"]: row[column] / row["measured_packets"] for row in table if row.get(column) is not None}


def _chances_up(levels: int) -> float:
    """Routers that up-priority predicts at: the level of the turn, one less where it is the top."""
    height, top = turn(levels)
    return height - top


def rates_of_the_earlier_paper(table: Table) -> Verdict:
    """On (2, 4, r) trees, with only the drawn up port right, about 35 % at every size."""
    found = Findings()
    rates = table.of("two-up").curve(RATE, "levels")
    inside = set(rates) >= set(range(2, 9)) and all(0.32 <= rate <= 0.38 for rate in rates.values())
    found.must(inside, f"(2, 4, r) over levels {curves.text(rates, 4)} ([0.32, 0.38], 2 to 8 levels)")
    spread = max(rates.values()) - min(rates.values()) if rates else math.inf
    found.must(spread < 0.04, f"spread {spread:.4f} (< 0.04)")
    expected = {levels: hit_rate("ss", levels, up_chance=0.5) for levels in rates}
    found.report(f"closed form {curves.text(expected, 4)}")
    one, priority = (table.of(series).curve(RATE, "levels") for series in ("one-up", "one-up-priority"))
    found.report(f"(1, 4, r), which the paper puts at about 40 %: ss {curves.text(one)}; up {curves.text(priority)}")
    return found.verdict()


def any_up_port_raises_the_rate(table: Table) -> Verdict:
    """Where any up port will do, static-straight is right more than one and a half times as often."""
    found = Findings()
    both = table.of("any-up").curve(RATE, "levels"), table.of("distinct-up-ports").curve(RATE, "levels")
    ratios = {levels: both[0][levels] / both[1][levels] for levels in both[0] if levels in both[1]}
    found.must(
        ratios.get(3, 0.0) > 1.5, f"any up port {curves.text(both[0])}; drawn port {curves.text(both[1])}; ratio {curves.text(ratios)}"
    )
    expected = hit_rate("ss", 3), hit_rate("ss", 3, up_chance=0.25)
    found.report(f"closed form at 3 levels {expected[0]:.3f} and {expected[1]:.3f}")
    return found.verdict()
