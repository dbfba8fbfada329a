"""Writes the pages: collects the sections of :mod:`kasuri.report.sections` and fills the templates."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from kasuri import _files, _kasuri
from kasuri.report import maps, sections
from kasuri.results import Results, read


def write(directory: str | Path, output: str | Path | None = None, *, plots: Sequence[str] = ()) -> Path:
    """Write the page about the results in a folder, and the table as Parquet next to the page.

    Parameters
    ----------
    directory : path-like
        A folder that ``kasuri run`` has written.
    output : path-like, optional
        The page; without it ``report.html`` in the folder.
    plots : sequence of str, optional
        Endings (``"svg"``, ``"pdf"``, ``"png"``): also write each plot into the folder's ``plots``.

    Returns
    -------
    pathlib.Path
        The page. It loads nothing from elsewhere.

    Raises
    ------
    ResultsError
        The folder holds no results, or a damaged file.
    FileError
        The page cannot be written.
    """
    directory = Path(directory)
    results = read(directory)
    results.save_parquet()
    figures = sections.plots(results, directory / "plots", plots)
    built = maps.Built(results)
    page = render(
        "report.html.j2",
        title=title_of(results),
        folder=directory.name,
        status=sections.status_counts(results),
        glance=sections.at_a_glance(results),
        times=sections.times_at_a_glance(results),
        spread=sections.spread_over_faults(results),
        plots=figures,
        networks=maps.networks(results, built),
        utilisation=maps.utilisation(results, built),
        table=sections.table(results),
        missing=sections.missing(results),
        input_text=results.input_text,
        meanings=sections.STATUS_MEANINGS,
        not_modelled=sorted({key for row in results for key in row.get("not_modelled") or []}),
        deadlocks=sections.deadlocks(results),
        versions=versions(results),
    )
    return replace(Path(output) if output else directory / "report.html", page)


def index(directories: Sequence[str | Path], output: str | Path) -> Path:
    """Write a page that leads to the reports of several folders, with the first plot of each.

    Parameters
    ----------
    directories : sequence of path-like
        Folders for which :func:`write` has made ``report.html``.
    output : path-like
        The page; it refers to the reports by their relative places, so the folders move together with it.

    Returns
    -------
    pathlib.Path
        The page.
    """
    output = Path(output)
    entries = []
    for number, directory in enumerate(map(Path, directories)):
        results = read(directory)
        entries.append(
            {
                "title": title_of(results),
                "link": Path(os.path.relpath(directory / "report.html", output.parent)).as_posix(),
                "runs": len(results),
                "status": sections.status_counts(results),
                "plot": next(iter(sections.plots(results, salt=f"index{number}", limit=1)), None),
            }
        )
    return replace(output, render("index.html.j2", entries=entries, versions=versions()))


def title_of(results: Results) -> str:
    """Give the experiment's title, or the folder's name where it has none."""
    titles = {row.get("title") for row in results} - {None, ""}
    if len(titles) == 1:
        return str(titles.pop())
    return str(results.input.get("title") or (results.directory.name if results.directory else "Results"))


def versions(results: Results | None = None) -> list[tuple[str, str]]:
    """Return the versions of the programs that made the results and the page."""
    import matplotlib

    made = sorted({_version(row.get("kasuri_version"), row.get("kasuri_commit")) for row in results or [] if row.get("kasuri_version")})
    lines = [("Kasuri, the runs", ", ".join(made))] if made else []
    return [
        *lines,
        ("Kasuri, this page", _version(_kasuri.__version__, _kasuri.__commit__)),
        ("Python", platform.python_version()),
        ("Matplotlib", matplotlib.__version__),
    ]


def _version(version: object, commit: object) -> str:
    return f"{version} (commit {commit})" if commit else str(version)


def render(template: str, *, home: str = "kasuri.report", **values: Any) -> str:
    """Fill a template of the package ``home``, which may include those of ``kasuri.report``; its text loads nothing from elsewhere."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package, "templates") for package in dict.fromkeys((home, "kasuri.report"))]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = resources.files("kasuri.report").joinpath("templates")
    style, script = (folder.joinpath(name).read_text() for name in ("page.css", "page.js"))
    return environment.get_template(template).render(style=style, script=script, **values)


def replace(path: Path, text: str) -> Path:
    """Write a page."""
    return _files.replace(path, lambda temporary: temporary.write_text(text))
