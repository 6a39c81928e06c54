"""The shared tokenizer: normalisation, parity with SentencePiece, pieces and words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import unicodedata

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from seqviz import handwritten
from seqviz import tokenizer as tokenizers
from seqviz.pieces import WORD_START, Pieces
from seqviz.tokenizer import normalize, segment

RAW = [
    "",
    "   ",
    "Hello, world!",
    "中文 句子。",
    "The 猫 sat",
    "😀 fine 🇫🇷 👨‍👩‍👧 ❤️",
    "half an emoji \ud83d here",
    "e\u0301te\u0301 nai\u0308ve",
    "e\u200b\u0301",
    "q\u0301 x\u0338",
    "a\ttab\nand\r\nnewlines\x00\x07",
    "no\u00a0break\u202fspaces\u3000wide",
    "« Bonjour », dit-il.",
    "“curly” ‘quotes’ „low‟ ‹single›",
    "Quoi ? Non ! Si ; la : fin 5 %",
    "Quoi\u202f? Non\u00a0!",
    "so\u00adft hy\u00adphen",
    "zero\u200bwidth\u2060joined\ufeff",
    "</s>",
    "<pad> and <unk> and a</s>b</s></s>",
    "<s></s>",
    "▁ ▁word wo▁rd ▁▁",
    "dash–en dash—em minus−",
    "wait… what",
    "12,345.67 € 2024",
    "ﬁ ½ Ａ",
    "한국어 नमस्ते עברית",
    "\ufffd \uffff \U000e0041",
    "?",
    " ? ! ",
    "« ? »",
    "a" * 300,
]
NASTY = list(" ab é?!;:%«»“”'’-–—… \t\u00a0\u202f\u200b\u00ad\u0301\u0338</s>pad_▁`´\u2033\ud83d中")
# Any Unicode text, lone surrogates included, and text dense in what the normaliser touches.
anything = st.one_of(
    st.text(st.characters()), st.text(st.characters(codec=None)), st.text(st.sampled_from(NASTY))
)


@pytest.fixture(scope="module")
def reference(tiny_tokenizer_folder):
    """SentencePiece itself, on the model that the tests trained."""
    return sentencepiece.SentencePieceProcessor(
        model_file=str(tiny_tokenizer_folder / "tokenizer.model")
    )


def encode(tokenizer, text):
    """Ids of raw text without the end token."""
    return tokenizer(tokenizers.replace_surrogates(text), add_special_tokens=False).input_ids


# ---------------------------------------------------------------------------------------------
# Normalisation


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("e\u0301te\u0301", "été"),
        ("ﬁ ½", "ﬁ ½"),  # NFC, not NFKC
        ("“Oui”, « non » et ‘peut-être’", '"Oui", "non" et \'peut-être\''),
        ("l’eau l´eau l`eau", "l'eau l'eau l'eau"),
        ("Quoi ? Si\u202f! a\u00a0; b : 5 %", "Quoi? Si! a; b: 5%"),
        ("1939–1945 x − y non‑breaking", "1939-1945 x - y non-breaking"),
        ("so—well", "so - well"),
        ("wait…", "wait..."),
        ("so\u00adft zero\u200bwidth \ufeffmark", "soft zerowidth mark"),
        ("e\u200b\u0301", "é"),
        ("  a \t\n b\u2028c\u0085d  ", "a b c d"),
        ("▁a", "_a"),
        ("half \ud83d", "half \ufffd"),
        ("</s>", "</s>"),
        ("\u200b", ""),
    ],
)
def test_normalize(raw, plain):
    assert normalize(raw) == plain


@given(anything)
def test_normalize_is_idempotent(text):
    assert normalize(normalize(text)) == normalize(text)


@given(anything)
def test_normalized_text_is_clean(text):
    plain = normalize(text)
    assert plain == unicodedata.normalize("NFC", plain)
    assert plain == " ".join(plain.split())
    assert not set(plain) & set("«»“”’‘—–…▁\u00ad\u200b\ufeff\u00a0\ud83d")


def test_normaliser_travels_in_the_file(tiny_tokenizer_folder, models_folder):
    expected = json.loads(tokenizers.normalizer().__getstate__())
    for folder in (tiny_tokenizer_folder, models_folder / "tokenizer"):
        stored = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["normalizer"]
        assert stored == expected, folder


# ---------------------------------------------------------------------------------------------
# Ids


def test_special_ids(tiny_tokenizer):
    assert tiny_tokenizer.convert_ids_to_tokens([0, 1, 299]) == ["</s>", "<unk>", "<pad>"]
    assert (tiny_tokenizer.eos_token_id, tiny_tokenizer.unk_token_id) == (0, 1)
    assert tiny_tokenizer.pad_token_id == len(tiny_tokenizer) - 1 == 299
    assert tiny_tokenizer.bos_token_id is None


def test_batches_are_padded_right_and_end_once(tiny_tokenizer):
    batch = tiny_tokenizer(["the bridge", ""], padding=True)
    length = len(batch.input_ids[0])
    assert batch.input_ids[0][-1] == 0 and batch.input_ids[0].count(0) == 1
    assert batch.input_ids[1] == [0] + [299] * (length - 1)
    assert batch.attention_mask[1] == [1] + [0] * (length - 1)
    assert set(batch) == {"input_ids", "attention_mask"}


@pytest.mark.parametrize("text", RAW)
def test_parity_with_sentencepiece(tiny_tokenizer, reference, text):
    assert encode(tiny_tokenizer, text) == reference.encode(normalize(text))


@given(anything)
def test_parity_with_sentencepiece_on_any_text(tiny_tokenizer, reference, text):
    assert encode(tiny_tokenizer, text) == reference.encode(normalize(text))


@given(st.text(st.sampled_from("thebrigd anpowls'.,?éà12 ")))
def test_parity_with_sentencepiece_on_words(tiny_tokenizer, reference, text):
    """Letters of the training text, so that many merges compete."""
    assert encode(tiny_tokenizer, text) == reference.encode(normalize(text))


def test_parity_of_the_shipped_tokenizer(models_folder):
    folder = models_folder / "tokenizer"
    shipped = tokenizers.load(folder)
    assert len(shipped) == 8_000
    ids = (shipped.eos_token_id, shipped.unk_token_id, shipped.pad_token_id)
    assert ids == (0, 1, 7_999)
    assert shipped.convert_ids_to_tokens([0, 1, 7_999]) == ["</s>", "<unk>", "<pad>"]
    peer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    assert peer.get_piece_size() == 8_000
    sentences = [
        stage[language]
        for passage in handwritten.texts("passages")
        for stage in passage["stages"]
        for language in ("english", "french", "chinese")
    ]
    assert len(sentences) > 150
    for text in RAW + sentences:
        assert encode(shipped, text) == peer.encode(normalize(text))


@given(st.lists(st.sampled_from(["</s>", "<pad>", "<unk>", " ", "a", "▁", "<", "s>"])))
def test_typed_control_text_is_text(tiny_tokenizer, parts):
    ids = encode(tiny_tokenizer, "".join(parts))
    assert not set(ids) & {0, 1, 299}
    assert tiny_tokenizer.decode(ids) == normalize("".join(parts))


@pytest.mark.parametrize("text", RAW)
def test_batch_encoder_gives_the_same_ids(tiny_tokenizer_folder, text):
    fresh = tokenizers.load(tiny_tokenizer_folder)  # nothing was asked of it yet
    plain = tokenizers.replace_surrogates(text)
    (encoding,) = fresh.backend_tokenizer.encode_batch_fast([plain], add_special_tokens=False)
    assert encoding.ids == encode(fresh, text)


def test_auto_tokenizer(tiny_tokenizer, tiny_tokenizer_folder):
    auto = AutoTokenizer.from_pretrained(tiny_tokenizer_folder)
    assert [encode(auto, text) for text in RAW] == [encode(tiny_tokenizer, text) for text in RAW]
    assert auto("the bridge").input_ids == tiny_tokenizer("the bridge").input_ids


def test_auto_tokenizer_without_sentencepiece(tiny_tokenizer, tiny_tokenizer_folder):
    program = """
import json, sys
sys.modules["sentencepiece"] = None
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
texts = json.load(sys.stdin)
print(json.dumps([tokenizer(text).input_ids for text in texts]))
assert "sentencepiece" not in sys.modules or sys.modules["sentencepiece"] is None
"""
    texts = [tokenizers.replace_surrogates(text) for text in RAW]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tiny_tokenizer_folder)],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [tiny_tokenizer(text).input_ids for text in texts]


known_text = st.text(st.sampled_from("abcxyzABC019 .,?!;:%'\"()-</>_éàçœ€«»“”’…—\u00a0\u00ad\t"))


@given(known_text)
def test_round_trip(tiny_tokenizer, text):
    """Text of known characters comes back as it was normalised."""
    known = set("".join(tiny_tokenizer.get_vocab())) - {WORD_START}
    text = "".join(c for c in text if set(normalize("x" + c)) <= known | {" "})
    ids = tiny_tokenizer(text).input_ids
    assert tiny_tokenizer.decode(ids, skip_special_tokens=True) == normalize(text)


def test_plain_characters_are_never_unknown(tiny_tokenizer):
    ascii_text = "".join(map(chr, range(33, 127)))
    assert tiny_tokenizer.unk_token_id not in encode(tiny_tokenizer, ascii_text + "€")


# ---------------------------------------------------------------------------------------------
# Training and loading


def test_training_does_not_depend_on_threads(sentence_pairs, tiny_tokenizer_folder, tmp_path):
    sentences = [text for pair in sentence_pairs for text in pair]
    tokenizers.train(sentences, tmp_path / "made" / "here", vocabulary_size=300, num_threads=1)
    made = (tmp_path / "made" / "here" / "tokenizer.json").read_bytes()
    assert made == (tiny_tokenizer_folder / "tokenizer.json").read_bytes()
    # Written aside: nothing else is left beside the folder.
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["here"]


def test_control_text_in_the_training_text_makes_no_control_piece(tmp_path):
    """Control tokens in nearly every training sentence still come apart into ordinary pieces."""
    sentences = [
        "the a</s> dog <pad> runs<unk> x</s>",
        "b</s> and <pad>s",
        "le chat</s> et </s>",
    ] * 100
    made = tokenizers.train(sentences, tmp_path / "tokenizer", vocabulary_size=130, num_threads=1)
    assert not set(encode(made, " ".join(sentences[:3]))) & {0, 1, 129}


@pytest.mark.parametrize("sentences", [[], ["", "\u200b"], ["too little text"]])
def test_too_little_text(tmp_path, sentences):
    with pytest.raises(ValueError, match="expected enough text for 500 pieces.*smaller vocabulary"):
        tokenizers.train(sentences, tmp_path / "tokenizer", vocabulary_size=500, num_threads=1)
    assert not list(tmp_path.iterdir())


def test_load_says_what_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected a tokenizer in .*'seqviz tokenizer'"):
        tokenizers.load(tmp_path)


def test_load_refuses_other_special_ids(tiny_tokenizer_folder, tmp_path):
    shutil.copytree(tiny_tokenizer_folder, tmp_path / "other")
    path = tmp_path / "other" / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "pad_token": "<unk>"}), encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"expected ids \(eos, unk, pad\) \(0, 1, 299\).*got \(0, 1, 1\)"
    ):
        tokenizers.load(tmp_path / "other")


# ---------------------------------------------------------------------------------------------
# Pieces and words


def test_segment_by_hand(tiny_tokenizer):
    found = segment(tiny_tokenizer, "  The 中文\u00a0bridge ?")
    assert found.pieces.words == ("The", "中文", "bridge?")
    assert "".join(found.pieces.tokens) == "▁The▁中文▁bridge?"
    by_word = [
        "".join(p for p, w in zip(found.pieces.tokens, found.pieces.word_of_piece) if w == word)
        for word in range(3)
    ]
    assert by_word == ["▁The", "▁中文", "▁bridge?"]
    start = found.pieces.tokens.index("中文")
    assert found.pieces.tokens[start - 1] == WORD_START  # alone, and in the word it begins
    assert found.pieces.word_of_piece[start - 1] == found.pieces.word_of_piece[start] == 1
    assert found.ids[start] == 1
    assert found.unknown == ("中", "文")


def test_segment_keeps_unknown_characters_in_order(tiny_tokenizer):
    found = segment(tiny_tokenizer, "😀 a文中b文 \ud83d")
    assert found.unknown == ("😀", "文", "中", "\ufffd")
    assert found.pieces.words == ("😀", "a文中b文", "\ufffd")
    assert [p for p, i in zip(found.pieces.tokens, found.ids) if i == 1] == [
        "😀",
        "文中",
        "文",
        "\ufffd",
    ]


def test_segment_of_typed_control_text(tiny_tokenizer):
    found = segment(tiny_tokenizer, "<unk> </s>▁")
    assert found.unknown == ()
    assert found.pieces.words == ("<unk>", "</s>_")


@pytest.mark.parametrize("text", ["", " \t\n", "\u200b\u00ad"])
def test_segment_of_nothing(tiny_tokenizer, text):
    assert segment(tiny_tokenizer, text) == tokenizers.Segmentation((), Pieces(), ())


def test_segment_neither_cuts_nor_warns(tiny_tokenizer_folder, caplog):
    fresh = tokenizers.load(tiny_tokenizer_folder)
    fresh("the bridge", truncation=True, max_length=2)
    found = segment(fresh, "bridge " * 400)
    assert len(found.pieces.words) == 400 and found.pieces.words[-1] == "bridge"
    assert not caplog.records
    assert len("".join(segment(fresh, "z" * 10_000).pieces.tokens)) == 10_001


def check_segmentation(tokenizer, text):
    found = segment(tokenizer, text)
    plain = normalize(text)
    assert list(found.ids) == encode(tokenizer, text)
    assert len(found.ids) == len(found.pieces) == len(found.pieces.word_of_piece)
    assert " ".join(found.pieces.words) == plain
    assert found.pieces.words == tuple(plain.split())
    assert "".join(found.pieces.tokens) == "".join(WORD_START + word for word in found.pieces.words)
    assert sorted(set(found.pieces.word_of_piece)) == list(range(len(found.pieces.words)))
    assert list(found.pieces.word_of_piece) == sorted(found.pieces.word_of_piece)
    for number, word in enumerate(found.pieces.words):
        mine = [p for p, w in zip(found.pieces.tokens, found.pieces.word_of_piece) if w == number]
        assert "".join(mine) == WORD_START + word
    known = set("".join(tokenizer.get_vocab()))
    assert list(found.unknown) == list(dict.fromkeys(c for c in plain if c not in known | {" "}))


@pytest.mark.parametrize("text", RAW)
def test_segment(tiny_tokenizer, text):
    check_segmentation(tiny_tokenizer, text)


@given(anything)
def test_segment_any_text(tiny_tokenizer, text):
    check_segmentation(tiny_tokenizer, text)


@pytest.mark.parametrize(
    ("pieces", "words", "word_of_piece"),
    [
        ([], [], []),
        (["▁the", "▁brid", "ge", "."], ["the", "bridge."], [0, 1, 1, 1]),
        (["ge", "▁a"], ["ge", "a"], [0, 1]),  # the first piece always starts a word
        (["▁", "1", "2", "▁", "x"], ["12", "x"], [0, 0, 0, 1, 1]),
        (["▁a", "▁", "▁", "▁b"], ["a", "b"], [0, 1, 1, 1]),
        (["▁a", "▁"], ["a"], [0, 0]),  # begins no word
        (["▁", "▁"], [""], [0, 0]),
        (["▁a", "<unk>", "▁", "<unk>"], ["a<unk>", "<unk>"], [0, 0, 1, 1]),
    ],
)
def test_pieces_by_hand(pieces, words, word_of_piece):
    assert Pieces.of(pieces) == Pieces(tuple(pieces), tuple(words), tuple(word_of_piece))


@given(st.data())
def test_pieces_of_any_output(tiny_tokenizer, data):
    """For every sequence of ids a model can put out, words are those of the decoded text."""
    ids = data.draw(st.lists(st.integers(2, 298)))
    pieces = tiny_tokenizer.convert_ids_to_tokens(ids)
    found = Pieces.of(pieces)
    words, word_of_piece = found.words, list(found.word_of_piece)
    assert " ".join(words).split() == tiny_tokenizer.decode(ids).split()
    assert all(words) or set(pieces) == {WORD_START}
    assert len(word_of_piece) == len(pieces)
    assert word_of_piece == sorted(word_of_piece)
    assert sorted(set(word_of_piece)) == list(range(len(words)))
