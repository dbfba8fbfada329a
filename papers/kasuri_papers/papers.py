"""The table of papers. To add one: a module here with its figures, its folder in ``experiments/``, and a line in `PAPERS`."""

from __future__ import annotations

from kasuri.errors import ConfigError
from kasuri_papers import cenju4, mfs, mlfm, prediction_router, virtual_network
from kasuri_papers.figure import Figure, Paper

#: All papers, by the name that the command and the folder in ``experiments/`` have.
PAPERS: dict[str, Paper] = {
    paper.name: paper for paper in (mfs.PAPER, mlfm.PAPER, prediction_router.PAPER, cenju4.PAPER, virtual_network.PAPER)
}


def choose(names: list[str]) -> list[tuple[Paper, list[Figure]]]:
    """Give the papers and figures that are meant by ``PAPER`` or ``PAPER/FIGURE``; without a name all.

    Raises
    ------
    ConfigError
        No such paper or figure; the message lists those that there are.
    """
    chosen: dict[str, set[str]] = {}
    for name in names or list(PAPERS):
        paper_name, _, figure = name.partition("/")
        paper = PAPERS.get(paper_name)
        if paper is None:
            raise ConfigError(f"there is no paper `{paper_name}`; there are: {', '.join(PAPERS)}")
        ids = {known.id for known in paper.figures if not figure or figure in (known.id, known.number)}
        if not ids:
            raise ConfigError(f"`{paper_name}` has no figure `{figure}`; it has: {', '.join(known.number for known in paper.figures)}")
        chosen.setdefault(paper_name, set()).update(ids)
    return [(PAPERS[name], [figure for figure in PAPERS[name].figures if figure.id in ids]) for name, ids in chosen.items()]
