"""Languages of texts: words, sentences, BLEU's tokenizer, script and direction, for small texts."""

from __future__ import annotations

import json
import sys

import pytest

from seqviz import text_languages
from seqviz.text_languages import LanguageError, LanguagePair, TextLanguage


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        ("en", "The cat sleeps,  doesn't it?", ["The", "cat", "sleeps,", "doesn't", "it?"]),
        ("zh", "我们昨天在北京大学开会。", ["我们", "昨天", "在", "北京", "大学", "开会。"]),
        ("zh", "他去（北京）：好", ["他", "去", "（北京）：", "好"]),
        ("zh", "我用 GPT 写作", ["我", "用", "GPT", "写作"]),
        ("ja", "私は学生です。", ["私", "は", "学生", "です。"]),
        ("th", "ฉันไปตลาด", ["ฉัน", "ไป", "ตลาด"]),
        ("ko", "나는 학교에 갔다.", ["나는", "학교에", "갔다."]),
        ("bo", "ཀཁ", ["ཀ", "ཁ"]),
        ("zh", "！？", ["！？"]),
        ("zh", "  ", []),
    ],
)
def test_words_of_a_text(code: str, text: str, words: list[str]) -> None:
    language = TextLanguage.of(code)
    assert language.words(text) == words
    assert language.length(text) == len(words)
    assert "".join(words) == "".join(text.split())


def test_the_unit_is_characters_where_nothing_can_find_words() -> None:
    assert TextLanguage.of("bo").unit == "characters"
    assert {TextLanguage.of(code).unit for code in ("en", "zh", "ja", "th", "ko")} == {"words"}


@pytest.mark.parametrize(
    ("code", "tokenizer"),
    [
        *(("en", "13a"), ("de", "13a"), ("ar", "13a"), ("zh", "zh"), ("ja", "ja-mecab")),
        *(("ko", "ko-mecab"), ("th", "char"), ("bo", "char")),
    ],
)
def test_tokenizer_of_bleu(code: str, tokenizer: str) -> None:
    assert TextLanguage.of(code).bleu_tokenizer == tokenizer


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icu4py", None)
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    message = r"^the words of Chinese need the package icu4py; pip install 'seqviz\[languages\]'$"
    with pytest.raises(LanguageError, match=message):
        TextLanguage.of("zh").words("你好")
    with pytest.raises(LanguageError, match=message):
        LanguagePair.of("en", "zh").check()
    LanguagePair.of("en", "bo").check()


def test_direction_and_tag() -> None:
    assert TextLanguage.of("fr").tag == ' lang="fr"'
    assert TextLanguage.of("ar").tag == ' lang="ar" dir="rtl"'
    assert [TextLanguage.of(code).direction for code in ("he", "fa", "ur", "zh")] == [
        *("rtl", "rtl", "rtl", "ltr")
    ]


def test_sentences_are_joined_as_the_language_is_written() -> None:
    assert TextLanguage.of("zh").join(["好。", "走吧。"]) == "好。走吧。"
    assert TextLanguage.of("de").join(["Gut.", "Los."]) == "Gut. Los."
    assert TextLanguage.of("th").join(["ดี", "ไป"]) == "ดี ไป"


@pytest.mark.parametrize(
    ("code", "text", "may_be"),
    [
        ("zh", "我们走吧。", True),
        ("zh", "我用 GPT 写作业", True),
        ("zh", "We are going home.", False),
        ("ja", "ひらがなと漢字とカタカナ", True),
        ("ja", "나는 학교에 갔다", False),
        ("ru", "Мы идём домой", True),
        ("ru", "We are going", False),
        ("ar", "نحن ذاهبون", True),
        ("de", "Über Öfen", True),
        ("de", "我们走吧。", False),
        ("sr", "Идемо кући", True),
        ("sr", "Idemo kući", True),
        ("zh", "2 + 3 = 5", True),
        ("en", "ＡＢＣ", True),
    ],
)
def test_script_of_a_text(code: str, text: str, may_be: bool) -> None:
    assert TextLanguage.of(code).may_be(text) is may_be


@pytest.mark.parametrize("code", ["eng", "xx", "", "EN", "zh-CN", "deutsch"])
def test_an_unknown_code_is_refused(code: str) -> None:
    with pytest.raises(
        LanguageError, match=r"^expected a language as a code of ISO 639-1, .* got "
    ):
        TextLanguage.of(code)


def test_a_pair_has_two_languages() -> None:
    with pytest.raises(LanguageError, match="expected two different languages, got en twice"):
        LanguagePair.of("en", "en")
    assert str(LanguagePair.of("en", "zh")) == "en-zh"


def test_what_a_record_says() -> None:
    assert LanguagePair.recorded({}).codes == ("en", "fr")
    assert LanguagePair.recorded({"languages": None}).is_default
    assert LanguagePair.recorded({"languages": ["de", "zh"]}).codes == ("de", "zh")
    for languages in (["de"], "de-zh", {"source": "de"}, ["de", "zh", "ja"]):
        with pytest.raises(LanguageError, match="expected languages as two codes"):
            LanguagePair.recorded({"languages": languages})


def test_every_rule_names_known_languages() -> None:
    """A slip in a code would leave a language without its rule."""
    known = set(json.loads(text_languages._NAMES_FILE.read_text(encoding="utf-8")))
    assert len(known) == 183
    for codes in (
        text_languages.SEGMENTED,
        text_languages.UNSEGMENTED,
        text_languages._BLEU,
        text_languages._RIGHT_TO_LEFT,
        text_languages._ORDINAL_POINT,
        text_languages._NO_SPACE_BETWEEN_SENTENCES,
        text_languages._SCRIPTS,
    ):
        assert set(codes) <= known
