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


#: Levels of the trees of figure 8.
LEVELS = tuple(range(1, 9))


#: Levels of the trees of figure 8.
LEVELS = tuple(range(1, 9))


def hit_rates_rise_and_level_off(table: Table) -> Verdict:
    """Hit rates of both predictors rise with the levels, by less and less, static-straight's above up-priority's."""
    found = Findings()
    both = {series: table.of(series).curve(RATE, "levels") for series in ("ss", "up")}
    for series, rates in both.items():
        complete = set(rates) >= set(LEVELS)
        found.must(complete and curves.rises(rates), f"{series} over levels {curves.text(rates, 4)} (rises, 1 to 8 levels)")
        steps = [rates[more] - rates[less] for less, more in zip(LEVELS[1:], LEVELS[2:], strict=False)] if complete else []
        shrink = bool(steps) and all(after < before for before, after in zip(steps, steps[1:], strict=False)) and steps[-1] < 0.01
        found.must(shrink, f"{series} increments {', '.join(f'{step:.4f}' for step in steps)} (they shrink, the last < 0.01)")
    above = bool(both["up"]) and all(both["ss"].get(levels, 0.0) > rate for levels, rate in both["up"].items())
    found.must(above, "static-straight above up-priority at every size")
    return found.verdict()


def levels_of_the_hit_rates(table: Table) -> Verdict:
    """At 6 to 8 levels about 60 % and 45 %, and the closed form of hits over routers crossed."""
    found = Findings()
    for series, (low, high) in {"ss": (0.55, 0.65), "up": (0.42, 0.48)}.items():
        rows = table.of(series, figure="F8")
        rates = rows.curve(RATE, "levels")
        for levels in LEVELS[5:]:
            found.within(rates.get(levels, math.nan), low, high, f"{series} at {levels} levels")
        found.near(rates, {levels: hit_rate(series, levels) for levels in LEVELS[5:]}, 0.01, f"{series} beside the closed form")
        counts = {row["levels"]: row["prediction_hits"] / row["prediction_attempts"] for row in rows if row.get("prediction_attempts")}
        found.report(f"{series}, hits per prediction {curves.text({levels: counts[levels] for levels in counts if levels >= 6})}")
        found.report(f"{series}, closed form of the mean of each packet's ratio at 8 levels {mean_of_ratios(series, 8):.4f}")
    return found.verdict()


def mean_of_ratios(predictor: str, levels: int, down: int = 4) -> float:
    """Give the mean over packets of each one's hits over the routers that it crosses."""
    total = 0.0
    for level in range(1, levels + 1):
        chance = (down - 1) * down ** (level - 1) / (down**levels - 1)
        hits = level - 1.0
        if predictor == "ss":
            hits += (level - 1) / down + (1 / (down - 1) if level == levels else 0.0)
        total += chance * hits / (2 * level - 1)
    return total


def more_chances_than_hits(table: Table) -> Verdict:
    """Static-straight predicts more than twice as often as up-priority, and is not right twice as often."""
    found = Findings()
    rates = {series: table.of(series).curve(RATE, "levels") for series in ("ss", "up")}
    hits = {levels: rate / rates["up"][levels] for levels, rate in rates["ss"].items() if levels > 1 and levels in rates["up"]}
    found.must(set(hits) >= set(range(2, 7)) and curves.largest(hits) < 2, f"hit rates, ss/up {curves.text(hits)} (< 2)")
    chances = {series: _over_packets(table.of(series), "prediction_attempts") for series in ("ss", "up")}
    ratios = {levels: chances["ss"][levels] / chance for levels, chance in chances["up"].items() if levels > 1 and levels in chances["ss"]}
    expected = {levels: (2 * turn(levels)[0] - 1) / _chances_up(levels) for levels in range(2, 7)}
    found.report(f"chances, ss/up {curves.text(ratios)}; by construction {curves.text(expected)}")
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
    return found.verdict()


def rates_with_one_up_port(table: Table) -> Verdict:
    """On (1, 4, r) trees one of the predictors has about 40 % at every size."""
    found = Findings()
    near = {}
    for series in ("one-up", "one-up-priority"):
        rates = {levels: rate for levels, rate in table.of(series, figure="C2").curve(RATE, "levels").items() if 2 <= levels <= 6}
        mean = curves.mean(rates)
        spread = max(rates.values()) - min(rates.values()) if rates else math.inf
        near[series] = len(rates) == 5 and 0.36 <= mean <= 0.44 and spread < 0.04
        found.report(f"{series} {curves.text(rates)}, mean {mean:.3f}, spread {spread:.3f}")
    found.must(any(near.values()), "one of them has a mean in [0.36, 0.44] and a spread below 0.04")
    return found.verdict()


def any_up_port_raises_the_rate(table: Table) -> Verdict:
    """Where any up port will do, static-straight is right more often, by more than three standard errors at every size."""
    found = Findings()
    any_up, drawn = table.of("any-up"), table.of("distinct-up-ports")
    rates, others = any_up.curve(RATE, "levels"), drawn.curve(RATE, "levels")
    errors, other_errors = any_up.standard_errors(RATE, "levels"), drawn.standard_errors(RATE, "levels")
    for levels in (2, 3, 4):
        rise = rates.get(levels, math.nan) - others.get(levels, math.nan)
        noise = 3 * math.hypot(errors.get(levels, math.nan), other_errors.get(levels, math.nan))
        found.must(rise > noise, f"{levels} levels: higher by {rise:.4f} (> {noise:.4f})")
    ratios = {levels: rates[levels] / others[levels] for levels in rates if others.get(levels)}
    expected = hit_rate("ss", 3), hit_rate("ss", 3, up_chance=0.25)
    found.report(f"ratio {curves.text(ratios)}; closed form at 3 levels {expected[0]:.3f} and {expected[1]:.3f}")
    return found.verdict()
