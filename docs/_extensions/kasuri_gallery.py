"""Makes the gallery: each experiment of ``examples/gallery`` with its command and its figures, and a drawing of each topology.

Runs that are kept in ``docs/_build/gallery`` are not computed again. A new file in ``examples/gallery`` is a new part of the page: its
title, the comment at its head, the file, and the plots that it asks for.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import matplotlib as mpl
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

mpl.use("agg")

ROOT = Path(__file__).resolve().parent.parent.parent
KASURI = Path(sys.executable).parent / "kasuri"
EXPERIMENTS = ROOT / "examples" / "gallery"

INTRODUCTION = """\
# Gallery

Each part is one file of `examples/gallery`: two commands make its figure.
"""
TOPOLOGIES = """
## Topologies

Each with the parameters of its example in the [reference](../reference/generated/families.md#topologies). Squares are routers; terminals
are drawn where there is space for them.
"""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_gallery)
    return {"version": "1", "parallel_read_safe": True}


def write_gallery(app: Sphinx) -> None:
    """Write the page and its figures."""
    folder = Path(app.srcdir) / "gallery"
    figures = folder / "generated"
    figures.mkdir(parents=True, exist_ok=True)
    results = Path(app.srcdir) / "_build" / "gallery"
    parts = [experiment_part(file, results / file.stem, figures) for file in sorted(EXPERIMENTS.glob("*.toml"))]
    text = INTRODUCTION + "".join(parts) + TOPOLOGIES + "".join(topology_parts(figures))
    page = folder / "generated.md"
    if not page.exists() or page.read_text() != text:
        page.write_text(text)


def experiment_part(file: Path, out: Path, figures: Path) -> str:
    """Run an experiment, draw what it asks for, and write its part of the page."""
    text = file.read_text()
    comment, _, body = text.partition("\n\n") if text.startswith("#") else ("", "", text)
    head, title = comment.split("\ntitle = ")[0], tomllib.loads(text)["title"]
    done = subprocess.run([KASURI, "run", file, "--out", out], check=False, capture_output=True, text=True)
    # With status 1 some run ended at max_cycles, near saturation; the figure marks it.
    if done.returncode not in (0, 1):
        raise ExtensionError(f"{file}: {done.stderr}")
    subprocess.run([sys.executable, "-m", "kasuri.plot", out, "--formats", "svg"], check=True, capture_output=True)
    pictures = ""
    for number, plot in enumerate(sorted((out / "plots").glob("*.svg"))):
        name = f"{file.stem}-{number}.svg"
        (figures / name).write_bytes(plot.read_bytes())
        pictures += f"![{title}](generated/{name})\n\n"
    words = " ".join(line.removeprefix("#").strip() for line in head.splitlines())
    commands = f"kasuri run examples/gallery/{file.name}\npython -m kasuri.plot out/{file.stem} --formats pdf"
    return f"\n## {title}\n\n{words}\n\n{pictures}```sh\n{commands}\n```\n\n```toml\n{body.strip()}\n```\n"


def topology_parts(figures: Path) -> list[str]:
    """Draw the example of each topology that needs no file."""
    import kasuri

    listed = subprocess.run([KASURI, "list", "topologies", "--format", "json"], check=True, capture_output=True, text=True).stdout
    parts = []
    for member in json.loads(listed)["topologies"]:
        parameters = tomllib.loads(member["example"])
        if "path" in parameters:
            continue
        network = kasuri.Network.from_topology(member["name"], **parameters)
        name = f"topology-{member['name']}.svg"
        kasuri.plot.save(kasuri.plot.draw_network(network), figures / name)
        summary = member["summary"][:1].upper() + member["summary"][1:]
        parts.append(f"\n### {network.name}\n\n{summary}.\n\n![{network.name}](generated/{name})\n")
    return parts
