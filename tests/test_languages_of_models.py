"""A model keeps the languages it was trained on, and everything that it reads and writes follows them."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import seqviz
from seqviz import architectures, cli, corpus, training
from seqviz.data import tokenizer as tokenizers
from seqviz.measuring.card import card
from seqviz.pieces import Pieces
from seqviz.text_languages import LanguageError, LanguagePair, TextLanguage
from seqviz.training import Recipe, TrainingError
from seqviz.translating import inputs, output
from seqviz.translating.inputs import split_sentences
from seqviz.translating.translator import Translator

CONFIG = {"d_model": 16, "width": 16, "vector_size": 8, "attention_size": 8, "num_layers": 1}

PAIRS = [
    (f"{who}{when}{does}{what}。", f"{qui} {does_en} {what_en} {when_en}.")
    for (who, qui), (when, when_en), (does, does_en), (what, what_en) in itertools.product(
        [("我们", "we"), ("老师", "the teacher"), ("朋友", "a friend"), ("学生", "the student")],
        [("昨天", "yesterday"), ("今天", "today"), ("早上", "this morning")],
        [("看", "saw"), ("买", "bought"), ("画", "drew")],
        [("房子", "the house"), ("苹果", "an apple"), ("地图", "a map"), ("花园", "the garden")],
    )
]
"""Chinese and English, of four words each in Chinese."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("languages")


@pytest.fixture(scope="module")
def file(folder: Path) -> Path:
    path = folder / "pairs.tsv"
    lines = [f"d{i // 20}\t{source}\t{target}\n" for i, (source, target) in enumerate(PAIRS)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shared(folder: Path) -> Any:
    sides = [side for pair in PAIRS for side in pair]
    return tokenizers.train(sides, folder / "tokenizer", vocabulary_size=230)


@pytest.fixture(scope="module")
def trained(folder: Path, file: Path, shared: Any) -> Path:
    """Folder of a model from Chinese into English."""
    encoded = corpus.encode_corpus(file, shared, folder / "encoded", source_language="zh")
    training.train(
        "lstm-attention",
        [corpus.Source(encoded)],
        shared,
        folder / "run",
        folder / "model",
        recipe=Recipe(batch_tokens=400, warmup_tokens=400),
        config=CONFIG,
        tokens=4_000,
        dev=encoded,
        source_language="zh",
        target_language="en",
    )
    return folder / "model"


def translator(shared: Any, source: str, target: str, **record: Any) -> Translator:
    model = architectures.build("lstm-attention", len(shared), seed=3, **CONFIG)
    languages = {"languages": [source, target]}
    return Translator(model, shared, training={**languages, **record})


# ---------------------------------------------------------------------------------------------
# Recorded and read


def test_words_of_a_corpus_are_those_of_its_language(folder: Path, file: Path, shared: Any) -> None:
    chinese = corpus.encode_corpus(file, shared, folder / "encoded", source_language="zh")
    expected = [TextLanguage.of("zh").length(source) for source, _ in PAIRS]
    assert chinese.source_words.tolist() == expected and min(expected) >= 3
    spaced = corpus.encode_corpus(file, shared, folder / "encoded")
    assert set(spaced.source_words.tolist()) == {1}
    short = corpus.encode_corpus(file, shared, folder / "encoded", longest=4, source_language="zh")
    assert len(short) == sum(number <= 4 for number in expected)


def test_training_records_the_languages(trained: Path) -> None:
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert record["languages"] == ["zh", "en"]
    assert json.loads((trained / "config.json").read_text(encoding="utf-8"))["languages"] == [
        *("zh", "en")
    ]
    assert sum(record["length_histogram"][:3]) == 0
    assert LanguagePair.of_model(trained).codes == ("zh", "en")
    assert "\nlanguage: [zh, en]\n" in card(record)
    loaded = seqviz.load(trained)
    assert loaded.languages.codes == ("zh", "en")
    assert loaded.translate("我们今天看地图。").languages == ("zh", "en")


def test_corpora_and_training_must_agree(folder: Path, file: Path, shared: Any) -> None:
    spaced = corpus.encode_corpus(file, shared, folder / "encoded")
    with pytest.raises(TrainingError, match="counted for zh, got words between spaces"):
        training.train(
            "lstm",
            [corpus.Source(spaced)],
            shared,
            folder / "other-run",
            folder / "other",
            config=CONFIG,
            tokens=400,
            source_language="zh",
            target_language="en",
        )
    assert not (folder / "other-run").exists()


def test_a_run_keeps_its_languages(folder: Path, trained: Path, file: Path, shared: Any) -> None:
    encoded = corpus.encode_corpus(file, shared, folder / "encoded", source_language="zh")
    with pytest.raises(TrainingError, match=r"expected the languages of the run .*'en'.*'de'"):
        training.train(
            "lstm-attention",
            [corpus.Source(encoded)],
            shared,
            folder / "run",
            folder / "model",
            recipe=Recipe(batch_tokens=400, warmup_tokens=400),
            config=CONFIG,
            tokens=8_000,
            source_language="zh",
            target_language="de",
        )


def test_without_a_record_the_config_says_it(trained: Path, tmp_path: Path) -> None:
    seqviz.load(trained).save_pretrained(tmp_path / "whole")
    assert seqviz.load(tmp_path / "whole").languages.codes == ("zh", "en")
    (tmp_path / "whole" / "training.json").unlink()
    assert seqviz.load(tmp_path / "whole").languages.codes == ("zh", "en")


def test_languages_may_be_said_when_a_folder_does_not(shared: Any, tmp_path: Path) -> None:
    model = architectures.build("lstm-attention", len(shared), seed=3, **CONFIG)
    model.save_pretrained(tmp_path)
    shared.save_pretrained(tmp_path)
    assert seqviz.load(tmp_path).languages.codes == ("en", "fr")
    told = seqviz.load(tmp_path, source_language="zh", target_language="en")
    assert told.languages.codes == ("zh", "en")
    told.save_pretrained(tmp_path / "again")
    assert seqviz.load(tmp_path / "again").languages.codes == ("zh", "en")
    with pytest.raises(LanguageError, match="ISO 639-1, .*, got 'chinese'"):
        seqviz.load(tmp_path, target_language="chinese")


def test_languages_of_the_shipped_models_stay_where_they_are(shared: Any, tmp_path: Path) -> None:
    model = architectures.build("lstm-attention", len(shared), seed=3, **CONFIG)
    Translator(model, shared, training={"model": "x"}).save_pretrained(tmp_path)
    for name in ("config.json", "training.json"):
        assert "languages" not in json.loads((tmp_path / name).read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------------------------
# Words, sentences, hints


def test_words_of_a_chinese_source_and_target(shared: Any) -> None:
    source = "我们昨天看房子。"
    found = translator(shared, "zh", "en").translate(source)
    assert len(found.source_words) > 1 and "".join(found.source_words) == source
    into = translator(shared, "en", "zh").translate("we saw the house yesterday.")
    assert "".join(into.target_words) == into.text.replace(" ", "")
    words = into.attention().words()
    assert words.target_tokens == into.target_words[: len(words.target_tokens)]


def test_a_long_chinese_text_is_cut_into_sentences_and_put_together(shared: Any) -> None:
    text = "".join(source for source, _ in PAIRS[:60])
    found = translator(shared, "zh", "ja").translate(text)
    assert [part.source for part in found.parts] == [source for source, _ in PAIRS[:60]]
    assert found.text == "".join(part.text for part in found.parts)


def test_a_sentence_over_the_cap_keeps_its_characters(shared: Any) -> None:
    text = "，".join(f"{source[:-1]} GPT 4" for source, _ in PAIRS[:60])
    plan = inputs.plan(shared, text, TextLanguage.of("zh"))
    assert len(plan.units) > 1
    whole = tokenizers.normalize(text).replace(" ", "")
    assert "".join(unit.text for unit in plan.units).replace(" ", "") == whole
    assert all("GPT 4" in unit.text for unit in plan.units[:-1])


@pytest.mark.parametrize(
    ("code", "sentences"),
    [
        ("de", ["Am 3. Oktober kam er.", "Das war 1990.", "Er blieb."]),
        ("zh", ["他来了！", "“真的吗？”", "是的。"]),
        ("ar", ["هل جاء؟", "نعم."]),
        ("hi", ["वह आया।", "वह गया।"]),
        ("el", ["Ήρθε;", "Ναι."]),
        ("my", ["သူလာသည်။", "သူသွားသည်။"]),
    ],
)
def test_sentences_end_as_the_language_ends_them(code: str, sentences: list[str]) -> None:
    language = TextLanguage.of(code)
    assert split_sentences(language.join(sentences), language) == sentences


def test_in_english_a_number_ends_a_sentence() -> None:
    assert split_sentences("He had 3. Otto had none.") == ["He had 3.", "Otto had none."]


def test_the_hint_names_the_language(shared: Any) -> None:
    def hints(source: str, text: str) -> list[str]:
        plan = inputs.plan(shared, text, TextLanguage.of(source))
        return [note.message for note in plan.notes if note.kind == "language"]

    said = "this does not look like Chinese; the model reads Chinese only"
    assert hints("zh", "we saw the house") == [said]
    assert hints("zh", "我们看房子。") == hints("de", "Wir sahen das Haus.") == []
    assert hints("de", "我们看房子。") == [
        "this does not look like German; the model reads German only"
    ]


def test_a_repetition_is_said_in_words_of_the_language() -> None:
    words = ["我们", "看", "房子"] * 3
    pair = LanguagePair.of("en", "zh")
    (note,) = output.oddities("we saw it", "".join(words), words, pair, None)
    assert note.kind == "repetition" and note.values == ("我们看房子我们看房子我们看",)


def test_spaces_between_joined_sentences_go() -> None:
    tidy = TextLanguage.of("zh").tidy
    assert tidy("他来了。 我们走吧。 用 GPT 写") == "他来了。我们走吧。用 GPT 写"
    assert TextLanguage.of("fr").tidy("Il vient. Oui.") == "Il vient. Oui."


def test_a_notebook_names_both_languages(shared: Any) -> None:
    html = translator(shared, "zh", "ar").translate("我们", attention=False)._repr_html_()
    assert '<span lang="zh">我们</span>' in html and '<span lang="ar" dir="rtl">' in html


# ---------------------------------------------------------------------------------------------
# Pieces of words


@pytest.mark.parametrize(
    ("tokens", "expected", "numbers"),
    [
        (("▁我", "们", "看"), ("我们", "看"), (0, 0, 1)),
        (("▁我们看", "房"), ("我们看", "房"), (0, 1)),  # a piece of two words
        (("▁", "我", "们", "▁看"), ("我们", "看"), (0, 0, 0, 1)),
        (("▁我", "们", "看", "▁"), ("我们", "看"), (0, 0, 1, 1)),
        (("▁",), ("",), (0,)),
        ((), (), ()),
    ],
)
def test_words_are_split_where_pieces_end(
    tokens: tuple[str, ...], expected: tuple[str, ...], numbers: tuple[int, ...]
) -> None:
    found = Pieces.of(tokens).split(lambda text: ["我们"] * text.startswith("我们") + [*text[2:]])
    assert (found.words, found.word_of_piece) == (expected, numbers)
    assert found.with_end("</s>").split(lambda text: [text]).word_of_piece[-1] == -1


# ---------------------------------------------------------------------------------------------
# The command


@pytest.mark.parametrize(
    ("target", "module", "said"),
    [
        ("th", "icu4py.breakers", "the words of Thai need the package icu4py"),
        ("ko", "mecab_ko", "BLEU of Korean needs the tokenizer ko-mecab"),
    ],
)
def test_what_is_missing_is_said_before_training(
    target: str,
    module: str,
    said: str,
    file: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for loaded in [key for key in sys.modules if key.startswith("sacrebleu.tokenizers.tokenizer_")]:
        monkeypatch.delitem(sys.modules, loaded)
    options = {"--data": file, "--dev": file, "--tokenizer": folder / "tokenizer"}
    options |= {"--runs": folder / "command", "--out": folder / "command-model"}
    given = [str(part) for option in options.items() for part in option]
    given += ["--tokens", "400", "--source", "en", "--target", target]
    monkeypatch.setattr(sys, "argv", ["seqviz", "train", "lstm", *given])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    error = capsys.readouterr().err.strip()
    assert stopped.value.code == 1 and said in error and "'seqviz[languages]'" in error
    assert len(error.splitlines()) == 1 and not (folder / "command").exists()
