"""Never known, kept, forgotten; and chains of strangers, where the same sentences are asked at every length."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from test_cli import run_here

from seqviz import coverage
from seqviz.corpus import CorpusError
from seqviz.drawing import figures
from seqviz.measuring import chains, markdown
from seqviz.measuring.chains import SIZES, UNIT, Chains, chains_report, joined
from seqviz.measuring.outputs import Output, Outputs
from seqviz.training import save_model

NOUNS = {"cat": "chat", "dog": "chien", "house": "maison", "water": "eau"}
TOY = coverage.Lexicon({**NOUNS, "hous": "maison", "sleep": "dort", "see": "voi"}, {})


def states(sentences: list[str], alone: list[str], together: str) -> list[list[str | None]]:
    found = coverage.remembered(sentences, alone, together, TOY)
    return [[word.state for word in sentence] for sentence in found]


def test_three_states_by_hand() -> None:
    sentences = ["The cat sleeps.", "The dog sees the house."]
    alone = ["Le chat dort.", "Le chien est là."]
    assert states(sentences, alone, "Le chat dort. Il est là.") == [
        [None, "kept", "kept"],
        [None, "forgotten", "never knew", None, "never knew"],
    ]


def test_a_word_never_known_is_not_forgotten_and_one_found_later_is_not_kept() -> None:
    assert states(["The cat."], ["Le chien."], "Il dort.") == [[None, "never knew"]]
    assert states(["The cat."], ["Le chien."], "Le chat.") == [[None, "never knew"]]


def test_each_occurrence_needs_a_match_of_its_own() -> None:
    found = states(["The cat.", "My cat."], ["Le chat.", "Mon chat."], "Le chat.")
    assert sorted(filter(None, found[0] + found[1])) == ["forgotten", "kept"]


def test_shares_count_what_was_known() -> None:
    sentences = ["The cat sleeps.", "The dog sees the house."]
    found = coverage.remembered(
        sentences, ["Le chat dort.", "Le chien."], "Le chat et la maison.", TOY
    )
    words = [word for sentence in found for word in sentence]
    assert coverage.forgetting(words) == (
        2,
        3,
    )  # cat kept; sleeps and dog forgotten; the rest never known
    assert coverage.forgetting([]) == (0, 0)


def test_one_output_for_each_sentence() -> None:
    with pytest.raises(ValueError, match="expected one output for each of 2 sentences, got 1"):
        coverage.remembered(["A cat.", "A dog."], ["Un chat."], "Un chat.", TOY)


# ---------------------------------------------------------------------------------------------
# Chains


def write(path: Path, number: int) -> Path:
    """A corpus of so many different sentences of three to six words, and lines that cannot be used."""
    nouns = [*NOUNS.items()]
    lines = []
    for i in range(number):
        english, french = nouns[i % len(nouns)]
        more = "so " * (i % 4)
        lines.append(f"\tThe {english} {more}{i}.\tLe {french} {'si ' * (i % 4)}{i}.")
    lines += ["\tThe cat 3.\tUn chat 3.", "\t" + "so " * 20 + "long.\tSi long."]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def drawn(tmp_path: Path) -> Chains:
    return chains.chains(write(tmp_path / "short.tsv", 100))


def test_every_order_holds_every_sentence_once_at_every_size(drawn: Chains) -> None:
    assert len(drawn.pairs) == 4 * UNIT
    assert drawn.skipped == {"over 12 source words": 1} | (
        {"same English as another pair": 1}
        if "same English as another pair" in drawn.skipped
        else {}
    )
    for order in range(chains.SHUFFLES):
        for size in SIZES:
            found = drawn.of_size(size, order)
            assert {len(chain) for chain in found} == {size}
            assert sorted(p for chain in found for p in chain) == sorted(drawn.pairs)
    assert len(set(drawn.orders)) == chains.SHUFFLES


def test_units_hold_the_same_text_at_every_size(drawn: Chains) -> None:
    for order in range(chains.SHUFFLES):
        texts = {" ".join(joined(c)[0] for c in drawn.of_size(size, order)) for size in SIZES}
        assert len(texts) == 1


def test_the_same_seed_draws_the_same(tmp_path: Path) -> None:
    file = write(tmp_path / "short.tsv", 200)
    one, same, other = (chains.chains(file, sample=100, seed=s) for s in (1, 1, 2))
    assert one == same
    assert one.pairs != other.pairs
    assert len(one.pairs) == 96


def test_no_chain_is_longer_than_what_is_read_at_once(tmp_path: Path) -> None:
    file = tmp_path / "long.tsv"
    file.write_text(
        "".join(f"\t{'w ' * (2 if i % 2 else 9)}{i}\tm {i}\n" for i in range(240)), "utf-8"
    )
    drawn = chains.chains(file)
    words = [len(s.split()) for s in drawn.sources()]
    assert max(words) <= 100
    file.write_text("".join(f"\t{'w ' * 11}{i}\tm {i}\n" for i in range(240)), "utf-8")
    with pytest.raises(CorpusError, match="at most 100 words, got 12.0 words a sentence; give"):
        chains.chains(file)


def test_sentences_seen_in_training_are_left_out(tmp_path: Path) -> None:
    file = write(tmp_path / "short.tsv", 100)
    (tmp_path / "train.tsv").write_text("\tA cat 0.\tLE CHAT, 0 !\n", encoding="utf-8")
    seen = chains.seen_targets([tmp_path / "train.tsv"])
    drawn = chains.chains(file, seen=seen)
    assert drawn.skipped["French side stands in the training corpora"] == 1
    assert not any(pair.source == "The cat 0." for pair in drawn.pairs)


def test_too_few_sentences(tmp_path: Path) -> None:
    with pytest.raises(
        CorpusError, match=r"at least 48 sentences .* got 31 \(1 over 12 source words\); give"
    ):
        chains.chains(write(tmp_path / "short.tsv", 30))


def forgetful(drawn: Chains, keeps: int) -> Outputs:
    """Outputs of a model that translates perfectly, but only the last `keeps` sentences of a chain."""
    translations = {}
    for order in range(len(drawn.orders)):
        for size in SIZES:
            for chain in drawn.of_size(size, order):
                translations[joined(chain)[0]] = Output(
                    joined(chain[-keeps:])[1], repeated=size > 4, limit=False
                )
    losses = {
        text: np.full(len(text[1].split()), float(len(text[0].split()))) for text in drawn.texts()
    }
    return Outputs(translations, losses, {"weights_sha256": str(keeps)})


def test_what_a_forgetful_model_gets(drawn: Chains) -> None:
    outputs = {"perfect": forgetful(drawn, 12), "two": forgetful(drawn, 2)}
    report = chains_report({"all": (drawn, outputs)}, TOY, {"name": "short.tsv"}, number=50)
    found = report.content()["sets"]["all"]
    perfect, two = found["models"]["perfect"], found["models"]["two"]
    assert [point["sentences"] for point in two] == list(SIZES)
    assert [point["trained"] for point in two] == [True] * 4 + [False]
    for point in perfect:
        assert point["bleu"] == pytest.approx(100)
        assert (point["forgotten"], point["known"]) == (0, 1)
        assert point["found"] == point["found_reference"] == 1
        assert point["bleu_kept"] == pytest.approx(1)
    # Half of four, three quarters of eight, ten of twelve sentences are gone.
    assert [point["forgotten"] for point in two] == pytest.approx(
        [0, 0, 1 / 2, 3 / 4, 5 / 6], abs=0.05
    )
    assert two[3]["forgotten_low"] <= two[3]["forgotten"] <= two[3]["forgotten_high"]
    assert two[3]["forgotten_orders"][0] <= two[3]["forgotten"] <= two[3]["forgotten_orders"][1]
    assert two[3]["bleu_kept"] == pytest.approx(two[3]["bleu"] / 100, abs=1e-3)
    assert (two[2]["repeated"], two[3]["repeated"]) == (0, 1)
    # The output for another chain holds some of the words by chance.
    for point in perfect:
        assert 0 < point["forgotten_chance"] < 1 and 0 < point["found_chance"] < 1
    assert perfect[0]["known_chance"] == perfect[0]["found_chance"]
    # "si si si": a fourth of the human texts counts as repeating itself; chained, nearly all do.
    assert found["references"][0]["repeated"] == pytest.approx(0.25, abs=0.02)
    assert found["references"][4]["repeated"] > 0.9
    assert found["single"]["perfect"]["bleu"] == pytest.approx(100)


def test_the_report_in_a_figure_and_in_words(drawn: Chains) -> None:
    outputs = {"lstm": forgetful(drawn, 2), "transformer": forgetful(drawn, 12)}
    report = chains_report(
        {"all": (drawn, outputs), "unseen": (drawn, outputs)}, TOY, {"name": "s"}, number=20
    )
    for language, expected in (("en", "Of the words a model knew alone"), ("zh", "忘了多少")):
        figure = figures.chains(report.content(), language=language)
        assert any(expected in text.get_text() for text in figure.texts)
        left, right = figure.axes
        assert right.get_ylim() == (0, 102)
        lines = {line.get_label(): line for line in left.get_lines()}
        assert {"LSTM", "Transformer"} <= set(lines)
        points = report.results["sets"]["all"]["models"]["lstm"]
        assert lines["LSTM"].get_ydata().tolist() == [point["bleu"] for point in points]
    said = markdown.chains(report)
    assert said.count("| `lstm` | 8 |") == 2
    point = report.results["sets"]["all"]["models"]["lstm"][3]
    assert f"| {100 * point['forgotten']:.0f} % (" in said
    with pytest.raises(ValueError, match="with the set 'other', found all, unseen"):
        figures.chains(report.content(), which="other")
    with pytest.raises(ValueError, match="found no sets"):
        figures.chains({})


def test_scores_are_sacrebleus_over_the_units(drawn: Chains) -> None:
    outputs = forgetful(drawn, 2)
    report = chains_report({"all": (drawn, {"two": outputs})}, TOY, {}, number=10)
    point = report.content()["sets"]["all"]["models"]["two"][2]
    scores = []
    for order in range(chains.SHUFFLES):
        found = drawn.of_size(4, order)
        made = [outputs.translations[joined(chain)[0]].text for chain in found]
        meant = [joined(chain)[1] for chain in found]
        per = UNIT // 4
        made, meant = (
            [" ".join(side[i : i + per]) for i in range(0, len(side), per)]
            for side in (made, meant)
        )
        scores.append(sacrebleu.corpus_bleu(made, [meant]).score)
    assert point["bleu"] == pytest.approx(np.mean(scores), abs=0.01)
    assert point["bleu_orders"] == pytest.approx([min(scores), max(scores)], abs=0.01)


def test_command(tmp_path: Path, tiny_model, tiny_tokenizer, monkeypatch, capsys) -> None:
    folder = tmp_path / "transformer"
    record = {"model": "transformer", "dev_loss": 2.0}
    save_model(tiny_model("transformer"), tiny_tokenizer, folder, record)
    file = write(tmp_path / "short.tsv", 60)
    out = tmp_path / "chains.json"
    arguments = ["chains", "--data", str(file), "--training", str(file), "--out", str(out)]
    arguments += ["--model", str(folder), "--work", str(tmp_path / "work"), "--workers", "1"]
    code, _, said = run_here(arguments, monkeypatch, capsys)
    assert code != 0 and "French side stands in the training corpora" in said
    assert not out.exists()
    (tmp_path / "train.tsv").write_text("\tA cat 0.\tLe chat 0.\n", encoding="utf-8")
    arguments[4] = str(tmp_path / "train.tsv")
    code, _, said = run_here([*arguments, "--resamples", "10"], monkeypatch, capsys)
    assert code == 0, said
    report = json.loads(out.read_text(encoding="utf-8"))
    assert report["command"] == (
        "seqviz chains --data short.tsv --training train.tsv --model transformer --resamples 10"
    )
    assert set(report["sets"]) == {"all", "unseen"}
    assert len(report["sets"]["all"]["models"]["transformer"]) == len(SIZES)
