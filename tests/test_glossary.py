"""The names of public items keep to the words of docs/reference/glossary.md."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GLOSSARY = DOCS / "reference" / "glossary.md"

ITEM = re.compile(
    r"^\s*pub(?:\([^)]*\))? (?:(?:const|unsafe|async) )*(?:struct|enum|trait|fn|const|static|type|mod|union) (?:r#)?(\w+)", re.MULTILINE
)
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

#: Words that no name has: the word for it, and the folders and files where it means something else.
FORBIDDEN = {
    "way": ("path, or direction", ()),
    "circle": ("cycle", ()),
    # InfiniBand's virtual lanes, and the lanes of arbitrated flows.
    "lane": ("virtual channel", ("/arbitrated/", "kasuri/src/fabric/", "/tables.rs", "/format")),
    "told": ("reported, or described", ()),
    "tell": ("report, or notify", ()),
    "hear": ("receive", ()),
    "nobody": ("none", ()),
    "anew": ("again, or re-", ()),
    "beside": ("with, or extra", ()),
    "elsewhere": ("a noun", ()),
    "apart": ("separate", ()),
    "rarely": ("a noun", ()),
    "stand": ("is, or represent", ()),
    "whose": ("of", ()),
    "what": ("a noun", ()),
    "letter": ("message", ()),
    "asked": ("requested", ()),
    "thrown": ("discarded", ()),
    "unread": ("a noun", ()),
}

#: Names that have such a word still. It only shrinks.
REMAINING = {
    "Asked",
    "Beside",
    "NOBODY",
    "asked",
    "beside",
    "cut_anew",
    "is_one_way",
    "limit_elsewhere",
    "limits_elsewhere",
    "on_fixed_ways",
    "on_their_way",
    "ready_beside_express",
    "tell",
    "tell_ends",
    "ways",
}


def words(name: str) -> list[str]:
    """Split a name, and take the plural's s away: `LaneMaps` is lane and map."""
    found = [word.lower() for part in name.split("_") for word in WORD.findall(part)]
    return [word[:-1] if word.endswith("s") and not word.endswith("ss") else word for word in found]


@cache
def names() -> list[tuple[str, str]]:
    """All public items of the crates, each with its file."""
    files = [file for file in (ROOT / "crates").glob("*/src/**/*.rs") if file.name != "tests.rs"]
    texts = [(file, file.read_text().split("\n#[cfg(test)]\nmod tests {")[0]) for file in files]
    found = [(name, file.relative_to(ROOT / "crates").as_posix()) for file, text in texts for name in ITEM.findall(text)]
    assert len(found) > 2000
    return found


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_public_item_is_named_with_the_word(word):
    right, exceptions = FORBIDDEN[word]
    found = {name for name, file in names() if word in words(name) and not any(part in file for part in exceptions)}
    assert found - REMAINING == set(), f"`{word}`: use {right}"


def terms() -> list[str]:
    return [term for term in re.findall(r"^\| ([\w -]+) \| .+\|$", GLOSSARY.read_text(), re.MULTILINE) if term != "term"]


def test_every_term_has_one_meaning():
    assert 40 <= len(terms()) <= 60
    assert len(set(terms())) == len(terms())


def test_every_term_is_used():
    """In the name of a public item, or on at least two other pages."""
    of_names = {word for name, _ in names() for word in words(name)}
    pages = [page.read_text() for page in DOCS.rglob("*.md") if page != GLOSSARY and "_build" not in page.parts]
    unused = []
    for term in terms():
        is_named = all(word in of_names for word in words(term.replace(" ", "_")))
        if not is_named and sum(bool(re.search(rf"\b{term}s?\b", page, re.IGNORECASE)) for page in pages) < 2:
            unused.append(term)
    assert unused == []


def test_only_machines_have_nodes():
    """A type of this name belongs to a machine or its users, or to a reader of a file in which the word means something else."""
    places = r"/endpoint/|/users/|/translation/|cenju4|/format/|kasuri-formats/|/fabric/|/execution/"
    assert {file for name, file in names() if name in ("Node", "Nodes") and not re.search(places, file)} == set()
