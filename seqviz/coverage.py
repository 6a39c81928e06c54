"""Found or not found: does a French output hold a likely translation of each English content word?

    marks = coverage.mark("The cat sleeps.", "Le chien dort.")
    [word.text for word in marks if word.found is False]    # ["cat"]

For readers who know no French, and for models without attention. The answer comes from a lexical table
that IBM Model 1 (Brown et al. 1993) gives in both directions; "not found" is a sign that the word may
be missing, no proof: a free translation is not found either.

Words are lower-cased and stemmed (Snowball), accents are dropped. A source word that occurs more than
once needs as many matches, so that a dropped repeat shows; different source words may share a match
(*United States*, *États-Unis*).

Shapes: `N` sentences, `C` cells (one for each target word and source word of a sentence, the empty
word included on both sides), `U` different pairs of a source and a target word.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from snowballstemmer.english_stemmer import EnglishStemmer
from snowballstemmer.french_stemmer import FrenchStemmer

from seqviz.shipped import models_folder

SCHEMA = 1
MAX_WORDS = 25
"""Longer pairs say little about single words and cost the square of their length."""
ITERATIONS = 5
MIN_COUNT = 2
"""Stems that occur less often in the corpus share one id, which no entry is made of."""
MIN_ALIGNED = 1.5
"""Expected alignments below which a pair of stems is no entry."""
MIN_OF_ENGLISH = 0.015
"""A French stem is a translation from this share of the English stem's alignments on …"""
MIN_OF_FRENCH = 0.15
"""… or from this share of its own alignments on: rare inflected forms."""
MIN_EITHER = 0.004
"""In both cases the other share is at least this much."""
MIN_MEANING = 0.08
"""Share of a French stem's alignments from which on an English word is shown as a meaning."""
MAX_TRANSLATIONS, MAX_MEANINGS = 40, 3

FUNCTION_WORDS = frozenset(
    """
    a an the this that these those such each every either neither any some no none
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself
    it its itself we us our ours ourselves they them their theirs themselves one ones oneself
    who whom whose which what whatever whoever whichever when where why how whether
    am is are was were be been being have has had having do does did doing done
    will would shall should can could may might must ought cannot let
    not nor and or but if so than then as because although though unless until while whereas since
    of at by for with about against between into through during before after above below to from up down
    in out on off away over under upon onto toward towards within without along across around among amongst
    behind beside besides beyond despite except near per via like unlike throughout according
    there here thus hence therefore however too also just even only yet else ever
    don doesn didn isn aren wasn weren hasn haven hadn won wouldn shan shouldn couldn mustn mightn ain
    ll ve re
    """.split()
)
"""English words whose translation is grammar rather than a word."""

_IRREGULAR = {
    form: base
    for base, *forms in (
        line.split()
        for line in """
        become became/begin began begun/bite bit bitten/blow blew blown/break broke broken/bring brought
        build built/burn burnt/buy bought/catch caught/choose chose chosen/come came/deal dealt/dig dug
        draw drew drawn/dream dreamt/drink drank drunk/drive drove driven/eat ate eaten/fall fell fallen
        feed fed/feel felt/fight fought/find found/fly flew flown/forbid forbade forbidden
        forget forgot forgotten/forgive forgave forgiven/freeze froze frozen/get got gotten/give gave given
        go went gone/grow grew grown/hang hung/hear heard/hide hid hidden/hold held/keep kept/know knew known
        lay laid/lead led/learn learnt/leave left/lend lent/lie lay lain/lose lost/make made/mean meant
        meet met/pay paid/ride rode ridden/ring rang rung/rise rose risen/run ran/say said/see saw seen
        seek sought/sell sold/send sent/shake shook shaken/shine shone/shoot shot/show shown/sing sang sung
        sink sank sunk/sit sat/sleep slept/speak spoke spoken/spend spent/stand stood/steal stole stolen
        stick stuck/strike struck/swear swore sworn/sweep swept/swim swam swum/take took taken/teach taught
        tear tore torn/tell told/think thought/throw threw thrown/understand understood/wake woke woken
        wear wore worn/win won/withdraw withdrew withdrawn/write wrote written
        child children/foot feet/man men/tooth teeth/woman women/mouse mice/wife wives/life lives/knife knives
        good better best/bad worse worst
        """.replace("/", "\n").splitlines()
        if line.strip()
    )
    for form in forms
}
"""Forms that no stemmer reduces: they also have the translations of their base."""


class LexiconError(ValueError):
    """A lexicon cannot be used; the message says what was expected, what came, what to do next."""


class Word(NamedTuple):
    """One whitespace word of a source.

    Attributes:
        text: the word with its punctuation.
        content: whether there is anything to look for; False for function words and punctuation.
        found: whether the output holds a likely translation; None if the word is not content, or if
            the table knows nothing about it.
    """

    text: str
    content: bool
    found: bool | None


# ---------------------------------------------------------------------------------------------
# Words and stems

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?:[\s.,][0-9]{3})+(?![0-9])")
_ELISION = re.compile(r"(?:l|d|j|m|t|s|n|c|qu|jusqu|lorsqu|puisqu|quoiqu)'(?=.)")
_AFTER_HYPHEN = frozenset(
    "je tu il elle on nous vous ils elles ce t y en le la les lui leur moi toi ci là même mêmes".split()
)
_KEPT_WHOLE = frozenset(("rendez-vous",))
_LONGEST_STEMMED = 40
_SHORTEST_STEMMED = 4
_PLAIN = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-", "\u00ad": None})


def _plain(text: str) -> str:
    """Plain apostrophes and hyphens, composed accents, numbers without thousands separators."""
    text = unicodedata.normalize("NFC", text.translate(_PLAIN))
    return _THOUSANDS.sub(lambda found: re.sub(r"\D", "", found[0]), text)


def _english(text: str) -> list[str]:
    """Words of an English text, as they stand but without ``'s`` and other endings after an apostrophe."""
    words = []
    for word in _WORD.findall(_plain(text)):
        before, apostrophe, after = word.partition("'")
        if before.lower() == "o" and apostrophe:
            words.append(before + after)  # o'clock, O'Neill
        else:
            words.append(before.removesuffix("n") if after in ("t", "T") else before)
    return [word for word in words if word]


def _french(text: str) -> list[str]:
    """Lower-cased words of a French text; elisions and pronouns after a hyphen stand alone."""
    words = []
    for word in _WORD.findall(_plain(text).lower()):
        while elided := _ELISION.match(word):
            words.append(elided[0][:-1])
            word = word[elided.end() :]
        after = []
        if word not in _KEPT_WHOLE:
            while "-" in word and word.rpartition("-")[2] in _AFTER_HYPHEN:
                word, _, pronoun = word.rpartition("-")
                after.append(pronoun)
        words.append(word)
        words.extend(reversed(after))
    return words


def _fold(text: str) -> str:
    """Without accents and ligatures."""
    if text.isascii():
        return text
    text = text.replace("œ", "oe").replace("æ", "ae")
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


_english_stemmer, _french_stemmer = EnglishStemmer(), FrenchStemmer()


@lru_cache(maxsize=100_000)
def _english_stem(word: str) -> str:
    word = word.lower().replace("-", "").replace("'", "")
    return _fold(
        _english_stemmer.stemWord(word)
        if _SHORTEST_STEMMED <= len(word) <= _LONGEST_STEMMED
        else word
    )


@lru_cache(maxsize=100_000)
def _french_stem(word: str) -> str:
    word = word.replace("-", "").replace("'", "")
    return _fold(
        _french_stemmer.stemWord(word)
        if _SHORTEST_STEMMED <= len(word) <= _LONGEST_STEMMED
        else word
    )


# ---------------------------------------------------------------------------------------------
# IBM Model 1


@dataclass(frozen=True)
class Alignments:
    """What both directions of Model 1 say about the different pairs of words, each (U,).

    Attributes:
        source, target: ids of the pair; 0 is the empty word.
        forward: t(target | source).
        backward: t(source | target).
        aligned: expected number of alignments in which both directions agree.
    """

    source: np.ndarray
    target: np.ndarray
    forward: np.ndarray
    backward: np.ndarray
    aligned: np.ndarray


@dataclass(frozen=True)
class _Cells:
    """The cells of some sentences, in the order sentence, target word, source word.

    Attributes:
        pair: number of the pair of words of each cell, (C,).
        column: which source word (of all these sentences) a cell belongs to, (C,).
        row_lengths: cells of each target word.
        columns: source words of these sentences.
    """

    pair: np.ndarray
    column: np.ndarray
    row_lengths: np.ndarray
    columns: int

    def by_row(self, values: np.ndarray) -> np.ndarray:
        """Sum over the source words of each target word, at every cell, (C,)."""
        starts = np.cumsum(self.row_lengths) - self.row_lengths
        return np.repeat(np.add.reduceat(values, starts), self.row_lengths)

    def by_column(self, values: np.ndarray) -> np.ndarray:
        """Sum over the target words of each source word, at every cell, (C,)."""
        return np.bincount(self.column, values, self.columns)[self.column]


def _blocks(
    source_lengths: np.ndarray, target_lengths: np.ndarray, most: int
) -> Iterator[tuple[int, int]]:
    """Ranges of sentences with at most about so many cells."""
    cells = np.cumsum(source_lengths * target_lengths)
    first = 0
    while first < len(cells):
        before = cells[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(cells, before + most, side="right")))
        yield first, last
        first = last


def _cells_of(
    sources: np.ndarray,
    source_lengths: np.ndarray,
    targets: np.ndarray,
    target_lengths: np.ndarray,
    width: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys of the cells of some sentences, and their layout; see `_Cells`."""
    row_lengths = np.repeat(source_lengths, target_lengths)
    row_starts = np.cumsum(row_lengths) - row_lengths
    first_source = np.repeat(np.cumsum(source_lengths) - source_lengths, target_lengths)
    column = np.arange(row_lengths.sum()) + np.repeat(first_source - row_starts, row_lengths)
    keys = sources[column].astype(np.int64) * width + np.repeat(targets, row_lengths)
    return keys, column.astype(np.int32), row_lengths


def align(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    iterations: int = ITERATIONS,
    block: int = 6_000_000,
    progress: Callable[[str], None] = lambda line: None,
) -> Alignments:
    """Estimate IBM Model 1 in both directions by expectation and maximisation.

    Both start uniform. In each direction the given side has the empty word besides its own.

    Args:
        sources, targets: word ids of N sentences, from 1 on.
        iterations: steps of the estimation.
        block: cells that are worked on at once; memory is about 60 bytes for each, and 4 to 8 for
            each cell of the corpus.
    Source: Brown et al. 1993, section 4.1; agreement of two directions as in Liang et al. 2006, but
        only counted after the training.
    """
    source_lengths = np.array([len(s) + 1 for s in sources], np.int64)
    target_lengths = np.array([len(t) + 1 for t in targets], np.int64)
    flat_sources = np.array([i for s in sources for i in (0, *s)], np.int32)
    flat_targets = np.array([i for t in targets for i in (0, *t)], np.int32)
    width = int(flat_targets.max()) + 1
    source_ends, target_ends = np.cumsum(source_lengths), np.cumsum(target_lengths)

    blocks: list[_Cells] = []
    different: list[np.ndarray] = []
    inverses: list[np.ndarray] = []
    for first, last in _blocks(source_lengths, target_lengths, block):
        s = slice(source_ends[first] - source_lengths[first], source_ends[last - 1])
        t = slice(target_ends[first] - target_lengths[first], target_ends[last - 1])
        keys, column, row_lengths = _cells_of(
            flat_sources[s],
            source_lengths[first:last],
            flat_targets[t],
            target_lengths[first:last],
            width,
        )
        unique, inverse = np.unique(keys, return_inverse=True)
        different.append(unique)
        inverses.append(inverse.astype(np.int32))
        blocks.append(_Cells(inverses[-1], column, row_lengths, s.stop - s.start))
    keys = np.unique(np.concatenate(different))
    blocks = [
        _Cells(
            np.searchsorted(keys, u).astype(np.int32)[c.pair], c.column, c.row_lengths, c.columns
        )
        for u, c in zip(different, blocks, strict=True)
    ]
    del different, inverses
    source, target = (keys // width).astype(np.int32), (keys % width).astype(np.int32)
    del keys
    progress(f"{sum(len(c.pair) for c in blocks):,} cells, {len(source):,} pairs of stems")

    # An empty word explains but is not explained: its own probability is 0, in every step.
    forward = (target > 0).astype(np.float64)
    backward = (source > 0).astype(np.float64)
    tiny = np.finfo(np.float64).tiny
    for step in range(iterations):
        counts = np.zeros((2, len(source)))
        for cells in blocks:
            p = forward[cells.pair]
            counts[0] += np.bincount(cells.pair, p / np.maximum(cells.by_row(p), tiny), len(source))
            p = backward[cells.pair]
            counts[1] += np.bincount(
                cells.pair, p / np.maximum(cells.by_column(p), tiny), len(source)
            )
        forward = counts[0] / np.maximum(np.bincount(source, counts[0])[source], tiny)
        backward = counts[1] / np.maximum(np.bincount(target, counts[1])[target], tiny)
        progress(f"step {step + 1} of {iterations}")

    aligned = np.zeros(len(source))
    for cells in blocks:
        p, q = forward[cells.pair], backward[cells.pair]
        both = p / np.maximum(cells.by_row(p), tiny) * q / np.maximum(cells.by_column(q), tiny)
        aligned += np.bincount(cells.pair, both, len(source))
    return Alignments(source, target, forward, backward, aligned)


# ---------------------------------------------------------------------------------------------
# Making the table


def estimate(
    files: Sequence[tuple[str | os.PathLike[str], int]],
    *,
    pairs: int = 250_000,
    seed: int = 1,
    iterations: int = ITERATIONS,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Make a lexical table from corpora of English and French; `save` writes it.

    Args:
        files: corpus files, each with its share of the pairs: one with share 2 gives twice as many as
            one with share 1. A file with fewer pairs gives them all, and the others fill up.
        pairs: pairs that are read in all. Those with over `MAX_WORDS` words on a side do not count.
        seed: of the choice of pairs.
    Raises:
        CorpusError: see `seqviz.corpus.read_pairs`.
        LexiconError: nothing usable in the files.
    """
    from seqviz import corpus
    from seqviz.version import versions

    usable: list[list[tuple[str, str]]] = []
    for path, _ in files:
        usable.append(
            [
                (pair.source, pair.target)
                for pair in corpus.read_pairs(path)
                if pair.source.count(" ") + 1 <= MAX_WORDS >= pair.target.count(" ") + 1
            ]
        )
        progress(f"{Path(path).name}: {len(usable[-1]):,} pairs of at most {MAX_WORDS} words")
    wanted = _shares([len(rows) for rows in usable], [share for _, share in files], pairs)
    random = np.random.default_rng(seed)
    english, french = _Vocabulary(_english_stem), _Vocabulary(_french_stem)
    sources: list[list[int]] = []
    targets: list[list[int]] = []
    for rows, number in zip(usable, wanted, strict=True):
        for i in np.sort(random.choice(len(rows), number, replace=False)):
            words, others = _english(rows[i][0]), _french(rows[i][1])
            if words and others:
                sources.append(english.ids(words))
                targets.append(french.ids(others))
        rows.clear()
    progress(f"{len(sources):,} pairs, {len(english.words()):,} English words")
    if not sources:
        raise LexiconError(
            f"expected at least one pair with 1 to {MAX_WORDS} words on both sides, got none; "
            "check the columns of the files"
        )
    source_stems, target_stems = english.stem_ids(), french.stem_ids()
    aligned = align(
        [source_stems[s] for s in sources],
        [target_stems[t] for t in targets],
        iterations=iterations,
        progress=progress,
    )
    table = _select(aligned, english.stems, french.stems)
    meanings = _surfaces(
        table.meanings,
        [(s, source_stems[s].tolist()) for s in sources],
        [set(target_stems[t].tolist()) for t in targets],
        english,
        french,
    )
    return {
        "schema": SCHEMA,
        "data": [
            {"name": Path(path).name, "sha256": corpus.file_digest(path), "pairs": number}
            for (path, _), number in zip(files, wanted, strict=True)
        ],
        "pairs": len(sources),
        "seed": seed,
        "iterations": iterations,
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "translations": {e: " ".join(f) for e, f in sorted(table.translations.items())},
        "meanings": {f: " ".join(e) for f, e in sorted(meanings.items())},
    }


def _shares(counts: Sequence[int], shares: Sequence[int], total: int) -> list[int]:
    """How many of its pairs each file gives; what a small file cannot give, the others do."""
    given = [0] * len(counts)
    open_files = set(range(len(counts)))
    left = total
    while open_files:
        sum_of_shares = sum(shares[i] for i in open_files)
        small = {i for i in open_files if counts[i] * sum_of_shares <= left * shares[i]}
        for i in small or open_files:
            given[i] = counts[i] if small else left * shares[i] // sum_of_shares
        if not small:
            break
        left -= sum(counts[i] for i in small)
        open_files -= small
    return given


class _Vocabulary:
    """Ids of words and of their stems; stems are numbered from 2 on, rare ones share id 1."""

    def __init__(self, stem: Callable[[str], str]) -> None:
        self._stem = stem
        self._ids: dict[str, int] = {}
        self._counts: Counter[int] = Counter()
        self.stems: list[str] = ["", ""]

    def ids(self, words: Sequence[str]) -> list[int]:
        ids = [self._ids.setdefault(word, len(self._ids)) for word in words]
        self._counts.update(ids)
        return ids

    def words(self) -> list[str]:
        return list(self._ids)

    def stem_ids(self) -> np.ndarray:
        """The stem's id of every word."""
        stems = [self._stem(word) for word in self._ids]
        counts: Counter[str] = Counter()
        for number, stem in enumerate(stems):
            counts[stem] += self._counts[number]
        self.stems = ["", "", *(s for s, n in counts.items() if s and n >= MIN_COUNT)]
        numbers = {stem: number for number, stem in enumerate(self.stems) if stem}
        return np.array([numbers.get(stem, 1) for stem in stems], np.int32)


class _Table(NamedTuple):
    translations: dict[str, list[str]]  # English stem -> French stems, best first
    meanings: dict[str, list[str]]  # French stem -> English stems, best first


def _select(aligned: Alignments, english: Sequence[str], french: Sequence[str]) -> _Table:
    """Keep the pairs of stems that translate each other; see the constants above."""
    real = (aligned.source > 1) & (aligned.target > 1)
    source, target = aligned.source[real], aligned.target[real]
    count = aligned.aligned[real]
    tiny = np.finfo(np.float64).tiny
    of_english = count / np.maximum(np.bincount(source, count)[source], tiny)
    of_french = count / np.maximum(np.bincount(target, count)[target], tiny)
    likely = (
        (count >= MIN_ALIGNED)
        & ((of_english >= MIN_OF_ENGLISH) | (of_french >= MIN_OF_FRENCH))
        & (np.minimum(of_english, of_french) >= MIN_EITHER)
    )
    translations: dict[str, list[str]] = {}
    for i in np.flatnonzero(likely)[np.argsort(-of_english[likely], kind="stable")]:
        word = english[source[i]]
        if word not in FUNCTION_WORDS and len(row := translations.setdefault(word, [])) < (
            MAX_TRANSLATIONS
        ):
            row.append(french[target[i]])
    shown = (count >= MIN_ALIGNED) & (of_french >= MIN_MEANING)
    meanings: dict[str, list[str]] = {}
    for i in np.flatnonzero(shown)[np.argsort(-of_french[shown], kind="stable")]:
        if len(row := meanings.setdefault(french[target[i]], [])) < MAX_MEANINGS:
            row.append(english[source[i]])
    return _Table(translations, meanings)


def _surfaces(
    meanings: dict[str, list[str]],
    sources: Sequence[tuple[list[int], list[int]]],
    targets: Sequence[set[int]],
    english: _Vocabulary,
    french: _Vocabulary,
) -> dict[str, list[str]]:
    """Replace English stems by the word that stands most often opposite the French stem.

    The first word of a sentence hardly counts: its capital says nothing about the word.
    """
    number = {stem: i for i, stem in enumerate(english.stems)}
    wanted = [[number[e] for e in meanings.get(stem, ())] for stem in french.stems]
    seen: dict[tuple[int, int], Counter[int]] = {}
    for (words, stems), others in zip(sources, targets, strict=True):
        at = {
            stem: (word, 100 if i else 1)
            for i, (word, stem) in enumerate(zip(words, stems, strict=True))
        }
        for f in others:
            for e in wanted[f]:
                if e in at:
                    word, weight = at[e]
                    seen.setdefault((f, e), Counter())[word] += weight
    words = english.words()
    result: dict[str, list[str]] = {}
    for f, stem in enumerate(french.stems):
        rows = [seen[f, e].most_common(1)[0][0] for e in wanted[f] if (f, e) in seen]
        if rows:
            result[stem] = [words[i] for i in rows]
    return result


def save(content: dict[str, Any], path: str | os.PathLike[str], command: str) -> None:
    """Write what `estimate` returned, one entry a line, aside and then renamed."""
    from seqviz.report import write_text

    tables = ("translations", "meanings")
    head = {k: v for k, v in content.items() if k not in tables}
    head = {"schema": head.pop("schema"), "command": command, **head}
    lines = [json.dumps(head, ensure_ascii=False, indent=1).removesuffix("\n}")]
    for name in tables:
        rows = (
            json.dumps(key, ensure_ascii=False) + ": " + json.dumps(row, ensure_ascii=False)
            for key, row in content[name].items()
        )
        lines.append(f',\n "{name}": {{\n' + ",\n".join(rows) + "\n }")
    write_text(path, "".join(lines) + "\n}\n")


# ---------------------------------------------------------------------------------------------
# The table


class Lexicon:
    """Likely translations of English words, and likely meanings of French ones."""

    def __init__(self, translations: dict[str, str], meanings: dict[str, str]) -> None:
        """Hold two tables, both best first and separated by spaces.

        Args:
            translations: French stems by English stem.
            meanings: English words by French stem.
        """
        self._translations = translations
        self._meanings = meanings

    @classmethod
    def load(cls, path: str | os.PathLike[str] | None = None) -> Lexicon:
        """Read a table; None reads the shipped one, once.

        Raises:
            LexiconError: no such file, a damaged one, or one of another schema.
        """
        return _shipped() if path is None else _read(Path(path))

    def translations(self, english: str) -> tuple[str, ...]:
        """Likely French stems of an English word, best first; empty for what the table does not know."""
        base = _IRREGULAR.get(english.lower())
        return tuple(dict.fromkeys((*self._row(english), *(self._row(base) if base else ()))))

    def meanings(self, french: str) -> tuple[str, ...]:
        """Likely English words for a French word, best first, three at most; empty if unknown.

        Of a word with an elision (*l'école*) it is the last part's meaning.
        """
        for word in reversed(_french(french)):
            if row := self._meanings.get(_french_stem(word)):
                return tuple(row.split(" "))
        return ()

    def _row(self, english: str) -> list[str]:
        row = self._translations.get(_english_stem(english))
        return row.split(" ") if row else []


@cache
def _shipped() -> Lexicon:
    return _read(models_folder() / "lexicon.json")


def _read(path: Path) -> Lexicon:
    if not path.is_file():
        raise LexiconError(
            f"expected a lexicon at {path}, found none; check the path, or make one with 'seqviz lexicon'"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LexiconError(
            f"{path}: expected a lexicon in JSON, it cannot be read ({error}); restore the file or make "
            "it anew with 'seqviz lexicon'"
        ) from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise LexiconError(
            f"{path}: expected a lexicon of schema {SCHEMA}, got {schema!r}; make it anew with "
            "'seqviz lexicon'"
        )
    tables = [content.get(name) for name in ("translations", "meanings")]
    for table in tables:
        if not isinstance(table, dict) or not all(isinstance(row, str) for row in table.values()):
            raise LexiconError(
                f"{path}: expected translations and meanings, words by word; the file is damaged, "
                "restore it or make it anew with 'seqviz lexicon'"
            )
    return Lexicon(*tables)


# ---------------------------------------------------------------------------------------------
# Marking


class _Output:
    """Where an output holds which stems, spellings and numbers: numbers of its words."""

    def __init__(self, text: str) -> None:
        words = _french(text)
        self.length = len(words)
        self.stems: dict[str, list[int]] = {}
        self.spellings: dict[str, list[int]] = {}
        self.numbers: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            for part in {word, *word.split("-")}:
                self.stems.setdefault(_french_stem(part), []).append(place)
                self.spellings.setdefault(_fold(part), []).append(place)
            if digits := _DIGITS.match(word):
                self.numbers.setdefault(digits[0], []).append(place)


class _Wanted(NamedTuple):
    stem: str
    places: set[int] | None  # where the output may hold it; None if that cannot be judged


_DIGITS = re.compile("[0-9]+")


def mark(source: str, output: str, lexicon: Lexicon | None = None) -> list[Word]:
    """Say of each whitespace word of a source whether the output holds a likely translation.

    A number or a name must be spelled the same, or nearly. Of several words in one (*cat/dog*) at
    least half must be found.

    Args:
        source: English text.
        output: French text.
        lexicon: None takes the shipped one.
    Returns:
        one `Word` for each of ``source.split()``.
    """
    lexicon = lexicon or Lexicon.load()
    held = _Output(output)
    texts = source.split()
    capitals = source.upper() == source
    wanted: list[list[_Wanted]] = []
    looked: dict[tuple[str, bool], list[_Wanted]] = {}
    first = True
    for text in texts:
        row = []
        for word in _english(text):
            acronym = len(word) > 1 and word.isupper() and not capitals
            if acronym or word.lower() not in FUNCTION_WORDS:
                name = word[0].isupper() and not capitals and (acronym or not first)
                if (word, name) not in looked:
                    looked[word, name] = list(_look_for(word, name, held, lexicon))
                row.extend(looked[word, name])
        wanted.append(row)
        first = text.rstrip("\"')]")[-1:] in (".", "!", "?", ":")
    hits = _assign(wanted, held.length)
    return [
        Word(text, bool(row), _verdict([hits[i, k] for k in range(len(row))]))
        for i, (text, row) in enumerate(zip(texts, wanted, strict=True))
    ]


def counts(marks: Sequence[Word]) -> tuple[int, int]:
    """How many words were found, and how many were judged."""
    judged = [word.found for word in marks if word.found is not None]
    return sum(judged), len(judged)


def _look_for(word: str, name: bool, held: _Output, lexicon: Lexicon) -> Iterator[_Wanted]:
    """What of the output matches a content word; its parts if only they are known."""
    stem, spelling = _english_stem(word), _fold(word.lower())
    if digits := _DIGITS.match(word):
        places = set(held.numbers.get(digits[0], ()))
        yield _Wanted(
            digits[0], places.union(*(held.stems.get(t, ()) for t in lexicon.translations(word)))
        )
        return
    translations = lexicon.translations(word)
    parts = [p for p in word.split("-") if p and p.lower() not in FUNCTION_WORDS]
    if not translations and "-" in word and parts and spelling not in held.spellings:
        for part in parts:
            yield from _look_for(part, name, held, lexicon)
        return
    places = {place for t in translations for place in held.stems.get(t, ())}
    if not translations or not lexicon.meanings(spelling):
        # A French word of other meaning is no match: *car*, *pays*, *main*.
        places.update(held.spellings.get(spelling, ()))
    if name or not translations:
        for other, at in held.spellings.items():
            if _alike(spelling, other):
                places.update(at)
    yield _Wanted(stem, places if places or translations or name else None)


def _alike(one: str, other: str) -> bool:
    """Whether two spellings differ at most in their last letters (*Bosnia*, *Bosnie*)."""
    same = [a == b for a, b in zip(one, other, strict=False)]
    shared = same.index(False) if False in same else len(same)
    return shared >= max(4, 0.65 * max(len(one), len(other)))


def _assign(wanted: Sequence[Sequence[_Wanted]], length: int) -> dict[tuple[int, int], bool | None]:
    """Give the words of each stem as many hits as the output has; the nearest ones get them."""
    same: dict[str, list[tuple[int, int]]] = {}
    hits: dict[tuple[int, int], bool | None] = {}
    for i, row in enumerate(wanted):
        for k, (stem, places) in enumerate(row):
            hits[i, k] = None if places is None else bool(places)
            if places:
                same.setdefault(stem, []).append((i, k))
    for occurrences in same.values():
        each = {id(places): places for i, k in occurrences if (places := wanted[i][k].places)}
        places = set().union(*each.values())
        if len(occurrences) <= len(places):
            continue
        left = list(occurrences)
        for place in sorted(places):
            at = (place + 0.5) / length
            left.remove(min(left, key=lambda ik: abs((ik[0] + 0.5) / len(wanted) - at)))
        hits.update(dict.fromkeys(left, False))
    return hits


def _verdict(hits: Sequence[bool | None]) -> bool | None:
    judged = [hit for hit in hits if hit is not None]
    return 2 * sum(judged) >= len(judged) if judged else None


# ---------------------------------------------------------------------------------------------
# How far the marks can be trusted


def evaluate(lexicon: Lexicon, aligned: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Precision and recall of "not found" on hand-aligned pairs.

    Each English content word with a sure link is looked for twice: in the French as it is, where it
    should be found, and in the French without the words linked to it (sure or possible), where it
    should not. A word that cannot be judged is never flagged, and so lowers the recall.

    Args:
        aligned: pairs as in ``texts.json``: ``english``, ``french``, ``sure`` and ``possible`` links
            between whitespace words.
    Returns:
        ``pairs``, ``words`` (content words with a sure link), ``flagged_missing`` (of them, rightly
        not found), ``flagged_present`` (wrongly not found), ``precision``, ``recall`` and
        ``unjudged``, the share of words without a verdict on the French as it is; the three are 0–1,
        None where nothing was counted. ``errors`` lists each wrong verdict: word, text it was looked
        for in, expected.
    """
    words = missing = present = unjudged = 0
    errors: list[tuple[str, str, str]] = []
    for pair in aligned:
        english, french = pair["english"], pair["french"].split()
        sure = {source for source, _ in pair["sure"]}
        whole = mark(english, pair["french"], lexicon)
        for i in sorted(sure):
            if not whole[i].content:
                continue
            linked = {t for s, t in (*pair["sure"], *pair["possible"]) if s == i}
            rest = " ".join(word for t, word in enumerate(french) if t not in linked)
            without = mark(english, rest, lexicon)[i]
            words += 1
            unjudged += whole[i].found is None
            present += whole[i].found is False
            missing += without.found is False
            if whole[i].found is False:
                errors.append((whole[i].text, pair["french"], "found"))
            if without.found is not False:
                errors.append((whole[i].text, rest, "not found"))
    flagged = missing + present
    return {
        "pairs": len(aligned),
        "words": words,
        "flagged_missing": missing,
        "flagged_present": present,
        "precision": missing / flagged if flagged else None,
        "recall": missing / words if words else None,
        "unjudged": unjudged / words if words else None,
        "errors": errors,
    }
