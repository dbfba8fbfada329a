"""Tateshita et al., "Prediction router for low latency Fat Tree network": what guessing the output port before a packet arrives gains.

Series named ``normal`` have the router without prediction, ``ss`` the predictor static-straight and ``up`` up-priority. All are
measured by the flit engine; closed forms stand beside the measured values and feed no verdict but those of F8 and F11, whose
criteria name them. Hit rates are judged in `kasuri_papers.prediction_hit_rates`, the paper's diagrams and tables in
`kasuri_papers.prediction_structure`.
"""

from __future__ import annotations

import math
from typing import Any

from kasuri_papers import curves, prediction_hit_rates, prediction_structure
from kasuri_papers.curves import Curve
from kasuri_papers.figure import Figure, Findings, Paper, Plot, Table, Verdict
from kasuri_papers.prediction_hit_rates import hit_rate, turn

LATENCY, LOAD = "packet_latency_mean", "traffic.load"
#: Saturation: less than this part of the offered load is accepted, or the latency is above this multiple of the zero-load latency.
ACCEPTED_PART, LATENCY_BAR = 0.95, 3.0
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


def saturation_load(table: Table, bar: float) -> float:
    """Give the least load of a curve that is not sustained: too little accepted, or a mean latency above the bar; infinite if none."""
    latency, accepted = table.curve(LATENCY, LOAD), table.curve("accepted_throughput_mean", LOAD)
    unsustained = [load for load in latency if latency[load] > bar or accepted.get(load, 0.0) < ACCEPTED_PART * load]
    return min(unsustained, default=math.inf)


def _step_before(table: Table, load: float) -> float:
    """Give the distance of a load to the one below it in the curve: to so much is a saturation load known."""
    below = [other for other in table.curve(LATENCY, LOAD) if other < load]
    return load - max(below) if below and load < math.inf else math.inf


def _saturation_loads(found: Findings, table: Table, series: tuple[str, str], bar: float, width: float) -> tuple[float, float]:
    """Find the saturation loads of two routers under one bar; each must be known to ``width`` or to 2 % of itself."""
    loads = saturation_load(table.of(series[0]), bar), saturation_load(table.of(series[1]), bar)
    for name, load in zip(series, loads, strict=True):
        step = _step_before(table.of(name), load)
        found.must(step <= min(width, 0.02 * load) + 1e-9, f"{name} saturates at {load:.4f}, known to {step:.4f}")
    return loads


# --- figures -----------------------------------------------------------------------------------------------------------------------


def static_straight_cuts_latency(table: Table) -> Verdict:
    """About a fifth less latency at zero load, never more below saturation, and no earlier saturation."""
    found = Findings()
    found.within(reduction(table, "normal-zero-load", "ss-zero-load"), 0.17, 0.25, "reduction at zero load")
    zero = _mean(table.of("normal-zero-load"))
    normal, predicted = _saturation_loads(found, table, ("normal", "ss"), LATENCY_BAR * zero, 0.005)
    found.must(predicted >= normal - 0.005, f"saturation load {predicted:.3f} with prediction, {normal:.3f} without (>= that - 0.005)")
    worse = _loads_with_more_latency(table, min(normal, predicted))
    found.must(worse == [], f"loads below both at which prediction is slower by more than three standard errors: {worse} (none)")
    lower = reductions(table.of("normal").curve(LATENCY, LOAD), table.of("ss").curve(LATENCY, LOAD))
    found.report(f"reduction over load: {curves.text({load: lower[load] for load in lower if load < min(normal, predicted)})}")
    found.report(_beside_zero_load(table, 3, ("normal-zero-load", "ss-zero-load")))
    return found.verdict()


def _loads_with_more_latency(table: Table, limit: float) -> list[float]:
    """Loads below the limit at which the predicting router is slower, beyond noise, or has no value; all of them if there are none."""
    normal, ss = table.of("normal"), table.of("ss")
    latency, other = normal.curve(LATENCY, LOAD), ss.curve(LATENCY, LOAD)
    error, other_error = normal.standard_errors(LATENCY, LOAD), ss.standard_errors(LATENCY, LOAD)
    below = [load for load in latency if load < limit]
    noise = {load: 3 * math.hypot(error[load], other_error.get(load, 0.0)) for load in below}
    return [load for load in below if other.get(load, math.inf) > latency[load] + noise[load]] if below else [limit]


def _beside_zero_load(table: Table, stages: int, series: tuple[str, str]) -> str:
    values = [_mean(table.of(name)) for name in series]
    expected = [on_chip_latency(stages, predicted) for predicted in (False, True)]
    return f"{stages} stages: {values[0]:.2f} and {values[1]:.2f} cycles; closed form {expected[0]:.2f} and {expected[1]:.2f}"


def more_stages_gain_more(table: Table) -> Verdict:
    """Routers of 3, 5 and 7 stages: the reduction grows, and the predicting router slows down by much less."""
    found = Findings()
    normal, predicted = (table.of(f"{series}-zero-load").curve(LATENCY, "stages") for series in ("normal", "ss"))
    lower = reductions(normal, predicted)
    grows = set(lower) == {3, 5, 7} and lower[3] < lower[5] < lower[7]
    found.must(grows, f"reductions over stages {curves.text(lower)} ({'they grow' if grows else 'they do not grow'})")
    found.near(lower, {3: 0.21, 5: 0.30, 7: 0.36}, 0.04, "beside the paper's")
    if {3, 7} <= set(lower):
        growth = (predicted[7] - predicted[3]) / (normal[7] - normal[3])
        found.must(growth < 0.55, f"growth from 3 to 7 stages, of the normal router's: {growth:.3f} (< 0.55)")
    for stages in sorted(lower):
        of_stages = Table(row for row in table if row.get("stages") == stages)
        found.report(_beside_zero_load(of_stages, stages, ("normal-zero-load", "ss-zero-load")))
    unfolded = hit_rate("ss", 3, fold=False) * (2 * turn(3)[0] - 1)
    without = {stages: (stages - 1) * unfolded / on_chip_latency(stages, False) for stages in (3, 5, 7)}
    found.report(f"closed form of the reductions if nothing hits at the top: {curves.text(without)}")
    return found.verdict()


def steady_reduction(table: Table) -> Verdict:
    """In the system-area network latency is lower by the same part up to half the saturation load, and saturation is alike."""
    found = Findings()
    _judge_link(found, table, "")
    occupied = Findings()
    _judge_link(occupied, table, "occupied-")
    found.report(f"links that a flit occupies: {occupied.verdict().verdict}: {occupied.verdict().measured}")
    return found.verdict()


def _judge_link(found: Findings, table: Table, link: str) -> None:
    normal, up = f"{link}normal", f"{link}up"
    at_zero = reduction(table, f"{normal}-zero-load", f"{up}-zero-load")
    found.within(at_zero, 0.19, 0.25, "reduction at zero load")
    bar = LATENCY_BAR * _mean(table.of(f"{normal}-zero-load"))
    loads = _saturation_loads(found, table, (normal, up), bar, 0.005)
    finite = max(loads) < math.inf
    apart = abs(loads[1] / loads[0] - 1) if finite else math.inf
    found.must(apart <= 0.15, f"saturation loads {loads[0]:.4f} and {loads[1]:.4f} apart by {apart:.3f} (<= 0.15)")
    lower = reductions(table.of(normal).curve(LATENCY, LOAD), table.of(up).curve(LATENCY, LOAD))
    half = {load: value for load, value in lower.items() if load <= min(loads) / 2}
    steady = len(half) > 1 and all(abs(value - at_zero) <= 0.05 for value in half.values())
    found.must(finite and steady, f"reductions up to half of the lower one: {curves.text(half)} (within 0.05 of {at_zero:.3f})")
    later = {load: value for load, value in lower.items() if min(loads) / 2 < load <= 0.8 * min(loads)}
    found.report(f"reductions up to 80 %: {curves.text(later)}")
    found.report(f"saturation load {loads[0]:.4f}, of the paper's 0.15 flit/node/cycle {loads[0] / 0.15:.2f}")


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
    """Even where wrong copies leave and waste channels, latency falls."""
    found = Findings()
    latency = {series: _mean(table.of(f"{series}-zero-load")) for series in ("normal", "kill", "forward")}
    text = ", ".join(f"{series} {value:.2f}" for series, value in latency.items())
    found.must(latency["forward"] < latency["normal"], f"cycles at zero load: {text} (forward < normal)")
    wasted = [row["prediction_wasted_flits"] / row["measured_packets"] for row in table.of("forward-zero-load")]
    found.must(bool(wasted) and min(wasted) > 0, f"wasted flits of a packet {', '.join(f'{value:.2f}' for value in wasted)} (> 0)")
    for series in ("normal", "kill", "forward"):
        found.report(f"{series} over load {curves.text(table.of(series).curve(LATENCY, LOAD), 2)}")
    return found.verdict()


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
            "derived",
            "flit",
            prediction_structure.one_cycle_at_a_hit,
        ),
        Figure(
            "000-F2",
            "D",
            "a hit skips RC and VSA; a miss takes all stages",
            "cycles of a head in a router: 1 at a hit; 3, 5, 7 at a miss and without prediction, exactly",
            "derived",
            "flit",
            prediction_structure.one_cycle_at_a_hit_and_all_stages_at_a_miss,
        ),
        Figure(
            "000-F3",
            "D",
            "static-straight connects ports one to one; at the top it folds back",
            "the observed outputs of hits are a one-to-one map of all inputs of every router",
            "derived",
            "flit",
            prediction_structure.connections_are_one_to_one,
            columns=prediction_structure.connections,
        ),
        Figure(
            "000-F4",
            "D",
            "a hint bit tells whether a packet goes on upwards",
            "for all pairs: hint >= level exactly if the prediction of an up port is right",
            "derived",
            "flit",
            prediction_structure.hints_tell_which_prediction_is_right,
            columns=prediction_structure.hints,
        ),
        Figure(
            "000-F5",
            "D",
            "the hint shows a wrong prediction before anything leaves",
            "0 wrong packets leave a port",
            "derived",
            "flit",
            prediction_structure.no_wrong_packet_leaves,
            columns=prediction_structure.hints,
        ),
        Figure(
            "000-F6",
            "D",
            "the (4, 4, 3) fat tree",
            "4 ports up, 4 down, 3 levels; 128 links between routers, bisection 32 links",
            "derived",
            "flit",
            prediction_structure.the_fat_tree,
            columns=prediction_structure.shape,
        ),
        Figure(
            "000-T1",
            "T",
            "the on-chip network: (4, 4, 3), up*/down*, wormhole, 2 virtual channels, 5 flits, 4-flit buffers, RC/VSA/ST",
            "64 terminals, 48 routers, and it runs",
            "derived",
            "flit",
            prediction_structure.on_chip_configuration,
        ),
        Figure(
            "000-T2",
            "T",
            "the system-area network: (16, 16, 2), store-and-forward or cut-through, 4 virtual channels, Des RC VSA ST Ser LT",
            "256 terminals, 32 routers, and both run",
            "derived",
            "flit",
            prediction_structure.system_area_configuration,
        ),
        Figure(
            "000-F7",
            "F",
            "on chip, static-straight cuts latency by about 20 % already at low load, and saturation improves",
            "reduction at zero load in [0.17, 0.25]; below saturation never slower (three standard errors); saturates at >= normal - 0.005",
            "derived",
            "flit",
            static_straight_cuts_latency,
            _latency(LOAD, _OVER_LOAD, top=100),
            (_BAR,),
        ),
        Figure(
            "000-F8",
            "F",
            "hit rates of static-straight and up-priority rise with the size and level off at about 60 % and 45 %",
            "they never fall; at 6 levels in [0.56, 0.62] and [0.43, 0.48]; within 0.01 of the closed form; increments shrink",
            "derived",
            "flit",
            prediction_hit_rates.hit_rates_rise_and_level_off,
            Plot("levels", prediction_hit_rates.RATE, "levels of the tree", "hit rate"),
        ),
        Figure(
            "000-F9",
            "F",
            "with 3, 5 and 7 stages latency grows little with prediction, and prediction gains more",
            "reductions grow and are within 0.04 of 0.21, 0.30, 0.36; growth from 3 to 7 stages below 0.55 of the normal router's",
            "derived",
            "flit",
            more_stages_gain_more,
            _latency(LOAD, _OVER_LOAD, "stages"),
        ),
        Figure(
            "000-F10",
            "F",
            "in the system-area network latency is about 20 % lower at all loads below saturation",
            "reduction at zero load in [0.19, 0.25], within 0.05 of it up to half the saturation load; saturation alike within 15 %",
            "derived",
            "flit",
            steady_reduction,
            _latency(LOAD, _OVER_LOAD, top=600),
            (
                _BAR,
                _INTERFACE,
                "judged: links as a latency of 32 cycles; series `occupied` have links that a flit occupies for 32 cycles. The paper's "
                "0.15 flit/node/cycle is out of reach of 4 buffers of one packet each over a credit loop of about 70 cycles",
            ),
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
            "predictions, ss/up > 2 from 2 levels on; hit rates, ss/up < 2",
            "derived",
            "flit",
            prediction_hit_rates.more_chances_than_hits,
        ),
        Figure(
            "000-C2",
            "C",
            "the earlier paper's rates, up ports counted apart: about 35 % with 2 up ports, nearly constant",
            "(2, 4, r) in [0.32, 0.38] for 2 to 8 levels, spread below 0.04; (1, 4, r) is reported only",
            "derived",
            "flit",
            prediction_hit_rates.rates_of_the_earlier_paper,
        ),
        Figure(
            "000-C3",
            "C",
            "counting any up port as right raises the hit rate",
            "static-straight on (4, 4, 3): ratio to counting the drawn port only > 1.5",
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
            "zero-load latency below the normal router's; wasted flits above 0",
            "derived",
            "flit",
            wrong_copies_leave,
        ),
    ),
)
