"""Reading, cleaning, encoding, joining and batching of parallel corpora."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seqviz import corpus
from seqviz import tokenizer as tokenizers
from seqviz.corpus import CorpusError, Pair
from seqviz.data import kept
from seqviz.data.encoded import ARRAYS

LINES = b"d1\tThe bridge.\tLe pont.\nd1\tAn apple?\tUne pomme ?\nd2\tNobody.\tPersonne.\n"
PAIRS = [
    Pair("d1", "The bridge.", "Le pont."),
    Pair("d1", "An apple?", "Une pomme ?"),
    Pair("d2", "Nobody.", "Personne."),
]


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def write_pairs(path: Path, pairs: list[tuple[str, str, str]]) -> Path:
    return write(path, "".join("\t".join(pair) + "\n" for pair in pairs).encode())


def made_up(
    words: list[int],
    document: list[int] | None = None,
    source_pieces: list[int] | None = None,
    target_pieces: list[int] | None = None,
) -> corpus.EncodedCorpus:
    """An encoded corpus of given lengths; ids count up, so that each tells where it stands."""
    source_pieces = source_pieces or words
    target_pieces = target_pieces or words
    return corpus.EncodedCorpus(
        source=np.arange(sum(source_pieces)).astype(np.uint16),
        target=np.arange(sum(target_pieces)).astype(np.uint16),
        source_offsets=np.concatenate([[0], np.cumsum(source_pieces)]),
        target_offsets=np.concatenate([[0], np.cumsum(target_pieces)]),
        source_words=np.array(words, np.uint16),
        document=np.array(document or [0] * len(words), np.int32),
        information={"sha256": "0"},
    )


# ---------------------------------------------------------------------------------------------
# Reading


@pytest.mark.parametrize(
    ("name", "compress"),
    [("c.tsv", bytes), ("c.tsv.gz", gzip.compress), ("c.tsv.xz", lzma.compress)],
)
def test_reads_plain_and_compressed(tmp_path, name, compress):
    assert list(corpus.read_pairs(write(tmp_path / name, compress(LINES)))) == PAIRS


def test_quotes_are_text(tmp_path):
    path = write(tmp_path / "c.tsv", b'd\t"Open\tles "guillemets\nd\tNext\tSuite"\n')
    assert list(corpus.read_pairs(path)) == [
        Pair("d", '"Open', 'les "guillemets'),
        Pair("d", "Next", 'Suite"'),
    ]


@pytest.mark.parametrize(
    "character", ["\u2028", "\u2029", "\u0085", "\f", "\v", "\x1c", "\x1e", "\r"]
)
def test_only_a_newline_ends_a_line(tmp_path, character):
    path = write_pairs(
        tmp_path / "c.tsv", [("d", f"one{character}two", "un"), ("d", "three", "trois")]
    )
    assert [pair.source for pair in corpus.read_pairs(path)] == [f"one{character}two", "three"]


def test_byte_order_mark_and_carriage_returns_are_dropped(tmp_path):
    path = write(tmp_path / "c.tsv", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n"))
    assert list(corpus.read_pairs(path)) == PAIRS


def test_last_line_may_lack_its_newline(tmp_path):
    assert list(corpus.read_pairs(write(tmp_path / "c.tsv", LINES.rstrip(b"\n")))) == PAIRS


def test_empty_lines_are_passed_over(tmp_path):
    path = write(tmp_path / "c.tsv", b"\n" + LINES.replace(b"\n", b"\n\r\n") + b"\n")
    assert list(corpus.read_pairs(path)) == PAIRS


@pytest.mark.parametrize(
    ("line", "columns"), [(b"d\tonly two", 2), (b"a\tb\tc\td\te", 5), (b"one", 1), (b" ", 1)]
)
def test_wrong_number_of_columns(tmp_path, line, columns):
    path = write(tmp_path / "c.tsv", LINES + line + b"\n")
    with pytest.raises(
        CorpusError,
        match=rf"c\.tsv, line 4: expected 3 tab.*got {columns}; {'add' if columns < 3 else 'replace'}",
    ):
        list(corpus.read_pairs(path))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_wrong_encoding(tmp_path, mark):
    path = write(tmp_path / "c.tsv", mark + "d\tcoffee\tcaf\u00e9\n".encode("latin-1"))
    with pytest.raises(
        CorpusError, match="line 1: expected UTF-8, got byte 0xe9 at position 12; conv"
    ):
        list(corpus.read_pairs(path))


def test_utf16_is_said_to_be_no_utf8(tmp_path):
    path = write(tmp_path / "c.tsv", "d\ta\tb\n".encode("utf-16"))
    with pytest.raises(CorpusError, match="line 1: expected UTF-8, got byte 0xff"):
        list(corpus.read_pairs(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [("c.tsv", b""), ("c.tsv.gz", gzip.compress(b"", mtime=0)), ("c.tsv.xz", lzma.compress(b""))],
)
def test_empty_file(tmp_path, name, content):
    with pytest.raises(CorpusError, match="expected at least one line, the file is empty"):
        list(corpus.read_pairs(write(tmp_path / name, content)))


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("kept", [0.99, 0.5, 0.02])
def test_truncated_file(tmp_path, suffix, compress, kept):
    lines = b"".join(b"d\tsentence %d of many\tphrase %d\n" % (i, i * i) for i in range(5000))
    whole = compress(lines)
    path = write(tmp_path / f"c.tsv{suffix}", whole[: int(len(whole) * kept)])
    with pytest.raises(CorpusError, match=r"cannot be read past line \d+ .*copy it anew"):
        list(corpus.read_pairs(path))


@pytest.mark.parametrize(
    ("suffix", "compress", "position"), [(".gz", gzip.compress, 10), (".xz", lzma.compress, 100)]
)
def test_damaged_file(tmp_path, suffix, compress, position):
    lines = b"".join(b"d\tsentence %d of many\tphrase %d\n" % (i, i * i) for i in range(5000))
    whole = bytearray(compress(lines))
    whole[position : position + 64] = b"\xff" * 64
    path = write(tmp_path / f"c.tsv{suffix}", bytes(whole))
    with pytest.raises(CorpusError, match=r"cannot be read past line 0 .*copy it anew"):
        list(corpus.read_pairs(path))


def test_not_compressed_in_spite_of_its_name(tmp_path):
    for name in ("c.gz", "c.xz"):
        with pytest.raises(CorpusError, match="cannot be read past line 0"):
            list(corpus.read_pairs(write(tmp_path / name, LINES)))


def test_missing_file(tmp_path, tiny_tokenizer):
    with pytest.raises(
        CorpusError, match="expected a corpus file at .*none.tsv, found none; check"
    ):
        list(corpus.read_pairs(tmp_path / "none.tsv"))
    with pytest.raises(CorpusError, match="expected a corpus file at .*found none; check"):
        corpus.encode_corpus(tmp_path, tiny_tokenizer, tmp_path / "cache")


# ---------------------------------------------------------------------------------------------
# Cleaning and encoding


@pytest.fixture()
def file(tmp_path, sentence_pairs):
    """100 pairs, 4 documents."""
    pairs = [(f"d{i // 25}", en, fr) for i, (en, fr) in enumerate(sentence_pairs[:100])]
    return write_pairs(tmp_path / "clean.tsv", pairs)


def test_counts_what_is_dropped_and_why(tmp_path, tiny_tokenizer):
    good, other = ("d", "The green boat.", "Le bateau vert."), ("e", "Nobody.", "Personne.")
    held = ("d", "An apple today.", "Une pomme aujourd'hui.")
    path = write_pairs(
        tmp_path / "c.tsv",
        [
            good,
            good,  # repeats the line before
            other,
            good,  # does not: another one stands between
            ("d", " \u00a0", "Rien"),
            ("d", "Nothing", ""),
            ("d", "\u200b", "\u00ad"),  # nothing that can be seen
            (
                "d",
                "AN  Apple today.",
                "une POMME aujourd'hui.",
            ),  # held out, but for case and spaces
            ("d", "a " * 101, "une " * 50),
            ("d", "x" * 161, "une " * 50),
            ("d", "to " * 60, "z" * 201),
            ("d", "a", "une pomme, une pomme, une pomme, une pomme, une pomme"),
            ("d", "y" * 15_000, "z" * 5_001),
        ],
    )
    held_file = write_pairs(tmp_path / "held.tsv", [held, ("x", "Another.", "Une autre.")])
    encoded = corpus.encode_corpus(
        path, tiny_tokenizer, tmp_path / "cache", held_out=corpus.held_out_digests([held_file])
    )
    assert encoded.information["dropped"] == {
        "empty side": 3,
        "held out for testing": 1,
        "length ratio over 4": 1,
        "line over 20000 characters": 1,
        "over 100 source words": 1,
        "over 160 source pieces": 1,
        "over 200 target pieces": 1,
        "repeats the line before": 1,
    }
    assert len(encoded) == encoded.information["pairs"] == 3
    assert encoded.information["lines"] == 13
    assert encoded.information["documents"] == 2
    assert encoded.document.tolist() == [0, 1, 0]
    assert encoded.source_words.tolist() == [3, 1, 3]
    assert encoded.information["sha256"] == corpus.file_digest(path)
    assert encoded.information["source_pieces"] == len(encoded.source)
    assert encoded.information["target_pieces"] == len(encoded.target)


def test_caps_are_inclusive(tmp_path, tiny_tokenizer):
    """Exactly 100 words and exactly 160 source pieces stay."""
    words = " ".join(["a"] * 100)
    start = len(tiny_tokenizer("x" * 150, add_special_tokens=False).input_ids)
    pieces = "x" * (160 + 150 - start)
    assert len(tiny_tokenizer(pieces, add_special_tokens=False).input_ids) == 160
    path = write_pairs(tmp_path / "c.tsv", [("d", words, words), ("d", pieces, pieces)])
    encoded = corpus.encode_corpus(path, tiny_tokenizer, tmp_path / "cache")
    assert encoded.source_words.tolist() == [100, 1]
    assert np.diff(encoded.source_offsets).tolist()[1] == 160


def test_ids_are_those_of_the_tokenizer(file, tmp_path, tiny_tokenizer):
    encoded = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache", chunk_size=7)
    assert len(encoded) == 100
    for number, pair in enumerate(corpus.read_pairs(file)):
        source, target = encoded.ids(number)
        assert source.tolist() == tiny_tokenizer(pair.source).input_ids[:-1]
        assert target.tolist() == tiny_tokenizer(pair.target).input_ids[:-1]
        assert encoded.source_words[number] == len(pair.source.split())
        assert encoded.document[number] == number // 25


def test_chunks_do_not_matter(file, tmp_path, tiny_tokenizer):
    one = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "one", chunk_size=3)
    all_at_once = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "all")
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(all_at_once, name))
    assert one.information == all_at_once.information


def test_control_text_is_encoded_as_text(tmp_path, tiny_tokenizer):
    path = write_pairs(tmp_path / "c.tsv", [("d", "an </s> <pad> apple", "une </s> <unk> pomme")])
    encoded = corpus.encode_corpus(path, tiny_tokenizer, tmp_path / "cache")
    special = {0, 1, tiny_tokenizer.pad_token_id}
    assert special.isdisjoint(encoded.source.tolist() + encoded.target.tolist())


@pytest.mark.parametrize(
    "asked",
    [
        {"truncation": True, "max_length": 4},
        {"padding": "max_length", "max_length": 60},
        {"split_special_tokens": False},
    ],
)
def test_what_was_asked_of_the_tokenizer_before_does_not_matter(
    file, tmp_path, tiny_tokenizer_folder, asked
):
    """A fast tokenizer remembers what its last call asked for."""
    with file.open("a", encoding="utf-8") as stream:
        stream.write("z\tNobody </s> today.\tPersonne aujourd'hui.\n")
    fresh = tokenizers.load(tiny_tokenizer_folder)
    expected = corpus.encode_corpus(file, fresh, tmp_path / "fresh")
    used = tokenizers.load(tiny_tokenizer_folder)
    used(["an apple", "a"], **asked)
    got = corpus.encode_corpus(file, used, tmp_path / "used")
    assert len(got) == 101
    np.testing.assert_array_equal(got.source, expected.source)
    np.testing.assert_array_equal(got.target_offsets, expected.target_offsets)
    caches = [[p.name for p in (tmp_path / name).iterdir()] for name in ("used", "fresh")]
    assert caches[0] == caches[1]


def test_cache_is_reused_and_memory_mapped(file, tmp_path, tiny_tokenizer, monkeypatch):
    first = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache")
    monkeypatch.setattr(kept, "numbered_lines", None)  # a second reading would fail
    second = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache")
    for name in ARRAYS:
        array = getattr(second, name)
        assert isinstance(array, np.memmap) and not array.flags.writeable
        np.testing.assert_array_equal(array, getattr(first, name))
    assert second.information == first.information


def test_cache_is_made_anew_when_the_input_changes(file, tmp_path, tiny_tokenizer):
    cache = tmp_path / "cache"

    def folders():
        return sorted(p.name for p in cache.iterdir())

    corpus.encode_corpus(file, tiny_tokenizer, cache)
    before = folders()
    copy = shutil.copy(file, tmp_path / "copy.tsv")
    corpus.encode_corpus(copy, tiny_tokenizer, cache)
    assert folders() == before  # same content, same arrays

    with file.open("a", encoding="utf-8") as stream:
        stream.write("z\tNobody.\tPersonne.\n")
    assert len(corpus.encode_corpus(file, tiny_tokenizer, cache)) == 101
    held = frozenset([corpus.pair_digest("Nobody.", "Personne.")])
    assert len(corpus.encode_corpus(file, tiny_tokenizer, cache, held_out=held)) == 100
    sentences = [text for pair in corpus.read_pairs(file) for text in pair[1:]]
    other = tokenizers.train(sentences, tmp_path / "other", vocabulary_size=200, num_threads=1)
    smaller = corpus.encode_corpus(file, other, cache)
    assert int(smaller.source.max()) < 200
    assert len(folders()) == 4


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt(), MemoryError()])
def test_nothing_half_written_after_an_exception(
    file, tmp_path, tiny_tokenizer, monkeypatch, error
):
    cache = tmp_path / "cache"
    save = np.save
    calls = []

    def failing(path, array):
        calls.append(path)
        if len(calls) == 4:
            Path(path).write_bytes(b"half")
            raise error
        save(path, array)

    with monkeypatch.context() as patch:
        patch.setattr(np, "save", failing)
        with pytest.raises(type(error)):
            corpus.encode_corpus(file, tiny_tokenizer, cache)
    assert len(calls) == 4
    assert list(cache.iterdir()) == []
    assert len(corpus.encode_corpus(file, tiny_tokenizer, cache)) == 100


@pytest.mark.parametrize(
    "bad",
    [b"two\tcolumns\n" * 2, "d\tcoffee\tcaf\u00e9\n".encode("latin-1") * 2, b"d\t\0\t\0\n" * 2],
)
def test_a_file_of_another_kind_is_refused(tmp_path, tiny_tokenizer, bad):
    """More than a tenth of the lines without a pair: the file is wrong, not a few lines."""
    path = write(tmp_path / "c.tsv", LINES * 3 + bad)
    with pytest.raises(
        CorpusError,
        match=r"c\.tsv: expected a pair in nearly .*got 2 of 11 .*first, line 10: expected",
    ):
        corpus.encode_corpus(path, tiny_tokenizer, tmp_path / "cache", chunk_size=2)
    assert not (tmp_path / "cache").exists()


KNOCKS = {
    b"d\tx\t" + b"y " * 2_500_000 + b"\n": "line over 20000 characters",
    b"d\tonly two\n": "not 3 columns",
    b"d\tone\ttwo\tthree\n": "not 3 columns",
    b"d\ta\xff\tb\n": "not UTF-8",
    b"d\tcaf\xe9\tcaf\xe9\n": "not UTF-8",
    b"d\ta\0b\tc\n": "NUL character",
}
ODD = {
    'd\t"Hello, Ann.\tBonjour, Anne.\n': "quotation mark without its partner",
    "d\tHello, Ann.\tBonjour,\u2028Anne.\n": "line separator inside a line",
    "d\tHello,\u0085Ann.\tBonjour, Anne.\n": "line separator inside a line",
    "d\tHello,\fAnn.\tBonjour, Anne.\n": "line separator inside a line",
    "d\tHello,\rAnn.\tBonjour, Anne.\n": "line separator inside a line",
    "d\tHello, Ann!\tBonjour, Anne !\r\n": "line end with carriage return",
}


def knocked(path, clean):
    """`clean` with a byte-order mark and every knock between its lines; where each stands."""
    lines = clean.read_bytes().splitlines(keepends=True)
    lines[0] = b"\xef\xbb\xbf" + lines[0]
    knocks = [*KNOCKS.items(), *((text.encode(), what) for text, what in ODD.items())]
    first_lines = {"byte-order mark": 1}
    for number, (raw, what) in enumerate(knocks):
        at = 7 * (number + 1)
        lines.insert(at, raw)
        first_lines.setdefault(what, at + 1)
    write(path, b"".join(lines))
    return first_lines


def test_hard_knocks_are_counted_named_and_harmless(file, tmp_path, tiny_tokenizer):
    first_lines = knocked(tmp_path / "knocked.tsv", file)
    encoded = corpus.encode_corpus(tmp_path / "knocked.tsv", tiny_tokenizer, tmp_path / "cache")
    information = encoded.information
    assert information["dropped"] == {
        "NUL character": 1,
        "line over 20000 characters": 1,
        "not 3 columns": 2,
        "not UTF-8": 2,
    }
    assert information["odd"] == {
        "byte-order mark": 1,
        "line end with carriage return": 1,
        "line separator inside a line": 4,
        "quotation mark without its partner": 1,
    }
    assert information["first_lines"] == first_lines
    assert (information["lines"], information["pairs"]) == (112, 106)
    said = corpus.findings(information)
    assert said.startswith(
        "knocked.tsv: 106 of 112 lines kept; dropped: 1 NUL character (first: line"
    )
    for what, number in first_lines.items():
        assert f" {what} (first: line {number})" in said
    assert "\n" not in said

    # Every clean line has the ids it has in the clean file, in the same order.
    clean = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache")
    ids = [[side.tolist() for side in encoded.ids(n)] for n in range(len(encoded))]
    expected = [[side.tolist() for side in clean.ids(n)] for n in range(len(clean))]
    odd = [pair for pair in ids if pair not in expected]
    assert [pair for pair in ids if pair not in odd] == expected
    assert len(odd) == 6
    # A separator inside a sentence is a space, not the end of the line.
    hello = [tiny_tokenizer(text).input_ids[:-1] for text in ("Hello, Ann.", "Bonjour, Anne.")]
    assert odd.count(hello) == 4


def test_left_overs_of_killed_calls_go(file, tmp_path, tiny_tokenizer):
    """But for those of today, which may be another process's work."""
    cache = tmp_path / "cache"
    for name in (".encoding-old", ".encoding-new"):
        (cache / name).mkdir(parents=True)
    os.utime(cache / ".encoding-old", (0, 0))
    corpus.encode_corpus(file, tiny_tokenizer, cache)
    assert {path.name for path in cache.glob(".*")} == {".encoding-new"}


def test_a_clean_file_has_nothing_to_say(file, tmp_path, tiny_tokenizer):
    information = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache").information
    assert information["dropped"] == information["odd"] == information["first_lines"] == {}
    assert corpus.findings(information) == "clean.tsv: 100 of 100 lines kept"


def test_findings_of_an_older_version(file, tmp_path, tiny_tokenizer):
    """What an older version encoded is used as it is, so that its runs go on."""
    information = {"name": "old.tsv", "pairs": 9, "lines": 12, "dropped": {"empty side": 3}}
    assert corpus.findings(information) == "old.tsv: 9 of 12 lines kept; dropped: 3 empty side"


def test_unusable_lines_are_passed_over_on_demand(tmp_path):
    path = write(tmp_path / "c.tsv", b"d\tone\n" + LINES + b"d\t\xff\tx\n")
    found = []
    pairs = corpus.read_pairs(path, unusable=lambda number, why: found.append((number, why.reason)))
    assert list(pairs) == PAIRS
    assert found == [(1, "not 3 columns"), (5, "not UTF-8")]


def test_two_processes_at_once(file, tmp_path, tiny_tokenizer, monkeypatch):
    """Another process finishes the same arrays while this one works: both read them."""
    cache, other = tmp_path / "cache", tmp_path / "other"
    corpus.encode_corpus(file, tiny_tokenizer, other)
    replace = os.replace

    def late(source, target):
        shutil.copytree(next(other.iterdir()), target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    assert len(corpus.encode_corpus(file, tiny_tokenizer, cache)) == 100
    assert len(list(cache.iterdir())) == 1


def test_damaged_cache(file, tmp_path, tiny_tokenizer):
    corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache")
    (array,) = (tmp_path / "cache").glob("*/target.npy")
    array.write_bytes(array.read_bytes()[:200])
    with pytest.raises(
        CorpusError, match="expected the arrays of an encoded corpus.*delete the folder"
    ):
        corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache")


def test_no_pair_left(tmp_path, tiny_tokenizer):
    path = write(tmp_path / "c.tsv", b"d\tNobody.\t\nd\t\tPersonne.\n")
    with pytest.raises(CorpusError, match=r"no pair is left after cleaning \(2 empty side\)"):
        corpus.encode_corpus(path, tiny_tokenizer, tmp_path / "cache")


def test_too_large_a_vocabulary_for_two_bytes(file, tmp_path):
    class Large:
        def __len__(self):
            return 65_537

    with pytest.raises(
        CorpusError, match="expected at most 65536 pieces, got a tokenizer with 65537"
    ):
        corpus.encode_corpus(file, Large(), tmp_path / "cache")


# ---------------------------------------------------------------------------------------------
# Joins


def test_ids_of_a_join_are_the_ids_of_the_joined_text(file, tmp_path, tiny_tokenizer):
    encoded = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache")
    pairs = list(corpus.read_pairs(file))
    for first, count in [(0, 1), (3, 2), (40, 8), (99, 1)]:
        source, target = encoded.ids(first, count)
        texts = pairs[first : first + count]
        assert source.tolist() == tiny_tokenizer(" ".join(p.source for p in texts)).input_ids[:-1]
        assert target.tolist() == tiny_tokenizer(" ".join(p.target for p in texts)).input_ids[:-1]


# Neither may lose the space between them, see `EncodedCorpus.ids`.
joinable = st.text().filter(
    lambda text: (
        tokenizers.normalize("x" + text).startswith("x")
        and tokenizers.normalize(text)[:1] not in set("?!;:%")
        and not set(text) & set("«»")
    )
)


@given(joinable, joinable)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_encoding_is_additive_over_spaces(tiny_tokenizer, left, right):
    left, right = map(tokenizers.replace_surrogates, (left, right))

    def encode(text):
        return tiny_tokenizer(text, add_special_tokens=False).input_ids

    assert encode(f"{left} {right}") == encode(left) + encode(right)


lengths = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 90), st.integers(1, 120), st.integers(0, 2)),
    min_size=1,
    max_size=60,
)


@given(lengths, st.integers(0, 2**31), st.sampled_from([0.0, 0.15, 1.0]))
@settings(max_examples=60)
def test_every_pair_once_per_repeat_and_caps_hold(rows, seed, probability):
    words, source, target, new = (list(column) for column in zip(*rows))
    document = np.cumsum([n == 0 for n in new]).tolist()
    sources = [
        corpus.Source(made_up(words, document, source, target)),
        corpus.Source(made_up([5, 6, 7], [0, 1, 1]), 3),
    ]
    epoch = corpus.plan_epoch(sources, seed=seed, epoch=1, join_probability=probability)
    seen: Counter[tuple[int, int]] = Counter()
    for e in range(len(epoch)):
        index, first, count = int(epoch.corpus[e]), int(epoch.first[e]), int(epoch.count[e])
        pairs = range(first, first + count)
        seen.update((index, pair) for pair in pairs)
        data = sources[index].corpus
        assert len({int(data.document[pair]) for pair in pairs}) == 1
        s, t = data.ids(first, count)
        assert epoch.source_length[e] == len(s) + 1 and epoch.target_length[e] == len(t) + 1
        assert epoch.source_words[e] == sum(int(data.source_words[pair]) for pair in pairs)
        assert 1 <= count <= 8
        if count > 1:
            assert epoch.source_words[e] <= 100 and len(s) <= 160 and len(t) <= 200
    assert seen == {**{(0, i): 1 for i in range(len(words))}, **{(1, i): 3 for i in range(3)}}
    assert sum(epoch.length_histogram()) == len(epoch)
    if probability == 0:
        assert set(epoch.count.tolist()) == {1}


def test_joins_have_the_designs_share_and_sizes():
    """15 % of examples are joins, 2 to 8 sentences each equally often where nothing is in the way."""
    data = made_up([4] * 60_000, [i // 6_000 for i in range(60_000)])
    epoch = corpus.plan_epoch([corpus.Source(data)], seed=1, epoch=0)
    counts = Counter(epoch.count.tolist())
    share = 1 - counts[1] / len(epoch)
    assert share == pytest.approx(0.15, abs=0.01)
    for size in range(2, 9):
        assert counts[size] / (len(epoch) - counts[1]) == pytest.approx(1 / 7, abs=0.02)


@pytest.mark.parametrize(
    ("words", "source", "target", "longest"),
    [(30, 10, 10, 3), (5, 50, 10, 3), (5, 10, 60, 3), (12, 20, 25, 8)],
)
def test_each_cap_ends_a_join(words, source, target, longest):
    """Words end it at 100, source pieces at 160, target pieces at 200: 96, 160 and 200 still fit."""
    n = 400
    data = made_up([words] * n, [0] * n, [source] * n, [target] * n)
    epoch = corpus.plan_epoch([corpus.Source(data)], seed=1, epoch=0, join_probability=1.0)
    assert epoch.count.max() == longest


def test_length_histogram():
    data = made_up([1, 100, 3, 3], [0, 1, 2, 3])
    histogram = corpus.plan_epoch([corpus.Source(data)], seed=1, epoch=0).length_histogram()
    assert len(histogram) == 101
    assert {n: count for n, count in enumerate(histogram) if count} == {1: 1, 3: 2, 100: 1}


def test_no_corpus_to_go_through():
    for sources in ([], [corpus.Source(made_up([1, 2]), 0)]):
        with pytest.raises(CorpusError, match="expected at least one corpus .* got none"):
            corpus.plan_epoch(sources, seed=1, epoch=0)


# ---------------------------------------------------------------------------------------------
# Batches


def plan(sources, *, seed=1, number=0, batch_tokens=200):
    epoch = corpus.plan_epoch(sources, seed=seed, epoch=number)
    batches = corpus.plan_batches(epoch, batch_tokens=batch_tokens, seed=seed, number=number)
    return epoch, batches


@given(lengths, st.integers(1, 400), st.integers(0, 2**31))
@settings(max_examples=60)
def test_batches_hold_every_example_once_within_the_budget(rows, batch_tokens, seed):
    words, source, target, _ = (list(column) for column in zip(*rows))
    sources = [corpus.Source(made_up(words, None, source, target), 2)]
    epoch, batches = plan(sources, seed=seed, batch_tokens=batch_tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(epoch)))
    for batch in batches:
        assert len(batch) == 1 or epoch.target_length[batch].sum() <= batch_tokens


def as_lists(planned):
    epoch, batches = planned
    return [column.tolist() for column in vars(epoch).values()], [b.tolist() for b in batches]


def test_plan_depends_on_its_arguments_alone():
    random = np.random.default_rng(0)
    words = random.integers(1, 30, 300).tolist()
    sources = [corpus.Source(made_up(words), 2)]
    planned = as_lists(plan(sources, seed=3, number=2))
    np.random.seed(5)
    assert as_lists(plan(sources, seed=3, number=2)) == planned
    for other in (plan(sources, seed=3, number=3), plan(sources, seed=4, number=2)):
        examples, batches = as_lists(other)
        assert examples != planned[0]
        assert batches != planned[1]
    # The two passes of one epoch are joined differently as well.
    epoch, _ = plan(sources, seed=3, number=2)
    second = np.flatnonzero(np.diff(epoch.first) < 0)[0] + 1
    assert epoch.first[:second].tolist() != epoch.first[second:].tolist()


def test_batches_are_in_random_order():
    random = np.random.default_rng(0)
    sources = [corpus.Source(made_up(random.integers(1, 60, 3_000).tolist()))]
    epoch, batches = plan(sources, batch_tokens=1_000)
    means = [float(epoch.target_length[batch].mean()) for batch in batches]
    correlation = np.corrcoef(means, range(len(means)))[0, 1]
    assert abs(correlation) < 0.3


def test_little_is_padded():
    """Under 5 % of all positions, on as many pairs as the real corpus has, with lengths like its own.

    (There, seed 1 and epoch 0: 3.5 % of source and 0.04 % of target positions in 5,207 batches.)
    """
    random = np.random.default_rng(0)
    n = 500_000
    words = np.clip(random.lognormal(3.0, 0.65, n), 1, 80).astype(int)
    source = np.clip(words * random.normal(1.35, 0.12, n), 1, 160).astype(int)
    target = np.clip(words * random.normal(1.55, 0.25, n), 1, 200).astype(int)
    data = made_up(words.tolist(), (np.arange(n) // 20).tolist(), source.tolist(), target.tolist())
    epoch, batches = plan([corpus.Source(data)], batch_tokens=5_000)
    padded = [
        sum(len(batch) * int(side[batch].max()) for batch in batches)
        for side in (epoch.source_length, epoch.target_length)
    ]
    assert 1 - (epoch.source_length.sum() + epoch.target_length.sum()) / sum(padded) < 0.05
    assert 1 - epoch.target_length.sum() / padded[1] < 0.005
    filled = np.array([epoch.target_length[batch].sum() for batch in batches])
    assert np.median(filled) > 0.95 * 5_000


def test_make_batch_by_hand():
    pairs = [
        (np.array([5, 6, 7], np.uint16), np.array([8], np.uint16)),
        (np.array([9], np.uint16), np.array([10, 11], np.uint16)),
    ]
    batch = corpus.make_batch(pairs, pad_token_id=99, eos_token_id=0)
    assert batch.input_ids.tolist() == [[5, 6, 7, 0], [9, 0, 99, 99]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]
    assert batch.labels.tolist() == [[8, 0, -100], [10, 11, 0]]
    assert batch.num_target_tokens == 5
    assert {batch.input_ids.dtype, batch.attention_mask.dtype, batch.labels.dtype} == {
        np.dtype("int64")
    }


def test_information_is_plain_json(file, tmp_path, tiny_tokenizer):
    encoded = corpus.encode_corpus(file, tiny_tokenizer, tmp_path / "cache")
    assert json.loads(json.dumps(encoded.information)) == encoded.information
    assert encoded.information["name"] == "clean.tsv"
