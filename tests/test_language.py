"""The texts of page, figures and files: one table a language, the same keys, each named by code."""

from __future__ import annotations

import ast
import re
import string
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from seqviz.constants import MODELS
from seqviz.language import LANGUAGES, Language

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "seqviz"
TEXTS = PACKAGE / "texts"

KEYS = sorted(Language.of("en").texts)


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys_and_fields():
    english, chinese = (Language.of(code).texts for code in LANGUAGES)
    assert set(english) == set(chinese)
    for key, text in english.items():
        assert fields(text) == fields(chinese[key]), key


def test_a_language_says_counts_and_joins():
    english, chinese = Language.of("en"), Language.of("zh")
    assert Language.of(chinese) is chinese and Language.of("zh") is chinese
    assert (english.percent(0.934), chinese.percent(0.934)) == ("93 %", "93%")
    assert (english.percent(0.9996), english.percent(1)) == ("99.9 %", "100 %")
    assert (english.number(20_000_000), chinese.number(20_000_000)) == ("20.0 M", "2000 万")
    assert (english.number(64_657), chinese.number(250_000_000)) == ("65 k", "2.50 亿")
    assert (english.number(9_000), chinese.number(123_000_000)) == ("9 k", "1.23 亿")
    assert english.join(["One.", "Two."]) == "One. Two."
    assert chinese.join(["一。", "二。"]) == "一。二。"
    assert chinese.join("甲乙", "list") == "甲，乙"
    assert english.say("language.percent", number=3, other=4) == "3 %"
    assert english.within("language").say("percent", number=3) == "3 %"
    assert english.template("language.percent") == "{number} %"
    assert "percent" in english.within("language") and "percent" not in english


def test_what_no_text_can_say_is_told_in_one_line():
    with pytest.raises(ValueError, match=r"^expected language to be one of en, zh, got 'fr'$"):
        Language.of("fr")
    with pytest.raises(
        LookupError, match=r"^expected a key of seqviz/texts/en.toml, got 'a.b'; add"
    ):
        Language.of("en").within("a").say("b")
    with pytest.raises(
        LookupError, match=r"^expected a value of number for the text 'language.percent', got none$"
    ):
        Language.of("zh").say("language.percent")


# Names and units that stay as they are in Chinese.
NAMES = """
    RNN LSTM Transformer BLEU chrF sacreBLEU seqviz translate API Europarl v7 European Union Koehn Tatoeba CC BY
    Shift Enter FR nat tatoeba.org manythings.org anki CSV PNG SVG HTML JSON NumPy npz ELI5 p models lexicon.json evaluate
""".split()
PAGE = "page link queue tab model how drawing card note translate length attention stepping lab claims".split()
"""Tables of the page, with those in them."""
PAPERS = """
    Bahdanau Bojar Cho Diamos Gers GNMT Jelassi Jozefowicz Khandelwal Knowles MLPerf Neishi Pascanu Press Smith Sutskever
    Variš Vaswani Yoshinaga tanh fp16 fp32 GPU MiB KiB token python benchmarks/training.py Nd
""".split()
"""What the lab and the claims name besides."""


def test_no_text_of_one_language_in_the_other():
    for key, text in Language.of("en").texts.items():
        assert not re.search(CHINESE, text), key
    for key, text in Language.of("zh").texts.items():
        assert "您" not in text, key  # readers are addressed as 你
        table = key.rsplit(".", 1)[0]
        room = table.split(".")[0]
        if room not in PAGE:
            continue
        plain = re.sub(r"\{[^}]*\}", "", text)
        known = NAMES + PAPERS if room in ("lab", "claims") else NAMES
        for name in sorted(known, key=len, reverse=True):
            plain = re.sub(rf"(?<![A-Za-z]){re.escape(name)}(?![A-Za-z])", "", plain)
        assert not re.search("[A-Za-z]{2,}", plain), (key, plain)


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_table_is_empty(code: str):
    def check(table: dict[str, Any], name: str) -> None:
        assert table, f"[{name}] of {code}.toml"
        for key, value in table.items():
            if isinstance(value, dict):
                check(value, f"{name}.{key}")

    check(tomllib.loads((TEXTS / f"{code}.toml").read_text(encoding="utf-8")), "")


def test_no_text_is_empty_but_what_stands_between_sentences():
    for code in LANGUAGES:
        empty = [key for key, text in Language.of(code).texts.items() if not text.strip()]
        assert set(empty) <= {"language.between_sentences"}


CHINESE = "[\u3000-\u30ff\u4e00-\u9fff\uff00-\uffef]"
CHINESE_IN_CODE = {
    "data/noise.py": "characters that models do not know, drawn for training",
    "meaning.py": "what comes between Chinese meanings",
    "text_languages.py": "an example of its words",
    "translating/inputs.py": "the stops that end Chinese sentences",
}
"""Files that may hold Chinese characters, and why."""


def test_chinese_stands_in_the_tables_alone():
    files = [*PACKAGE.rglob("*.py"), PACKAGE.parent / "app.py"]
    found = {
        path.relative_to(PACKAGE).as_posix() if PACKAGE in path.parents else path.name
        for path in files
        if re.search(CHINESE, path.read_text(encoding="utf-8"))
    }
    assert found == set(CHINESE_IN_CODE)


# ---------------------------------------------------------------------------------------------
# Keys and the code that names them


@cache
def modules() -> tuple[tuple[str, frozenset[str], frozenset[str]], ...]:
    """Of every source file: its name, all its literals, and its f-strings as patterns."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        literals, patterns = set(), set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                literals.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [p.value if isinstance(p, ast.Constant) else None for p in node.values]
                # A pattern with hardly a letter of its own, beside a table's name, would stand for any key.
                own = "".join(p or "" for p in parts).rsplit(".", 1)[-1]
                if len(re.findall("[a-z]", own)) >= 3:
                    patterns.add("".join("[^.]+" if p is None else re.escape(p) for p in parts))
        found.append((path.name, frozenset(literals), frozenset(patterns)))
    return tuple(found)


def is_named(key: str) -> bool:
    """Whether some file has the key, or the name of its table and the rest of the key, or a model's."""
    table, name = key.rsplit(".", 1)
    for _, literals, patterns in modules():
        if key in literals or (table in literals and (name in literals or name in MODELS)):
            return True
        if any(re.fullmatch(pattern, key) for pattern in patterns):
            return True
        if table in literals and any(re.fullmatch(pattern, name) for pattern in patterns):
            return True
    return False


@pytest.mark.parametrize("table", sorted({key.rsplit(".", 1)[0] for key in KEYS}))
def test_code_names_every_key(table: str):
    assert [key for key in KEYS if key.rsplit(".", 1)[0] == table and not is_named(key)] == []


def test_the_search_for_names_misses_what_nobody_names():
    assert not is_named("language.nobody_asks_for_this") and not is_named("nowhere.percent")


def test_every_key_that_code_and_tests_say_exists():
    tests = [path for path in TESTS.glob("*.py") if path.name != Path(__file__).name]
    for path in sorted([*PACKAGE.rglob("*.py"), *tests]):
        source = path.read_text(encoding="utf-8")
        if not re.search(r"\bLanguage\b", source):
            continue  # its `say` tells of progress
        tree = ast.parse(source)
        literals = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
        tables = ["", *(f"{table}." for table in {k.rsplit(".", 1)[0] for k in KEYS} & literals)]
        for node in ast.walk(tree):
            name = getattr(node, "func", None)
            name = getattr(name, "attr", getattr(name, "id", ""))
            if isinstance(node, ast.Call) and name in ("say", "template"):
                keys = [a.value for a in node.args if isinstance(a, ast.Constant)]
                for key in keys:
                    # A line with spaces is progress; without a table, one without a dot another kind of text.
                    if " " in key or ((len(tables) == 1 or path in tests) and "." not in key):
                        continue
                    assert any(table + key in KEYS for table in tables), f"{path.name}: {key}"
