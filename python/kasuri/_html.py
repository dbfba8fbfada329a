"""Results as a compact table of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from kasuri import _columns

if TYPE_CHECKING:
    from kasuri.results import Results

#: Rows shown; of more the first and the last.
MAX_ROWS = 20


def table(results: Results, columns: Sequence[str]) -> str:
    """Write the rows as HTML: these columns, with their units and escaped values."""
    gap = len(results) > MAX_ROWS
    heads = "".join(f"<th>{escape(name)}{_unit(name)}</th>" for name in columns)
    first = results.rows[: MAX_ROWS // 2] if gap else results.rows
    lines = [_line(row, columns) for row in first]
    if gap:
        lines.append(f'<tr><td colspan="{len(columns)}" style="text-align: center">… {len(results) - MAX_ROWS} more …</td></tr>')
        lines += [_line(row, columns) for row in results.rows[-(MAX_ROWS // 2) :]]
    where = f" in <code>{escape(str(results.directory))}</code>" if results.directory else ""
    count = f"<p>{len(results)} run{'' if len(results) == 1 else 's'}{where}</p>"
    return f"<div>{count}<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"


def _line(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<td>{escape(_columns.cell(row, name))}</td>" for name in columns) + "</tr>"


def _unit(name: str) -> str:
    unit = _columns.UNITS.get(name, "1")
    return "" if unit == "1" else f'<br><span style="font-weight: normal">{escape(unit)}</span>'
