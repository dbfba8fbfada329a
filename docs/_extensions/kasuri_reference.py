"""Writes the reference pages that the program itself knows: keys of the experiment file, families, command line, columns.

They are made anew at each build in ``docs/reference/generated``, from the command beside the running Python, so that they say
what this version does.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent.parent
KASURI = Path(sys.executable).parent / "kasuri"

FAMILIES = {
    "topologies": ("Topologies", "network.topology"),
    "routings": ("Routings", "routing.algorithm"),
    "patterns": ("Traffic patterns", "traffic.pattern"),
    "processes": ("Injection processes", "traffic.process"),
    "allocators": ("Allocators", "router.vc_allocator` and `router.switch_allocator"),
    "predictors": ("Predictors", "router.predictor"),
    "collectives": ("Collective operations", "workload.collective"),
    "schedules": ("Schedules of collective operations", "workload.schedule"),
    "endpoints": ("Endpoints", "endpoint.model"),
}
Schema = dict[str, Any]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    return {"version": "1", "parallel_read_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write all generated pages; those that are the same already keep their time, so that Sphinx does not read them again."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    schema = json.loads(ask("schema"))
    pages = {
        "experiment-file": experiment_page(schema),
        "families": families_page(),
        "features": features_page(),
        "command-line": command_page(),
        "columns": columns_page(),
    }
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def ask(*arguments: str) -> str:
    """Run the command and give what it prints."""
    return subprocess.run([KASURI, *arguments], capture_output=True, text=True, check=True).stdout


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines) + "\n"


# --- the experiment file ---


def experiment_page(schema: Schema) -> str:
    """Write the keys of all sections, from the JSON Schema."""
    sections = schema["properties"]
    router, measure = sections["router"], sections["measure"]
    network = sections["network"]["allOf"][0]
    routing = sections["routing"]["allOf"][0]
    traffic = schema["$defs"]["traffic"]
    parts = [
        ("At the top of the file", "", {"properties": {key: sections[key] for key in ("title", "engine")}}),
        ("`[network]`", "Besides `topology` and the [topology's own keys](families.md#topologies):", network),
        ("`[routing]`", "Besides `algorithm` and the [routing's own keys](families.md#routings):", routing),
        ("`[router]`", "", router),
        (
            "`[traffic]`",
            "Besides `pattern` and `process` with [their](families.md#traffic-patterns) "
            "[own keys](families.md#injection-processes). Several classes stand in `[[traffic.class]]`; what a class leaves out it "
            "takes from `[traffic]`.",
            traffic,
        ),
        (
            "`[traffic]` with a trace",
            "In place of pattern and process: a [file of messages](../file-formats.md#trace-of-open-traffic).",
            sections["traffic"]["else"]["then"],
        ),
        ("`reply`", "The keys of `traffic.reply`.", schema["$defs"]["traffic.ReplyParameters"]),
        (
            "`[workload]`",
            "A closed workload in place of `[traffic]`: [collective operations and traces](../../how-to/collectives-and-traces.md).",
            sections["workload"]["anyOf"][0],
        ),
        (
            "`[endpoint]`",
            "Network interfaces, as a machine of their own or under a closed workload: `model`, and the constants of the "
            "[model](families.md#endpoints).",
            {"properties": {"model": {"type": "string", "description": "The model (`kasuri list endpoints`)."}}, "required": ["model"]},
        ),
        (
            "`[workload]` of `cenju4`",
            'The programs of the machine with `endpoint.model = "cenju4"`: [the Cenju-4](../../explanation/papers/cenju4.md).',
            sections["workload"]["anyOf"][1],
        ),
        (
            "`[workload]` of `dsm`",
            'The programs of the machine with `endpoint.model = "dsm"`: [virtual networks](../../explanation/papers/virtual-network.md).',
            sections["workload"]["anyOf"][2],
        ),
        (
            "`[[user]]`",
            "A user of the machine, in place of `[traffic]`: [several users](../../explanation/papers/virtual-network-users.md). "
            "`[user.traffic]` has the keys of `[traffic]`.",
            sections["user"]["items"],
        ),
        ("`[users]`", "What users have in common.", sections["users"]),
        (
            "`[faults]`",
            "What of the network is down from the beginning on: [fabrics](../../how-to/fabrics.md#links-and-routers-that-are-down).",
            sections["faults"],
        ),
        ("`[translation]`", "What finding a logical node in a table costs.", sections["translation"]),
        ("`[measure]`", "", measure),
        ("`[measure.booksim]`", 'Used where `measure.rules = "booksim"`.', schema["$defs"]["measure.BookSimRules"]),
        ("`[[plot]]`", "", sections["plot"]["items"]),
        (
            "`[record]`",
            "What a run writes into [`effective.toml`](../file-formats.md#the-output-folder). It changes no result.",
            sections["record"],
        ),
        *(
            (f"`[{name}]`", "How this engine computes, never what.", sections[name])
            for name in ("flit", "flow", "analysis")
            if sections.get(name, {}).get("properties")
        ),
    ]
    text = "# The keys of the experiment file\n\n"
    for heading, introduction, part in parts:
        text += f"## {heading}\n\n{introduction}\n\n{keys_table(schema, part)}\n"
    return text


def keys_table(schema: Schema, part: Schema) -> str:
    """Write one line for each key of a structure."""
    required = part.get("required", [])
    rows = []
    for key, value in part["properties"].items():
        default = "required" if key in required else literal(value.get("default"))
        rows.append([f"`{key}`", type_of(schema, value), default, description(schema, value)])
    return table(["key", "type", "default", "meaning"], rows)


def resolve(schema: Schema, value: Schema) -> Schema:
    """Follow a reference."""
    reference = value.get("$ref")
    return schema["$defs"][reference.removeprefix("#/$defs/")] if reference else value


def description(schema: Schema, value: Schema) -> str:
    """Give what a key means; where its values are words, what each word means."""
    text = value.get("description") or resolve(schema, value).get("description", "")
    whole = resolve(schema, only_form(value))
    words = [f'`"{form["const"]}"`: {form["description"]}' for form in whole.get("oneOf", []) if "const" in form and "description" in form]
    return " ".join([text.replace("\n", " "), *words])


def only_form(value: Schema) -> Schema:
    """Take the `null` of an optional value away."""
    forms = [form for form in value.get("anyOf", []) if form.get("type") != "null"]
    return forms[0] if len(forms) == 1 else value


def type_of(schema: Schema, value: Schema) -> str:
    """Name the type of a value in words."""
    value = resolve(schema, only_form(value))
    if "const" in value:
        return literal(value["const"])
    if "enum" in value:
        return " or ".join(literal(word) for word in value["enum"] if word is not None)
    forms = value.get("oneOf") or value.get("anyOf")
    if forms:
        return " or ".join(type_of(schema, form) for form in forms)
    kind = value.get("type", "any")
    kind = next(name for name in kind if name != "null") if isinstance(kind, list) else kind
    if kind == "array":
        return f"list of {type_of(schema, value['items'])}" if "items" in value else "list"
    if kind == "object" and "properties" in value:
        return "{ " + ", ".join(f"`{key}`" for key in value["properties"]) + " }"
    return {"integer": "whole number", "object": "table", "boolean": "true or false"}.get(kind, kind)


def literal(value: Any) -> str:
    """Write a value as TOML does."""
    if value is None:
        return ""
    if isinstance(value, dict):
        return "" if not value else "see its own keys"
    return f"`{json.dumps(value)}`"


# --- families ---


def families_page() -> str:
    """Write the members of all families with their keys, from `kasuri list`."""
    text = "# Topologies, routings, traffic\n\nWhat may stand in the experiment file, as `kasuri list` prints it.\n"
    for family, (heading, key) in FAMILIES.items():
        members = json.loads(ask("list", family, "--format", "json"))[family]
        text += f"\n## {heading}\n\nValues of `{key}`.\n"
        if all("collective" in member for member in members):
            rows = ([f"`{member['collective']}`", f"`{member['name']}`", member["summary"], member["source"]] for member in members)
            text += "\nThe first of each operation is its default.\n\n" + table(["collective", "name", "meaning", "source"], rows)
            continue
        if all("schema" not in member for member in members):
            text += "\n" + table(["name", "meaning"], ([f"`{member['name']}`", member["summary"]] for member in members))
            continue
        for member in members:
            text += member_text(member)
    return text


def member_text(member: Schema) -> str:
    """Write one member: what it is, its keys, an example, its source."""
    schema = member["schema"]
    summary = member["summary"][:1].upper() + member["summary"][1:]
    text = f"\n### `{member['name']}`\n\n{summary}.\n\n{schema.get('description', '')}\n\n"
    if schema.get("properties"):
        text += keys_table({"$defs": schema.get("$defs", {})}, schema) + "\n"
    if member["example"]:
        text += f"```toml\n{member['example']}\n```\n\n"
    return text + f"Source: {member['source']}.\n"


# --- what the engines can simulate ---

FEATURES = """# What each engine can simulate

The tables are those by which the engines themselves refuse an experiment, so they say what this version does. Every engine has canonical
routers with open traffic, on every topology, with every routing and pattern. A line is a feature beyond these and the key that asks for it.
`no` is refused, by `kasuri check` as by `kasuri run`, with all other refusals of the file. `left out` is what the engine's answer does not
depend on although the machine's would; the column [`not_modelled`](columns.md) names it.
"""
OF_LAYOUTS = """The engine has several layouts of the routers' state. It takes the fastest that has all features of an experiment;
`flit.layout` asks for one. They give the same results, bit for bit. Two features that no layout has together are refused together.
Output-queued routers are simulated packet by packet; their column says what they can be part of.

"""


def features_page() -> str:
    """Write the tables of the engines, from `kasuri list engines`."""
    text = FEATURES
    for engine in json.loads(ask("list", "engines", "--format", "json"))["engines"]:
        columns = list(engine["features"][0]["support"])
        text += f"\n## `{engine['name']}`\n\n{engine['summary'][:1].upper() + engine['summary'][1:]}.\n\n"
        text += OF_LAYOUTS if len(columns) > 1 else ""
        rows = (
            [feature["name"], f"`{feature['key']}`", *(feature["support"][column] for column in columns)] for feature in engine["features"]
        )
        text += table(["feature", "key", *(f"`{column}`" for column in columns)], rows)
    return text


# --- the command line and the columns ---


def command_page() -> str:
    """Write the help of the command and of each of its subcommands."""
    top = ask("--help")
    names = re.findall(r"(?m)^  ([a-z]+) {2,}", top.split("Commands:")[1].split("Options:")[0])
    text = f"# Command line\n\n```text\n{top.rstrip()}\n```\n"
    for name in names:
        if name != "help":
            text += f"\n## `kasuri {name}`\n\n```text\n{ask(name, '--help').rstrip()}\n```\n"
    return text


# What stands in a row before the results, see `RunRow::empty`.
HEAD = {
    "key": "the key of the run, which names its files",
    "title": "`title` of the experiment",
    "engine": "the engine",
    "status": "[how the run ended](../statuses.md)",
    "message": "what a reader of the row should know; mostly empty",
    "kasuri_version": "the version that computed the run",
    "kasuri_commit": "the commit of its sources, followed by `-dirty` if they were changed; empty if it was built without git",
    "schema_version": "the version of this table",
}


def columns_page() -> str:
    """Write the columns of results, from the table in the source."""
    source = (ROOT / "crates/kasuri/src/results.rs").read_text()
    listed = source.split("pub const COLUMNS")[1].split("\n];")[0]
    for name, value in re.findall(r'const (\w+): &str = "([^"]*)"', source):
        listed = re.sub(rf"column\((\s*){name},", rf'column(\1"{value}",', listed)
    columns = re.findall(r'column\(\s*"(\w+)",\s*("[^"]*"|RATE),\s*"([^"]*)",?\s*\)', listed)
    if len(columns) != listed.count("column("):
        raise ValueError("results.rs: a line of the table COLUMNS is not understood")
    if re.findall(r'columns\.insert\("(\w+)"', source) != list(HEAD):
        raise ValueError("results.rs: a row begins with other columns than this page says")
    rate = re.search(r'const RATE: &str = "([^"]*)"', source)
    unit = {"RATE": rate[1] if rate else ""}
    head = [[f"`{name}`", meaning] for name, meaning in HEAD.items()]
    rows = [[f"`{name}`", unit.get(how, how.strip('"')), meaning] for name, how, meaning in columns]
    return (
        "# The columns of results\n\n## What was run\n\n"
        + table(["column", "meaning"], head)
        + "\nThen the keys `network.topology`, `routing.algorithm`, `traffic.pattern`, `traffic.load`, `measure.seed`, "
        + "and every swept key; for a closed workload `workload.collective`, `workload.schedule`, `workload.message_flits`, "
        + "`workload.message_bytes` and `workload.trace` in place of the keys of `[traffic]`.\n"
        + "\n## What came out\n\nWhat is not known is empty (`null` in JSON), never 0.\n\n"
        + table(["column", "unit", "meaning"], rows)
    )
