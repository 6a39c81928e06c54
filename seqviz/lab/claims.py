"""The article's claims, what the literature says, and what was measured here.

The article and the literature stand here as text. What was measured is read from reports whenever it is
asked for, and so is the verdict, as far as it rests on a measurement: without the report it says "not
measured".

    for claim in CLAIMS:
        print(claim.id, claim.judge(reports).verdict)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seqviz.lab import two_digits
from seqviz.words import words

Reports = Mapping[str, Mapping[str, Any]]
"""Content of ``models/report/NAME.json`` by name; those that are not there are left out."""

REPORTS = ("length", "gradient", "recall", "cost", "training_cost")
"""What the claims are measured by."""

VERDICTS = ("holds", "holds-partly", "does-not-hold", "not-measured")

Says = dict[str, str]
"""A text by language, "en" and "zh"."""


@dataclass(frozen=True)
class Judged:
    """What became of a claim.

    Attributes:
        verdict: one of `VERDICTS`.
        says: what was measured here, by language.
        commands: that give the numbers in it again.
    """

    verdict: str
    says: Says
    commands: tuple[str, ...] = ()


NOT_MEASURED: Says = {"en": "Not measured.", "zh": "尚未测量。"}


@dataclass(frozen=True)
class Claim:
    """One claim of the article.

    Attributes:
        id: a letter.
        article: what the article says, by language.
        literature: what papers say, with their names, by language.
        needs: reports without which nothing can be said.
        measure: reports → what they say of the claim. The reports it needs are there.
    """

    id: str
    article: Says
    literature: Says
    needs: tuple[str, ...]
    measure: Callable[[Reports], Judged] = field(repr=False)

    def judge(self, reports: Reports) -> Judged:
        """The verdict and the numbers that it rests on.

        A report of other models or layers than the claim speaks of, or with null in the place of a number
        that could not be computed, counts as none.

        Raises:
            ValueError: a report is damaged.
        """
        if any(name not in reports for name in self.needs):
            return Judged("not-measured", NOT_MEASURED)
        try:
            found = self.measure(reports)
        except (KeyError, TypeError):
            return Judged("not-measured", NOT_MEASURED)
        assert found.verdict in VERDICTS, found.verdict
        commands = dict.fromkeys(str(reports[name]["command"]) for name in self.needs)
        return Judged(found.verdict, found.says, tuple(commands))


# ---------------------------------------------------------------------------------------------
# What the reports say


def _percent(share: float) -> str:
    return two_digits(100 * share)


def _kept(name: str, model: Mapping[str, Any]) -> dict[str, str]:
    """What a model keeps of its BLEU, and the ends of the interval, in percent; keys begin with `name`."""
    found = model["bleu_ratio"]
    return {f"{name}_{key}": _percent(found[key]) for key in ("value", "low", "high")}


def _lengths(effect: Mapping[str, Any]) -> dict[str, str]:
    """The two lengths that a measured effect is between, in words."""
    return {key: f"{effect[key]['low']}–{effect[key]['high']}" for key in ("short", "long")}


def _by_length(reports: Reports) -> Judged:
    """e. BLEU between 30 and 60 words, one fixed vector."""
    effects = reports["length"]["effects"]
    same, natural = (effects[curve]["models"] for curve in ("same-content", "natural"))
    values = {
        **_lengths(effects["same-content"]),
        **_kept("lstm", same["lstm"]),
        **_kept("rnn", same["rnn"]),
        **_kept("natural", natural["lstm"]),
    }
    # A fall: the whole interval lies below 1. Whose finding it was is settled by the literature.
    fell = [models["lstm"]["bleu_ratio"]["high"] < 1 for models in (same, natural)]
    return Judged(
        "holds-partly" if any(fell) else "does-not-hold",
        {
            "en": "From {short} to {long} words held at once, the same text: lstm keeps {lstm_value} % of its BLEU "
            "({lstm_low} to {lstm_high}), rnn {rnn_value} % ({rnn_low} to {rnn_high}). Sentences that are that long "
            "by themselves: lstm keeps {natural_value} % ({natural_low} to {natural_high}).".format(
                **values
            ),
            "zh": "同一段文字，一次读入的词从 {short} 个增加到 {long} 个：lstm 保住 {lstm_value}% 的 BLEU（{lstm_low} 到 "
            "{lstm_high}），rnn 保住 {rnn_value}%（{rnn_low} 到 {rnn_high}）。本来就这么长的句子：lstm 保住 {natural_value}%（"
            "{natural_low} 到 {natural_high}）。".format(**values),
        },
    )


NO_DECAY = 0.9
"""A model that keeps less of its BLEU decays, whatever the interval."""


def _no_decay(reports: Reports) -> Judged:
    """f. BLEU between 30 and 60 words, with attention and without."""
    effect = reports["length"]["effects"]["same-content"]
    models = effect["models"]
    values = {
        **_lengths(effect),
        **_kept("with", models["lstm-attention"]),
        **_kept("without", models["lstm"]),
        **_kept("transformer", models["transformer"]),
    }
    kept = models["lstm-attention"]["bleu_ratio"]
    if kept["high"] >= 1:
        verdict = "holds"
    else:
        better = kept["low"] > models["lstm"]["bleu_ratio"]["high"]
        verdict = "holds-partly" if better and kept["value"] >= NO_DECAY else "does-not-hold"
    return Judged(
        verdict,
        {
            "en": "The same text at {long} instead of {short} words: lstm-attention keeps {with_value} % of its BLEU ({with_low} to "
            "{with_high}), the Transformer {transformer_value} % ({transformer_low} to {transformer_high}), lstm, which differs "
            "in attention alone, {without_value} % ({without_low} to {without_high}).".format(
                **values
            ),
            "zh": "同一段文字，一次读入 {long} 个词而不是 {short} 个：lstm-attention 保住 {with_value}% 的 BLEU（{with_low} 到 {with_high}），"
            "Transformer 保住 {transformer_value}%（{transformer_low} 到 {transformer_high}），只差注意力的 lstm 保住 "
            "{without_value}%（{without_low} 到 {without_high}）。".format(**values),
        },
    )


def _vanishing(reports: Reports) -> Judged:
    """i. Why gradients vanish, and what the LSTM's cell does about it."""
    report = reports["gradient"]
    faded = report["faded_at"]["project"]
    last = len(report["at_start"]["project"]["rnn"]["median"]) - 1

    def said(key: str, language: str) -> str:
        distance = faded[f"lstm-forget-{key}"]
        if distance is None:
            return f"not within {last}" if language == "en" else f"{last} 步之内没有"
        return f"after {distance}" if language == "en" else f"{distance} 步之后"

    # The recurrent weights are orthogonal at the start: every singular value is 1.
    at_one = faded["rnn"] is not None
    adding_is_enough = faded["lstm-forget-0"] is None
    verdict = "holds-partly" if at_one or not adding_is_enough else "holds"
    steps = "not" if faded["rnn"] is None else f"after {faded['rnn']} steps"
    steps_zh = "没有" if faded["rnn"] is None else f"在 {faded['rnn']} 步之后"
    share = _percent(report["share"])
    return Judged(
        verdict,
        {
            "en": f"With all singular values at 1, before training, the tanh RNN’s gradient falls below {share} % {steps}. "
            f"The LSTM’s: {said('0', 'en')} steps with forget bias 0, {said('1', 'en')} with 1, {said('3', 'en')} with 3.",
            "zh": f"训练之前，奇异值全为 1 时，tanh RNN 的梯度{steps_zh}降到 {share}% 以下。LSTM：遗忘偏置为 0 时"
            f"{said('0', 'zh')}，为 1 时{said('1', 'zh')}，为 3 时{said('3', 'zh')}。",
        },
    )


def _recalled(found: Mapping[str, Any], distances: Sequence[int], language: str) -> str:
    """Up to which distance a model of the recall experiment answers."""
    distance, means = found["half_way"]["mean"], found["accuracy"]["mean"]
    if distance is not None:
        return f"{distance:.0f}" if language == "en" else f"{distance:.0f} 步"
    if means[-1] > 0.5:
        return f"more than {distances[-1]}" if language == "en" else f"{distances[-1]} 步以上"
    return f"less than {distances[0]}" if language == "en" else f"不到 {distances[0]} 步"


ARTICLE_RNN = (10, 20)
"""Steps a plain RNN remembers, by the article."""


def _rnn_memory(reports: Reports) -> Judged:
    """c. How long a plain RNN remembers: in a task that is learned, and by its gradient at the start."""
    recall, faded = reports["recall"], reports["gradient"]["faded_at"]["project"]["rnn"]
    alone, mixed = (recall[training]["rnn"] for training in ("alone", "mixed"))
    low, high = ARTICLE_RNN
    distances = [alone["half_way"]["mean"], mixed["half_way"]["mean"], faded]
    within = [d is not None and low <= d <= high for d in distances]
    verdict = "holds" if all(within) else "holds-partly" if any(within) else "does-not-hold"
    share = _percent(reports["gradient"]["share"])
    said, zh = (
        [_recalled(found, recall["distances"], language) for found in (alone, mixed)]
        for language in ("en", "zh")
    )
    at = "never" if faded is None else f"after {faded} steps"
    at_zh = "始终没有" if faded is None else f"在 {faded} 步之后"
    return Judged(
        verdict,
        {
            "en": f"Before training the gradient falls below {share} % {at}. Learning to name a symbol after noise, the tanh "
            f"RNN gets half way to chance at a distance of {said[0]} if trained at that distance alone, {said[1]} if trained "
            "on short and long ones together: what it learns depends on how it is taught.",
            "zh": f"训练之前，梯度{at_zh}降到 {share}% 以下。学着在噪声之后说出一个符号：若只在该距离上训练，tanh RNN 的正确率在 {zh[0]}"
            f"处落到满分与瞎猜的正中；若长短距离混在一起训练，则是 {zh[1]}。学得会多远，取决于怎么教。",
        },
    )


def _lstm_memory(reports: Reports) -> Judged:
    """d. How long an LSTM remembers; the article's figure is of language models, which are not measured."""
    recall = reports["recall"]
    values = {}
    for training in ("alone", "mixed"):
        for kind in ("lstm", "lstm-forget-3"):
            found = recall[training][kind]
            values[training, kind] = [
                _recalled(found, recall["distances"], language) for language in ("en", "zh")
            ]
    (a, a_zh), (b, b_zh) = values["alone", "lstm"], values["alone", "lstm-forget-3"]
    (c, c_zh), (d, d_zh) = values["mixed", "lstm"], values["mixed", "lstm-forget-3"]
    return Judged(
        "not-measured",
        {
            "en": "No language model was measured. In the recall task, half way to chance is reached at a distance of "
            f"{a} (forget bias 1) and {b} (3) if trained at that distance alone, {c} and {d} if trained on short and long ones "
            "together.",
            "zh": f"这里没有测语言模型。在回忆任务里，正确率落到满分与瞎猜正中的距离：只在该距离上训练时是 {a_zh}（遗忘偏置 1）和 {b_zh}"
            f"（偏置 3），长短混合训练时是 {c_zh}和 {d_zh}。",
        },
    )


ARTICLE_BUSY = ((0.05, 0.15), (0.70, 0.95))
"""Shares of the time in which a GPU is busy training an LSTM and a Transformer, by the article."""


def _busy(reports: Reports) -> Judged:
    """a. How much of the hardware a recurrent and an attention layer use."""
    report = reports["cost"]
    shares, busy = {}, {}
    for layer in ("lstm", "attention-fused"):
        runs = [found[layer]["forward_backward"] for found in report["layers"].values()]
        every = [share for run in runs for share in run["share_of_matmul_rate"]]
        shares[layer] = min(every), max(every)
        busy[layer] = [share for run in runs for share in run.get("kernel_busy", ())]
    (a, b), (c, d) = shares.values()
    said = {
        "en": f"Share of the rate for large matrix products, training one layer, over all widths and lengths: LSTM {_percent(a)} "
        f"to {_percent(b)} %, fused attention {_percent(c)} to {_percent(d)} %; {report['hardware']}.",
        "zh": f"训练单独一层，达到大矩阵乘法速率的百分比（所有宽度和长度）：LSTM {_percent(a)} 到 {_percent(b)}%，融合注意力 "
        f"{_percent(c)} 到 {_percent(d)}%；{report['hardware']}。",
    }
    if not all(busy.values()):
        return Judged(
            "not-measured",
            {"en": f"No GPU here. {said['en']}", "zh": f"这里没有 GPU。{said['zh']}"},
        )
    within = [
        low <= sum(values) / len(values) <= high
        for values, (low, high) in zip(busy.values(), ARTICLE_BUSY, strict=True)
    ]
    verdict = "holds" if all(within) else "holds-partly" if any(within) else "does-not-hold"
    return Judged(verdict, said)


FOURFOLD = 3.0
"""From this ratio on the time of one sentence is taken to be quadrupled rather than doubled."""


def _square(reports: Reports) -> Judged:
    """g. One step instead of N, and what twice the length costs."""
    report = reports["cost"]
    # At the same number of tokens: a sentence's own time grows by twice this ratio.
    ratios = {
        width: 2 * doubled["attention-naive"]["seconds"]
        for width, doubled in report["doubling"].items()
        if doubled
    }
    if not ratios:
        return Judged("not-measured", NOT_MEASURED)
    narrow, wide = (choose(ratios, key=int) for choose in (min, max))
    doubled = report["doubling"][narrow]
    low, high = doubled["from"], doubled["to"]
    scores = 2 * doubled["attention-naive"]["score_bytes"]
    lstm = 2 * doubled["lstm"]["seconds"]
    layers = report["layers"][narrow]
    steps, one = (layers[layer]["path_length"][-1] for layer in ("lstm", "attention-naive"))
    values = {
        "low": f"{low:,}",
        "high": f"{high:,}",
        "narrow": narrow,
        "wide": wide,
        "narrow_time": f"{ratios[narrow]:.1f}",
        "wide_time": f"{ratios[wide]:.1f}",
        "lstm": f"{lstm:.1f}",
        "scores": f"{scores:.1f}",
        "steps": f"{steps:,}",
        "one": one,
    }
    return Judged(
        "holds" if min(ratios.values()) >= FOURFOLD else "holds-partly",
        {
            "en": "Path of {steps} steps against {one}. From {low} to {high} tokens a sentence’s scores take {scores} times the "
            "memory; training one attention layer on it takes {narrow_time} times as long at width {narrow} and {wide_time} "
            "times at width {wide}, where other work still weighs more; an LSTM layer {lstm} times.".format(
                **values
            ),
            "zh": "路径 {steps} 步对 {one} 步。一个句子从 {low} 个词元增到 {high} 个，分数矩阵占内存 {scores} 倍；训练一层注意力的时间，"
            "宽度 {narrow} 时是 {narrow_time} 倍，宽度 {wide} 时是 {wide_time} 倍（其他计算仍占大头）；一层 LSTM 是 {lstm} 倍。".format(
                **values
            ),
        },
    )


ARTICLE_FASTER = (5.0, 10.0)
"""How much faster a Transformer trains, by the article."""


def _faster(reports: Reports) -> Judged:
    """h. Cost of the same loss: the Transformer against the LSTMs."""
    levels = {
        level["final_loss_of"]: level for level in reports["training_cost"]["cost_to_equal_loss"]
    }
    faster, english, chinese = [], [], []
    for name in ("lstm", "lstm-attention"):
        paid = levels[name]["models"]["transformer"]
        loss = f"{levels[name]['loss']:.2f}"
        if paid is None:
            faster.append(0.0)
            english.append(f"it did not come down to the final loss of {name} ({loss})")
            chinese.append(f"没有降到 {name} 的最终损失（{loss}）")
            continue
        times = paid["times"]
        if times["seconds"] is None:
            return Judged("not-measured", NOT_MEASURED)
        faster.append(1 / times["seconds"])
        more, more_zh = ("at least ", "至少") if paid["at_most"] else ("", "")
        values = f"{faster[-1]:.1f}", f"{1 / times['operations']:.1f}"
        english.append(
            f"{more}{values[0]} times as fast, with {more}{values[1]} times fewer operations, down to the final loss of "
            f"{name} ({loss})"
        )
        chinese.append(
            f"降到 {name} 的最终损失（{loss}），速度{more_zh}是后者的 {values[0]} 倍，后者的运算量{more_zh}是它的 {values[1]} 倍"
        )
    low, high = ARTICLE_FASTER
    if all(low <= times <= high for times in faster):
        verdict = "holds"
    else:
        verdict = "holds-partly" if any(times > 1 for times in faster) else "does-not-hold"
    return Judged(
        verdict,
        {
            "en": f"The Transformer on this project’s data and hardware: {'; '.join(english)}. Seconds are tokens divided by "
            "each model’s own rate on an idle machine; one run a model.",
            "zh": f"Transformer 在本项目的数据和硬件上：{'；'.join(chinese)}。秒数由词元数除以各模型在空闲机器上的速率得出；每个模型只训练一次。",
        },
    )


# ---------------------------------------------------------------------------------------------
# The claims

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "a",
        {
            "en": "Training an LSTM keeps a GPU 5–15 % busy, a Transformer of the same size 70–95 %.",
            "zh": "训练 LSTM 时 GPU 利用率常在 5–15%，同等规模的 Transformer 可达 70–95%。",
        },
        {
            "en": "No source for these figures was found, and what a driver calls utilisation only counts the time in "
            "which any kernel runs. Worked out from published throughputs on one V100: about 20 % of the peak in fp16 "
            "for the recurrent GNMT, 32 % for the big Transformer. Very low figures are real for small batches, step by "
            "step (Diamos et al. 2016).",
            "zh": "没有找到这些数字的出处；而且驱动所说的“利用率”只统计有任何内核在运行的时间。按公开的单张 V100 吞吐量推算：循环模型 GNMT "
            "约为 fp16 峰值的 20%，大号 Transformer 约 32%。小批量、逐步计算时，极低的数字确有其事（Diamos 等 2016）。",
        },
        ("cost",),
        _busy,
    ),
    Claim(
        "b",
        {
            "en": "An 8-layer LSTM translator takes days to a week on eight V100.",
            "zh": "训练一个 8 层 LSTM 翻译模型，8 张 V100 要几天到一周。",
        },
        {
            "en": "That is another era’s figure: Sutskever et al. 2014 needed 10 days on 8 GPUs of their time, Bahdanau et al. "
            "2015 108 to 252 hours on one. On 8 V100 a GNMT of 4 + 4 layers took 46 minutes in fp16 and 117 in fp32; the median "
            "of MLPerf v0.6 is 20.9 minutes.",
            "zh": "这是另一个时代的数字：Sutskever 等 2014 用当时的 8 块 GPU 训练了 10 天，Bahdanau 等 2015 用一块 GPU 训练了 108 到 252 "
            "小时。在 8 张 V100 上，4 + 4 层的 GNMT 用 fp16 只要 46 分钟，fp32 要 117 分钟；MLPerf v0.6 的中位数是 20.9 分钟。",
        },
        (),
        lambda reports: Judged(
            "does-not-hold",
            {
                "en": "Not measured here: that takes eight V100. The verdict is the literature’s.",
                "zh": "这里没有测：那需要八张 V100。结论依据文献。",
            },
        ),
    ),
    Claim(
        "c",
        {
            "en": "A plain RNN can steadily remember only 10–20 steps.",
            "zh": "普通 RNN 能稳定记住的长度只有 10–20 步。",
        },
        {
            "en": "A rule of thumb; Gers et al. 2000 say 5 to 10 time lags. It describes default training: with clipping and "
            "a regulariser Pascanu et al. 2013 solve lags of 50 to 200.",
            "zh": "这是经验之谈；Gers 等 2000 说的是 5 到 10 步。它描述的是默认的训练方法：Pascanu 等 2013 用梯度裁剪和正则化，解决了 50 "
            "到 200 步的任务。",
        },
        ("recall", "gradient"),
        _rnn_memory,
    ),
    Claim(
        "d",
        {
            "en": "An LSTM’s effective memory is only about 200–300 tokens.",
            "zh": "LSTM 的有效记忆长度只有 200–300 个 token 左右。",
        },
        {
            "en": "Khandelwal et al. 2018: an LSTM language model uses about 200 tokens of context on average, and beyond 50 "
            "their order hardly matters. That is what one kind of model made use of, not a limit of the cell.",
            "zh": "Khandelwal 等 2018：LSTM 语言模型平均用到约 200 个 token 的上文，50 个以外的词序已无关紧要。这是一类模型用上了多少，"
            "不是这种单元的极限。",
        },
        ("recall",),
        _lstm_memory,
    ),
    Claim(
        "e",
        {
            "en": "Sutskever et al. 2014 found that BLEU collapses when sentences grow from 30 to 60 words.",
            "zh": "Sutskever 等人 2014 年发现：句子从 30 个词增加到 60 个词时，BLEU 暴跌。",
        },
        {
            "en": "They report no loss below 35 words and only a minor one on the longest sentences. The collapse is in Cho et "
            "al. 2014 and in figure 2 of Bahdanau et al. 2015. On all sentences together BLEU first rises with length (Koehn & "
            "Knowles 2017).",
            "zh": "他们报告的是 35 个词以下没有下降，最长的句子也只略有下降。暴跌出现在 Cho 等 2014 和 Bahdanau 等 2015 的图 2 "
            "里。就全体句子而言，BLEU 起初还随长度上升（Koehn 与 Knowles 2017）。",
        },
        ("length",),
        _by_length,
    ),
    Claim(
        "f",
        {
            "en": "With attention, quality on long sentences no longer decays.",
            "zh": "加上注意力之后，长句翻译的性能不再衰减。",
        },
        {
            "en": "Bahdanau et al. 2015, table 1: 26.75 BLEU with attention, 17.82 without, all trained on up to 50 words; but only "
            "the model with attention has a bidirectional encoder. Press & Smith 2018 do as well on long sentences without "
            "attention. Transformers, too, fail beyond the lengths they were trained on (Neishi & Yoshinaga 2019, Variš & Bojar "
            "2021).",
            "zh": "Bahdanau 等 2015 表 1：训练句最长 50 个词时，有注意力 26.75 BLEU，没有则为 17.82；但只有带注意力的模型用了双向编码器。"
            "Press 与 Smith 2018 不用注意力，长句也一样好。Transformer 超出训练长度同样会失灵（Neishi 与 Yoshinaga 2019，Variš 与 Bojar "
            "2021）。",
        },
        ("length",),
        _no_decay,
    ),
    Claim(
        "g",
        {
            "en": "Attention shortens the path between two words from O(N) to O(1) and costs O(N²): twice the length, four times "
            "the work.",
            "zh": "注意力把两个词之间的路径从 O(N) 缩短到 O(1)，代价是 O(N²)：长度翻倍，计算量翻四倍。",
        },
        {
            "en": "Right (Vaswani et al. 2017, table 1: N²d operations against Nd², fewer while N < d). With constants, an LSTM layer "
            "takes 16d² operations a token and attention 8d² + 4Nd: they meet at N = 2d, and only far beyond does doubling N "
            "cost four times as much. Writing a text stays one step at a time for both.",
            "zh": "说得对（Vaswani 等 2017 表 1：N²d 次运算对 Nd² 次，N < d 时更少）。算上常数，一层 LSTM 每个词元要 16d² 次运算，注意力要 8d² "
            "+ 4Nd 次：在 N = 2d 处相等，远远超过之后，长度翻倍才是四倍的花费。生成文本时，两者仍然都是一次一步。",
        },
        ("cost",),
        _square,
    ),
    Claim(
        "h",
        {
            "en": "The Transformer trains 5–10 times faster.",
            "zh": "Transformer 的训练快 5–10 倍。",
        },
        {
            "en": "Not in general. By Vaswani et al. 2017, table 2, the base model takes 7.0 times fewer operations than GNMT, the big "
            "one as many (English–German). MLPerf v0.6 on the same 8 V100: 20.0 minutes against 20.9, with different targets.",
            "zh": "并不总是如此。据 Vaswani 等 2017 表 2，基础模型的运算量是 GNMT 的 1/7.0，大模型则与之相当（英德翻译）。MLPerf v0.6 在同样的 8 "
            "张 V100 上：20.0 分钟对 20.9 分钟，而且目标不同。",
        },
        ("training_cost",),
        _faster,
    ),
    Claim(
        "i",
        {
            "en": "Gradients vanish where singular values are below 1; the LSTM’s cell adds and lets them through almost undiminished.",
            "zh": "奇异值小于 1 时梯度会消失；LSTM 的细胞状态做加法，让梯度几乎不衰减地通过。",
        },
        {
            "en": "Sufficient, not necessary: at 1 they vanish as well, since tanh′ < 1 (Pascanu et al. 2013). Adding alone is "
            "not enough: the product of the forget gates decides (Gers et al. 2000; Jozefowicz et al. 2015 start their bias at "
            "1).",
            "zh": "充分但不必要：奇异值等于 1 时也会消失，因为 tanh′ < 1（Pascanu 等 2013）。只做加法也不够：起决定作用的是各步遗忘门的乘积（Gers "
            "等 2000；Jozefowicz 等 2015 把它的偏置初始化为 1）。",
        },
        ("gradient",),
        _vanishing,
    ),
)
"""In the order of the article."""


def markdown(reports: Reports) -> str:
    """The claims as a table for the README."""
    rows = [
        "What the article that this project was made after says, what the literature says, and what was measured "
        "here (`seqviz/lab/claims.py`):",
        "",
        "| the article | the literature | measured here | verdict |",
        "| --- | --- | --- | --- |",
    ]
    for claim in CLAIMS:
        found = claim.judge(reports)
        commands = "".join(f" `{command}`" for command in found.commands)
        rows.append(
            f"| {claim.article['en']} | {claim.literature['en']} | {found.says['en']}{commands} | "
            f"{words(f'lab_verdict_{found.verdict}', 'en')} |"
        )
    return "\n".join(rows)
