"""Tateshita et al., "Prediction router for low latency Fat Tree network": what guessing the output port before a packet arrives gains.

Series named ``normal`` have the router without prediction, ``ss`` the predictor static-straight and ``up`` up-priority. All are
measured by the flit engine; closed forms stand beside the measured values and feed no verdict but those of F8 and F11, whose
criteria name them. Hit rates are judged in `kasuri_papers.prediction_hit_rates`, the paper's diagrams and tables in
`kasuri_papers.prediction_structure`; the rivals of section 5 stand in `kasuri_papers.prediction_rivals`.
"""

from __future__ import annotations

import math
from typing import Any

from kasuri_papers import curves, prediction_hit_rates, prediction_rivals, prediction_structure
from kasuri_papers.comparison import LATENCY, LOAD
from kasuri_papers.curves import Curve
from kasuri_papers.figure import Figure, Findings, Paper, Plot, Table, Verdict
from kasuri_papers.prediction_hit_rates import hit_rate, turn

#: Reductions of zero-load latency over flit sizes in bytes, by the model of section 1.6; the paper gives the first and the last.
BY_FLIT_BYTES = {8: 0.0833, 16: 0.0951, 32: 0.1156, 64: 0.1473, 128: 0.1887, 256: 0.2322}


def on_chip_latency(stages: int, predicted: bool) -> float:
    """Give the zero-load latency on the (4, 4, 3) tree in cycles: 5 flits, one of which waits for a credit of a buffer of 4."""
    height, _ = turn(3)
    hits = hit_rate("ss", 3) * (2 * height - 1) if predicted else 0.0
    return stages * (2 * height - 1) - (stages - 1) * hits + 2 * height + 4 + 2


# --- what verdicts measure ---------------------------------------------------------------------------------------------------------


def reductions(normal: Curve, predicted: Curve) -> dict[Any, float]:
    """Give the part of the latency that prediction takes away, where both have a value."""
    return {place: 1 - predicted[place] / normal[place] for place in normal if place in predicted}


def reduction(table: Table, normal: str, predicted: str) -> float:
    """Give the reduction between two series with one place each; not a number where a run is missing."""
    one, other = (_mean(table.of(series)) for series in (normal, predicted))
    return 1 - other / one


def _mean(table: Table) -> float:
    values = [float(row[LATENCY]) for row in table if isinstance(row.get(LATENCY), int | float)]
    return math.fsum(values) / len(values) if values else math.nan


class Compared:
    """What a comparison of a router without and with prediction has found (`kasuri_papers.comparison`)."""

    def __init__(self, table: Table) -> None:
        self.rows = table

    def _of(self, router: str, place: str) -> Table:
        return Table(row for row in self.rows if row.get("router") == router and row.get("place") == place)

    def saturation(self, router: str) -> float:
        """Give the saturation load of a router; infinite where it was not found."""
        return min((row["saturation_load"] for row in self._of(router, "saturation")), default=math.inf)

    def zero_load(self, router: str) -> float:
        """Give the zero-load latency, cycles."""
        return _mean(self._of(router, "zero"))

    def curve(self, router: str) -> Curve:
        """Give the latency over the load."""
        return self._of(router, "curve").curve(LATENCY, LOAD)

    def reduction_at_zero_load(self) -> float:
        """Give the part of the zero-load latency that prediction takes away."""
        return 1 - self.zero_load("predicted") / self.zero_load("normal")

    def reductions(self, most: float) -> dict[Any, float]:
        """Give that part over the loads up to ``most``."""
        lower = reductions(self.curve("normal"), self.curve("predicted"))
        return {load: value for load, value in lower.items() if load <= most * (1 + 1e-9)}


# --- figures -----------------------------------------------------------------------------------------------------------------------


def static_straight_cuts_latency(table: Table) -> Verdict:
    """About a fifth less latency from zero load up to 80 % of saturation, and a higher saturation load."""
    found = Findings()
    both = Compared(table.of("ss"))
    found.within(both.reduction_at_zero_load(), 0.16, 0.24, "reduction at zero load")
    normal, predicted = both.saturation("normal"), both.saturation("predicted")
    lower = both.reductions(0.8 * normal)
    steady = len(lower) > 1 and min(lower.values()) >= 0.16
    found.must(steady, f"reduction up to 80 % of the normal saturation load {curves.text(lower)} (>= 0.16)")
    better = predicted > 1.02 * normal and normal < math.inf
    found.must(better, f"saturation load {predicted:.4f} with prediction, {normal:.4f} without (above by more than 2 %)")
    found.report(_beside_zero_load(3, (both.zero_load("normal"), both.zero_load("predicted"))))
    return found.verdict()


def _beside_zero_load(stages: int, values: tuple[float, float]) -> str:
    expected = [on_chip_latency(stages, predicted) for predicted in (False, True)]
    return f"{stages} stages: {values[0]:.2f} and {values[1]:.2f} cycles; closed form {expected[0]:.2f} and {expected[1]:.2f}"


STAGES = (3, 5, 7)


def more_stages_gain_more(table: Table) -> Verdict:
    """Routers of 3, 5 and 7 stages: latency grows with them, little at low load, and prediction gains more."""
    found = Findings()
    of_stages = {stages: Compared(table.of("ss", stages=stages)) for stages in STAGES}
    lowest = min(both.saturation(router) for both in of_stages.values() for router in ("normal", "predicted"))
    latencies = {stages: _up_to(both, "predicted", 0.8 * lowest) for stages, both in of_stages.items()}
    loads = [load for load in latencies[3] if all(load in curve for curve in latencies.values())]
    rising = len(loads) > 2 and all(latencies[3][load] < latencies[5][load] < latencies[7][load] for load in loads)
    found.must(rising, f"latency with prediction rises with the stages at loads {', '.join(f'{load:.2f}' for load in loads)}")
    _judge_growth(found, of_stages)
    lower = {stages: {0.0: both.reduction_at_zero_load(), **both.reductions(0.8 * lowest)} for stages, both in of_stages.items()}
    grows = len(loads) > 2 and all(lower[3][load] < lower[5][load] < lower[7][load] for load in (0.0, *loads))
    text = "; ".join(f"{stages} stages {curves.text(curve)}" for stages, curve in lower.items())
    found.must(grows, f"reductions over load: {text} (they grow with the stages at every load)")
    for stages, both in of_stages.items():
        found.report(_beside_zero_load(stages, (both.zero_load("normal"), both.zero_load("predicted"))))
    return found.verdict()


def _up_to(both: Compared, router: str, most: float) -> Curve:
    """Give the latencies from zero load to the load ``most``."""
    return {0.0: both.zero_load(router), **{load: value for load, value in both.curve(router).items() if load <= most}}


def _judge_growth(found: Findings, of_stages: dict[int, Compared]) -> None:
    """Judge what four stages more cost: less at zero load than at 80 % of saturation, and less than without prediction."""
    growth = {router: of_stages[7].zero_load(router) - of_stages[3].zero_load(router) for router in ("normal", "predicted")}
    mark = 0.8 * of_stages[7].saturation("predicted")
    common = [load for load in of_stages[7].curve("predicted") if load <= mark and load in of_stages[3].curve("predicted")]
    near = max(common, default=math.nan)
    loaded = of_stages[7].curve("predicted").get(near, math.nan) - of_stages[3].curve("predicted").get(near, math.nan)
    text = f"T(7) - T(3) with prediction {growth['predicted']:.2f} at zero load, {loaded:.2f} at load {near:.3f}"
    found.must(growth["predicted"] < loaded, f"{text}, the last below 80 % of saturation (more)")
    ratio = growth["predicted"] / growth["normal"] if growth["normal"] else math.nan
    found.must(ratio < 1, f"of that without prediction, {growth['normal']:.2f}, at zero load: {ratio:.3f} (< 1)")


def steady_reduction(table: Table) -> Verdict:
    """In the system-area network latency is lower by the same part at all loads, and saturation is alike."""
    found = Findings()
    both = Compared(table.of("up"))
    at_zero = both.reduction_at_zero_load()
    found.within(at_zero, 0.16, 0.25, "reduction at zero load")
    loads = both.saturation("normal"), both.saturation("predicted")
    lower = both.reductions(0.8 * min(loads))
    steady = len(lower) > 1 and all(abs(value - at_zero) <= 0.05 for value in lower.values())
    found.must(steady, f"reductions up to 80 % of the lower saturation load: {curves.text(lower)} (within 0.05 of {at_zero:.3f})")
    apart = abs(loads[1] / loads[0] - 1) if max(loads) < math.inf else math.inf
    found.must(apart <= 0.15, f"saturation loads {loads[0]:.4f} and {loads[1]:.4f} apart by {apart:.3f} (<= 0.15)")
    return found.verdict()


def rises_past_fifteen_percent(table: Table) -> Verdict:
    """Both latencies rise sharply past 0.15 flits per node and cycle."""
    found = Findings()
    both = Compared(table.of("up", figure="F10"))
    for router in ("normal", "predicted"):
        found.within(both.saturation(router), 0.12, 0.18, f"saturation load, {router}")
    return found.verdict()


def reductions_by_flit_size(table: Table) -> Verdict:
    """From 8.3 % at flits of 8 bytes to 23.2 % at 256."""
    found = Findings()
    normal, predicted = _by_flit_size(table, "normal"), _by_flit_size(table, "up")
    lower = reductions(normal, predicted)
    found.near(lower, BY_FLIT_BYTES, 0.005, f"reductions {curves.text(lower, 4)}")
    found.near(lower, {8: 0.083, 256: 0.232}, 0.005, "beside the paper's")
    for name, curve in (("normal", normal), ("up-priority", predicted)):
        found.must(curves.rises(curve), f"{name} in cycles {curves.text(curve, 2)} (never falls)")
    return found.verdict()


def _by_flit_size(table: Table, series: str) -> dict[Any, float]:
    """Zero-load latency over the size of flits; flits as long as a packet are stored and forwarded."""
    rows = [*table.of(series).rows, *table.of(f"{series}-store-and-forward").rows]
    return Table(rows).curve(LATENCY, "flit_bytes")


def one_prediction_does_the_work_of_five(table: Table) -> Verdict:
    """The reduction by one prediction in the system-area network is about that by up to five on chip."""
    found = Findings()
    on_chip, system = reduction(table, "ocn-normal", "ocn-ss"), reduction(table, "san-normal", "san-up")
    holds = abs(system - on_chip) < 0.06
    found.must(holds, f"reduction on chip {on_chip:.4f}, system-area {system:.4f}; apart {abs(system - on_chip):.4f} (< 0.06)")
    hits = {name: [row["prediction_hits"] / row["measured_packets"] for row in table.of(name)] for name in ("ocn-ss", "san-up")}
    found.report(f"hits of a packet: {', '.join(f'{name} {value:.2f}' for name, values in hits.items() for value in values)}")
    return found.verdict()


def longer_ways_gain_more(table: Table) -> Verdict:
    """The reduction grows with the stages of a router and with the length of a link."""
    found = Findings()
    by_stages = reductions(*(table.of(f"{series}-zero-load").curve(LATENCY, "stages") for series in ("normal", "ss")))
    by_size = reductions(_by_flit_size(table, "normal"), _by_flit_size(table, "up"))
    for name, curve, places in (("stages", by_stages, (3, 5, 7)), ("bytes of a flit", by_size, tuple(BY_FLIT_BYTES))):
        holds = set(curve) == set(places) and curves.rises(curve)
        found.must(holds, f"reductions over {name}: {curves.text(curve, 4)} ({'they grow' if holds else 'they do not grow'})")
    return found.verdict()


def wrong_copies_leave(table: Table) -> Verdict:
    """Even where wrong copies leave and cost others, latency falls; and they do cost something."""
    found = Findings()
    forward, kill = Compared(table.of("forward")), Compared(table.of("kill"))
    found.must(forward.reduction_at_zero_load() > 0.02, f"reduction at zero load {forward.reduction_at_zero_load():.4f} (> 0.02)")
    lower = forward.reductions(math.inf)
    found.must(bool(lower) and min(lower.values()) > 0.02, f"at half of the normal saturation load {curves.text(lower)} (> 0.02)")
    wasted = [row["prediction_wasted_flits"] for row in table.of("forward", router="predicted", place="zero")]
    found.must(bool(wasted) and min(wasted) > 0, f"channel flits of dropped copies {wasted} (> 0)")
    one, other = forward.curve("predicted"), kill.curve("predicted")
    differ = bool(one) and all(one[load] != other.get(load, one[load]) for load in one)
    found.must(differ, f"latency {curves.text(one, 3)}, with kill {curves.text(other, 3)} (they differ)")
    loads = forward.saturation("predicted"), kill.saturation("predicted")
    found.must(loads[0] != loads[1], f"saturation loads {loads[0]:.4f}, with kill {loads[1]:.4f} (they differ)")
    return found.verdict()


def causes_of_the_gain(table: Table) -> Verdict:
    """A hit in the system-area network saves more by its stages and by the wait, most by the wait; hits down are rare."""
    found = Findings()
    saved = {name: _saved_by_a_hit(table, *name.split("-")) for name in ("san-stages", "san-wait", "san-both", "ocn-both")}
    text = ", ".join(f"{name} {value:.2f}" for name, value in saved.items())
    more = saved["san-stages"] > saved["ocn-both"] and saved["san-wait"] > saved["ocn-both"]
    found.must(more, f"cycles saved by a hit: {text} (stages and wait apart more than on chip)")
    found.must(saved["san-wait"] > saved["san-stages"], "the wait saves more than the stages")
    rows = table.of("ocn-both").rows
    rates = {way: _part(rows, f"prediction_hits_{way}", f"prediction_chances_{way}") for way in ("up", "turn", "down")}
    found.must(rates["down"] < 0.5 * rates["up"], f"hits of the chances on chip {curves.text(rates)} (down below half of up)")
    return found.verdict()


def _saved_by_a_hit(table: Table, network: str, what: str) -> float:
    """Give the cycles that a hit takes from the zero-load latency."""
    hits = _part(table.of(f"{network}-{what}").rows, "prediction_hits", "measured_packets")
    return (_mean(table.of(f"{network}-normal")) - _mean(table.of(f"{network}-{what}"))) / hits


def _part(rows: list[dict[str, Any]], one: str, whole: str) -> float:
    """Give the sum of a column over that of another; not a number where there is none."""
    total = math.fsum(row.get(whole) or 0 for row in rows)
    return math.fsum(row.get(one) or 0 for row in rows) / total if total else math.nan


def what_learning_gains(table: Table) -> Verdict:
    """Print hit rate and reduction of predictors that learn, over their tables; nobody judges it."""
    found = Findings()
    patterns = list(dict.fromkeys(row["pattern"] for row in table))
    for pattern in patterns:
        rows = [row for row in table if row["pattern"] == pattern]
        normal = _mean(Table(row for row in rows if str(row["series"]).startswith("normal")))
        for row in rows:
            name = str(row["series"]).removesuffix("-hotspot")
            if name != "normal":
                size = f" {row['entries']} lines, {row['history']} outputs" if "entries" in row else ""
                lower = 1 - row[LATENCY] / normal
                found.report(f"{pattern}, {name}{size}: hit rate {row['prediction_hit_rate']:.3f}, reduction {lower:.3f}")
    found.report("the paper's background: 90 % for local applications")
    return Verdict("report", found.verdict().measured)


def a_predictor_for_each_level(table: Table) -> Verdict:
    """Print hit rate and reduction of the best choices of a predictor for each level; nobody judges it."""
    found = Findings()
    normal = _mean(table.of("normal"))
    ranked = sorted(table.of("levels").rows, key=lambda row: float(row[LATENCY]))
    for row in [*ranked[:5], *(row for row in ranked if row["leaf"] == row["middle"] == row["top"])]:
        choice, lower = f"{row['leaf']}, {row['middle']}, {row['top']}", 1 - row[LATENCY] / normal
        found.report(f"{choice}: hit rate {row['prediction_hit_rate']:.3f}, reduction {lower:.3f}, table bits of a port {_bits(row)}")
    return Verdict("report", found.verdict().measured)


#: Bits of a line of a learning predictor's table on routers of 8 ports: an output, and for finite contexts a counter of two bits.
_LINE_BITS = {"latest-port": 3, "finite-context": 64 * (3 + 2)}


def _bits(row: dict[str, Any]) -> int:
    """Give the most bits of tables for an input port over the levels."""
    return max(_LINE_BITS.get(str(row[level]), 0) for level in ("leaf", "middle", "top"))


#: Cycles of the hint bits of a packet on a link: none, as the paper's figures have it, and one or two words of 8 bytes.
HINT_CYCLES = (0, 1, 2)


def what_hint_bits_cost(table: Table) -> Verdict:
    """Print the reductions over the size of a flit where the hint bits take time on each link; nobody judges it."""
    found = Findings()
    normal = _by_flit_size(table, "normal")
    for cycles in HINT_CYCLES:
        with_bits = Table(row for row in table if row.get("hint_cycles", cycles) == cycles)
        lower = reductions(normal, _by_flit_size(with_bits, "up"))
        found.report(f"hint bits of {cycles} cycles on a link: reductions over bytes of a flit {curves.text(lower, 4)}")
    return Verdict("report", found.verdict().measured)


#: What the predictor leaves of the clock rate (section 5).
CLOCK = 0.94


def in_nanoseconds(table: Table) -> Verdict:
    """Print the reductions in time, with a clock that is 6 % slower, and the stages from which prediction pays; nobody judges it."""
    found = Findings()
    on_chip = {stages: Compared(table.of("ss", figure="F9", stages=stages)) for stages in STAGES}
    in_time = {stages: 1 - (1 - both.reduction_at_zero_load()) / CLOCK for stages, both in on_chip.items()}
    found.report(f"on chip at zero load, over stages: {curves.text(in_time)}")
    system = Compared(table.of("up", figure="F10"))
    found.report(f"system-area network at zero load: {1 - (1 - system.reduction_at_zero_load()) / CLOCK:.3f}")
    pays = [stages for stages in range(1, 8) if on_chip_latency(stages, True) / CLOCK < on_chip_latency(stages, False)]
    found.report(f"by the closed form prediction pays from {min(pays)} stages on")
    return Verdict("report", found.verdict().measured)


def _latency(x: str, x_label: str, *split: str, top: float | None = None) -> Plot:
    return Plot(x, LATENCY, x_label, "mean packet latency (cycles)", split, top)


_OVER_LOAD = "offered load (flits/terminal/cycle)"
_BAR = (
    "saturation is the least load of the curve at which less than 0.95 of the offered load is accepted or the mean latency exceeds three "
    "times the zero-load latency of the router without prediction, for both; the search for saturation loads would take each router's own"
)
_INTERFACE = (
    "the 3 cycles in either network interface are calibrated from the ends of figure 11; closed form: T = 2L LT + 5 (2L - 1) + "
    "(flits - 1) LT + 7 cycles, less LT + 4 at a hit"
)

PAPER = Paper(
    "prediction-router",
    "Prediction router for low latency Fat Tree network",
    (
        Figure(
            "000-F1",
            "D",
            "the predictor of an input port whose buffer is empty lets the output be arbitrated before the packet arrives",
            "empty buffer, right prediction and idle output: 1 cycle in each router in place of 3",
            "structure",
            "flit",
            prediction_structure.one_cycle_at_a_hit,
        ),
        Figure(
            "000-F2",
            "D",
            "a hit skips RC and VSA; a miss takes all stages",
            "cycles of a head in a router: 1 at a hit; 3, 5, 7 at a miss and without prediction, exactly",
            "identity",
            "flit",
            prediction_structure.one_cycle_at_a_hit_and_all_stages_at_a_miss,
        ),
        Figure(
            "000-F3",
            "D",
            "static-straight connects ports one to one; at the top it folds back",
            "the observed outputs of hits are a one-to-one map of all inputs of every router",
            "structure",
            "flit",
            prediction_structure.connections_are_one_to_one,
            columns=prediction_structure.connections,
        ),
        Figure(
            "000-F4",
            "D",
            "a hint bit tells whether a packet goes on upwards",
            "for all pairs: hint >= level exactly if the prediction of an up port is right",
            "identity",
            "flit",
            prediction_structure.hints_tell_which_prediction_is_right,
            columns=prediction_structure.hints,
        ),
        Figure(
            "000-F5",
            "D",
            "the hint shows a wrong prediction before anything leaves",
            "0 wrong packets leave a port",
            "identity",
            "flit",
            prediction_structure.no_wrong_packet_leaves,
            columns=prediction_structure.hints,
        ),
        Figure(
            "000-F6",
            "D",
            "the (4, 4, 3) fat tree",
            "4 ports up, 4 down, 3 levels; 128 links between routers, bisection 32 links",
            "structure",
            "flit",
            prediction_structure.the_fat_tree,
            columns=prediction_structure.shape,
        ),
        Figure(
            "000-T1",
            "T",
            "the on-chip network: (4, 4, 3), up*/down*, wormhole, 2 virtual channels, 5 flits, 4-flit buffers, RC/VSA/ST",
            "64 terminals, 48 routers, and it runs",
            "structure",
            "flit",
            prediction_structure.on_chip_configuration,
        ),
        Figure(
            "000-T2",
            "T",
            "the system-area network: (16, 16, 2), store-and-forward or cut-through, 4 virtual channels, Des RC VSA ST Ser LT",
            "256 terminals, 32 routers, and both run",
            "structure",
            "flit",
            prediction_structure.system_area_configuration,
        ),
        Figure(
            "000-F7",
            "F",
            "on chip, static-straight cuts latency by about 20 % already at low load, and saturation improves",
            "reduction at zero load in [0.16, 0.24], up to 80 % of the normal saturation load >= 0.16; saturates later by more than 2 %",
            "derived",
            "flit",
            static_straight_cuts_latency,
            _latency(LOAD, _OVER_LOAD, "router", top=100),
            (_BAR,),
        ),
        Figure(
            "000-F8",
            "F",
            "hit rates of static-straight and up-priority rise with the size and level off at about 60 % and 45 %",
            "both rise; increments shrink from 2 levels on, the last below 0.01; static-straight above up-priority everywhere",
            "derived",
            "flit",
            prediction_hit_rates.hit_rates_rise_and_level_off,
            Plot("levels", prediction_hit_rates.RATE, "levels of the tree", "hit rate"),
        ),
        Figure(
            "000-C8",
            "C",
            "the levels of figure 8: about 60 % for static-straight, about 45 % for up-priority",
            "at 6, 7 and 8 levels in [0.55, 0.65] and [0.42, 0.48], each within 0.01 of the closed form",
            "calibrated",
            "flit",
            prediction_hit_rates.levels_of_the_hit_rates,
            notes=("that hits are counted over all routers crossed was chosen from these two figures",),
            runs_of=("F8",),
        ),
        Figure(
            "000-F9",
            "F",
            "with 3, 5 and 7 stages latency grows little with prediction, and prediction gains more",
            "latency and reduction rise with the stages at every load up to 80 % of saturation; T(7) - T(3) with prediction "
            "less at zero load than at 80 %, and less than without",
            "derived",
            "flit",
            more_stages_gain_more,
            _latency(LOAD, _OVER_LOAD, "stages", "router"),
        ),
        Figure(
            "000-F10",
            "F",
            "in the system-area network latency is about 20 % lower at all loads below saturation",
            "reduction at zero load in [0.16, 0.25], within 0.05 of it up to 80 % of the lower saturation load; saturation within 15 %",
            "derived",
            "flit",
            steady_reduction,
            _latency(LOAD, _OVER_LOAD, "router", top=600),
            (
                _BAR,
                _INTERFACE,
            ),
        ),
        Figure(
            "000-C7",
            "C",
            "both latencies rise sharply past 0.15 flits per node and cycle",
            "the saturation load of both routers is in [0.12, 0.18] with the buffers of table 2",
            "derived",
            "flit",
            rises_past_fifteen_percent,
            notes=("4 buffers of one packet each over a credit loop of about 70 cycles pass at most 4/70 of a packet a cycle",),
            runs_of=("F10",),
        ),
        Figure(
            "000-F11",
            "F",
            "the zero-load latency falls by 8.3 % with flits of 8 bytes, by 23.2 % with 256",
            "reductions within 0.005 of 8.33, 9.51, 11.56, 14.73, 18.87, 23.22 % for 8 to 256 bytes; latencies never fall with the size",
            "calibrated",
            "flit",
            reductions_by_flit_size,
            _latency("flit_bytes", "flit size (bytes)"),
            (_INTERFACE,),
        ),
        Figure(
            "000-C1",
            "C",
            "static-straight has more than twice the chances of up-priority, but not twice its hit rate",
            "hit rates, ss/up < 2 from 2 levels on; predictions, ss/up: told beside 2L - 1 against L, which hold by construction",
            "derived",
            "flit",
            prediction_hit_rates.more_chances_than_hits,
        ),
        Figure(
            "000-C2",
            "C",
            "the earlier paper's rates, up ports counted apart: about 35 % with 2 up ports, nearly constant",
            "(2, 4, r) in [0.32, 0.38] for 2 to 8 levels, spread below 0.04",
            "derived",
            "flit",
            prediction_hit_rates.rates_of_the_earlier_paper,
        ),
        Figure(
            "000-C9",
            "C",
            "the earlier paper's rates with one up port: about 40 %, nearly constant",
            "(1, 4, r) for 2 to 6 levels: mean in [0.36, 0.44] and spread below 0.04 for one of the two predictors",
            "derived",
            "flit",
            prediction_hit_rates.rates_with_one_up_port,
            runs_of=("C2",),
        ),
        Figure(
            "000-C3",
            "C",
            "counting any up port as right raises the hit rate",
            "static-straight on (4, 4, r), 2 to 4 levels: above counting the drawn port only by more than three standard errors",
            "derived",
            "flit",
            prediction_hit_rates.any_up_port_raises_the_rate,
        ),
        Figure(
            "000-C4",
            "C",
            "one prediction in the system-area network gains about as much as up to five on chip",
            "the reductions differ by less than 0.06",
            "derived",
            "flit",
            one_prediction_does_the_work_of_five,
            notes=(_INTERFACE,),
        ),
        Figure(
            "000-C5",
            "C",
            "longer pipelines and longer links gain more",
            "the reduction grows with the stages and with the size of a flit",
            "derived",
            "flit",
            longer_ways_gain_more,
            notes=(_INTERFACE,),
        ),
        Figure(
            "000-C6",
            "C",
            "even where wrong copies leave, latency falls",
            "reduction above 2 % at zero load and at half of the normal saturation load; dropped copies on channels; latency "
            "under load and saturation load differ from those with killed copies",
            "derived",
            "flit",
            wrong_copies_leave,
            _latency(LOAD, _OVER_LOAD, "router"),
        ),
        Figure(
            "000-C10",
            "C",
            "why a hit in the system-area network gains more: Des and Ser, and the wait for the packet; hits on the way down are rare",
            "a hit saves more cycles than on chip by its stages and by its wait, and by the wait more; on (4, 4, 3) the hit rate of "
            "chances down is below half of that up",
            "derived",
            "flit",
            causes_of_the_gain,
        ),
        Figure(
            "000-S1",
            "S",
            "better predictors, future work",
            "none: hit rate and reduction over the lines of the table and the history",
            "derived",
            "flit",
            what_learning_gains,
            Plot("entries", prediction_hit_rates.RATE, "lines of the table", "hit rate", ("pattern", "history"), 1.0),
        ),
        Figure(
            "000-S2",
            "S",
            "a predictor for each level",
            "none: hit rate and reduction of the best choices, and the bits of their tables",
            "derived",
            "flit",
            a_predictor_for_each_level,
        ),
        Figure(
            "000-S3",
            "S",
            "what hint bits cost on a link",
            "none: reduction over flit size with the time of the bits",
            "derived",
            "flit",
            what_hint_bits_cost,
            _latency("flit_bytes", "flit size (bytes)", "hint_cycles"),
            notes=(_INTERFACE, "closed form: bits of h cycles add 2 L h, one h on each link"),
        ),
        Figure(
            "000-S4",
            "S",
            "the rivals of section 5: lookahead, speculation, one cycle, Express virtual channels, an oracle",
            "none: latency over load and saturation load of each",
            "derived",
            "flit",
            prediction_rivals.rivals_side_by_side,
            _latency(LOAD, _OVER_LOAD, "router", top=100),
            (_BAR, "neighbor on the tree: the next terminal, for one step on in every digit would not be local there"),
        ),
        Figure(
            "000-S5",
            "S",
            "a prediction router's clock is 6 % slower",
            "none: reductions in ns; the number of stages from which prediction pays",
            "derived",
            "flit",
            in_nanoseconds,
            runs_of=("F9", "F10"),
        ),
    ),
)
