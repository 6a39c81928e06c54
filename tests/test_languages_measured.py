"""Scores and length reports follow the languages of what is measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from seqviz import plotting, scores
from seqviz.measuring import evaluate
from seqviz.measuring import plan as plans
from seqviz.measuring.evaluate import languages_of
from seqviz.measuring.length import length_report
from seqviz.measuring.outputs import Output, Outputs
from seqviz.measuring.quality import quality_report
from seqviz.text_languages import LanguageError, LanguagePair

REFERENCES = [
    "我们昨天在车站等了很久。",
    "老师今天早上买了三张地图。",
    "他的朋友住在河边的小房子里。",
]
NEAR = ["我们昨天在车站等了好久。", "老师今天早上买了两张地图。", "他的朋友住在河边的小房子里。"]

CHINESE = LanguagePair.of("zh", "en")


# ---------------------------------------------------------------------------------------------
# Scores


def test_chinese_is_scored_by_its_own_tokenizer() -> None:
    found = scores.corpus_bleu(NEAR, REFERENCES, "zh")
    expected = sacrebleu.corpus_bleu(NEAR, [REFERENCES], tokenize="zh").score
    assert found["score"] == pytest.approx(expected, abs=0.01) and found["score"] > 70
    assert "|tok:zh|" in found["signature"]
    assert scores.corpus_bleu(NEAR, REFERENCES)["score"] < 40  # by spaces, whole sentences
    counts, _ = scores.sentence_counts(NEAR, REFERENCES, "zh")
    assert float(scores.bleu(counts.sum(axis=0))) == pytest.approx(expected, abs=1e-9)
    assert scores.sentence_scores(NEAR[0], REFERENCES[0], "zh")["bleu"] > 70


@pytest.mark.parametrize(
    ("code", "tokenizer"), [("fr", "13a"), ("de", "13a"), ("zh", "zh"), ("th", "char")]
)
def test_the_signature_names_the_tokenizer(code: str, tokenizer: str) -> None:
    assert f"|tok:{tokenizer}|" in scores.signatures(code)["bleu"]


@pytest.mark.parametrize(
    ("code", "module", "text"),
    [("ja", "MeCab", "私は学生です。"), ("ko", "mecab_ko", "나는 학교에 갔다.")],
)
def test_tokenizers_of_japanese_and_korean(code: str, module: str, text: str) -> None:
    pytest.importorskip(module, reason="pip install 'seqviz[languages]'")
    found = scores.corpus_bleu([text], [text], code)
    assert found["score"] == 100 and f"|tok:{code}-mecab" in found["signature"]


@pytest.mark.parametrize(
    ("code", "module", "name"),
    [("ja", "MeCab", "Japanese"), ("ko", "mecab_ko", "Korean")],
)
def test_a_missing_tokenizer_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, code: str, module: str, name: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for loaded in [key for key in sys.modules if key.startswith("sacrebleu.tokenizers.tokenizer_")]:
        monkeypatch.delitem(sys.modules, loaded)
    message = (
        rf"^BLEU of {name} needs the tokenizer {code}-mecab of sacreBLEU; "
        r"pip install 'seqviz\[languages\]'$"
    )
    with pytest.raises(LanguageError, match=message):
        scores.corpus_bleu(["a"], ["a"], code)


# ---------------------------------------------------------------------------------------------
# Lengths


def _sentence(words: int) -> str:
    """Chinese with so many words, each of two characters."""
    return "".join(["学生", "老师", "房子", "苹果", "地图"][i % 5] for i in range(words)) + "。"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> plans.Plan:
    rows = [(f"d{n}-{i}", n) for n in (5, 15, 30, 55) for i in range(3)]
    rows += [(f"run{i // 4}", 15) for i in range(8)]
    file = tmp_path_factory.mktemp("measured") / "test.tsv"
    lines = [f"{d}\t{_sentence(n)}\tsentence {i} of {n}.\n" for i, (d, n) in enumerate(rows)]
    file.write_text("".join(lines), encoding="utf-8")
    return plans.plan(file, languages=CHINESE)


def _outputs(plan: plans.Plan) -> Outputs:
    targets = dict(plan.texts())
    return Outputs(
        translations={source: Output(targets[source]) for source in plan.sources()},
        losses={text: np.ones(4) for text in plan.texts()},
        information={"weights_sha256": "0" * 64, "target_tokens": 1},
    )


@pytest.fixture(scope="module")
def report(plan: plans.Plan) -> dict[str, Any]:
    return length_report(plan, {"mine": _outputs(plan)}, number=20).content()


def test_chinese_sentences_fall_into_buckets_by_their_words(report: dict[str, Any]) -> None:
    buckets = report["curves"]["natural"]["mine"]["buckets"]
    assert [b["n"] for b in buckets] == [3, 8 + 3, 3, 0, 0, 3, 0, 0]
    assert buckets[5]["words"] == 55.0
    assert all(bucket["found"] is None for bucket in buckets)
    assert report["positions"]["found"] == {}


def test_runs_are_joined_without_spaces(plan: plans.Plan) -> None:
    first, _ = plan.runs
    ((source, target),) = first.cuts[1]
    assert source == _sentence(15) * 4 and target.count(". sentence") == 3


def test_a_report_says_its_languages_and_its_unit(report: dict[str, Any], plan: plans.Plan) -> None:
    assert report["languages"] == ["zh", "en"] and report["unit"] == "words"
    assert report["legend"]["low, high"].startswith("of a bucket: Chinese words of a sentence")
    assert "|tok:13a|" in report["signatures"]["bleu"]
    figure = plotting.length_curve(report)
    assert figure.axes[0].get_xlabel() == "words in the source sentence"
    assert plotting.length_curve(report, language="zh").axes[0].get_xlabel() == "源句的词数"
    held = plotting.length_curve({**report, "unit": "characters"}, curve="same-content")
    assert held.axes[0].get_xlabel() == "source characters held at once (mean of a run)"
    broken = plotting.where_it_breaks(report)
    assert broken.axes[0].get_xlabel() == "position in the translation, in pieces"


def test_a_report_of_english_and_french_says_nothing_new(tmp_path: Path) -> None:
    file = tmp_path / "test.tsv"
    file.write_text("d\tone two three\tun deux trois quatre\n", encoding="utf-8")
    plan = plans.plan(file)
    found = length_report(plan, {"mine": _outputs(plan)}, number=5).content()
    assert not {"languages", "unit"} & set(found)
    assert found["legend"]["low, high"].startswith("of a bucket: English words")
    assert plotting.length_curve(found).axes[0].get_xlabel() == "English words in the sentence"
    assert "languages" not in quality_report({"t": (plan, {1: {"mine": _outputs(plan)}})}).content()


def test_quality_of_other_languages_is_in_their_signature(plan: plans.Plan) -> None:
    found = quality_report({"t": (plan, {1: {"mine": _outputs(plan)}})}, number=5).content()
    assert found["languages"] == ["zh", "en"]


# ---------------------------------------------------------------------------------------------
# Models


def _model(folder: Path, *languages: str) -> Path:
    folder.mkdir()
    record = {"languages": list(languages)} if languages else {}
    (folder / "training.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def test_models_of_one_report_have_the_same_languages(tmp_path: Path) -> None:
    mine, other = _model(tmp_path / "mine", "en", "zh"), _model(tmp_path / "other")
    assert languages_of({"mine": mine}).codes == ("en", "zh")
    assert languages_of({"other": other}).is_default
    with pytest.raises(
        LanguageError, match="of one pair of languages, got mine en-zh, other en-fr"
    ):
        languages_of({"mine": mine, "other": other})


def test_found_words_need_a_table_of_the_pair(tmp_path: Path) -> None:
    said: list[str] = []
    assert evaluate._lexicon(LanguagePair.of("de", "fr"), said.append) is None
    assert said == ["note: there is no table of words for de-fr, so found words are not counted"]
    assert evaluate._lexicon(LanguagePair.of("en", "fr"), said.append) is not None
    with pytest.raises(LanguageError, match="expected models from English into French, got de-fr"):
        evaluate.by_chains(
            tmp_path / "no.tsv", {"m": _model(tmp_path / "m", "de", "fr")}, tmp_path, said.append
        )
