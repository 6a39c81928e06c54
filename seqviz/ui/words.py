"""All texts of the interface, in English and Chinese. The same keys in both; a test holds this."""

from __future__ import annotations

from typing import Any

LANGUAGES = ("en", "zh")

WORDS: dict[str, dict[str, str]] = {
    "en": {
        # the page
        "page_title": "seqviz: make your sentence longer and watch who forgets",
        "tagline": "Four generations of translators, trained alike. "
        "Make your sentence longer and watch who forgets.",
        "page_weights": "{parameters} M parameters each · trained on {tokens} French tokens each · "
        "weights of {date}",
        "page_loading": "The models are being loaded. This takes a few seconds after a start.",
        "page_broken": "A model could not be loaded.",
        "page_footer": "English to French, four small models trained by this project on Europarl and "
        "Tatoeba (CC BY 2.0 FR). Nothing that you type is stored.",
        "page_api": "API",
        "language": "Language",
        "tab_translate": "Translate",
        "tab_length": "Length",
        "tab_attention": "Attention",
        # the models
        "model_rnn": "RNN",
        "model_lstm": "LSTM",
        "model_lstm-attention": "LSTM + attention",
        "model_transformer": "Transformer",
        "how_rnn": "The whole sentence in one vector.",
        "how_lstm": "One vector again, but with gates.",
        "how_lstm-attention": "Looks back at every word, anew at each step.",
        "how_transformer": "Every word sees every word.",
        "drawing_rnn": "All source words meet in one point; all target words come out of it.",
        "drawing_lstm": "All source words meet in one point; all target words come out of it.",
        "drawing_lstm-attention": "A target word reaches every source word directly, some more strongly.",
        "drawing_transformer": "Every target word is joined to every source word.",
        # cards
        "card_trained": "trained on {tokens} tokens",
        "card_trained_unknown": "training budget not recorded",
        "card_bleu": "BLEU {score} on dev sentences",
        "card_bleu_unknown": "BLEU not measured",
        "card_speed": "{seconds} s · {speed} tokens/s",
        "card_empty": "Nothing to translate yet.",
        "card_working": "translating",
        "card_loading": "loading the model",
        "note_empty": "Nothing to translate: the text is empty.",
        "note_surrogate": "Broken characters were replaced by \ufffd.",
        "note_unknown": "Unknown to the models: {shown}",
        "note_split": "Too long to read at once: translated in {number} parts.",
        "note_truncated": "One word has {pieces} pieces; only the first {read} were read.",
        "note_limit": "Did not come to an end: stopped after {number} pieces.",
        "note_repetition": "Repeats itself: {shown}",
        # Translate tab
        "translate_lead": "The same sentence through four models, in the order history built them. "
        "Look at what each one drops or repeats.",
        "translate_box": "An English sentence",
        "translate_placeholder": "Type or paste English here",
        "translate_button": "Translate",
        "translate_longer": "Make it longer →",
        "translate_examples": "Examples",
        "translate_beams": "Search",
        "translate_beams_1": "greedy",
        "translate_beams_4": "4 beams",
        "translate_gloss": "In Chinese: {text}",
        "translate_too_long": "This text has {number} characters; the page takes {limit}. "
        "Please shorten it. The command “seqviz translate” takes any length.",
        "translate_language": "This does not look like English. The models read English only, "
        "so expect nonsense.",
        "translate_chinese": "The models read English only. Try one of these:",
        "translate_legend": "Paler words: the model was less sure. Wavy line: it repeats itself.",
        "translate_numbers": "What the numbers mean",
        "translate_numbers_text": "Time and tokens a second were measured on this machine for this text. "
        "All four models have the same tokenizer, data, data order and number of parameters (within 3 %); "
        "“trained on” counts the French tokens each one has seen. BLEU: {bleu}.",
        "translate_numbers_bleu": "greedy search on {sentences} held-out sentences, {signature}",
        "translate_numbers_bleu_unknown": "not measured yet for these weights",
        # Length tab
        "length_lead": "One sentence that keeps growing. Drag to the right and watch who loses the thread.",
        "length_passage": "Passage",
        "length_slider": "Length of the English sentence, in words",
        "length_words": "{number} words",
        "length_grow": "▶ Grow",
        "length_metric": "Curve",
        "length_english": "English, {number} words",
        "length_new": "New words are marked.",
        "length_gloss": "In Chinese",
        "length_reference": "French reference, by a person",
        "length_bleu": "sentence BLEU",
        "length_chrf": "sentence chrF",
        "length_plot": "{metric} of this passage, at each length",
        "length_axis": "English words",
        "length_plot_alt": "{metric} by number of English words. {models}.",
        "length_plot_alt_model": "{model}: {values}",
        "length_plot_alt_value": "{score} at {words} words",
        "length_plot_alt_none": "{model}: not computed yet",
        "length_filling": "The other lengths are being translated.",
        "length_how": "What this shows, and what it does not",
        "length_how_text": "This is one passage, translated greedily at each of its {stages} lengths by the "
        "models on this machine. sentence BLEU and sentence chrF compare each output with one French "
        "reference written by hand; they are noisy for a single sentence. Settings: {signatures}.",
        "length_measured": "The whole test set",
        "length_measured_none": "BLEU by length over the whole test set: not measured yet for these weights.",
        "length_measured_text": "BLEU by length over {number} test sentences, {low} to {high} words.",
        "length_measured_format": "BLEU by length: the report has a format this page does not know.",
        # Attention tab: keys begin with attention_ (edited by the maker of attention.py)
    },
    "zh": {
        # the page
        "page_title": "seqviz：句子变长，谁先忘记？",
        "tagline": "四代翻译模型，同样的训练。句子变长，谁先忘记？",
        "page_weights": "每个模型 {parameters} 百万参数 · 各训练 {tokens}个法语词元 · 权重日期 {date}",
        "page_loading": "正在加载模型，启动后需要几秒钟。",
        "page_broken": "有一个模型没能加载。",
        "page_footer": "英译法。四个小模型由本项目训练，语料为 Europarl 和 Tatoeba（CC BY 2.0 FR）。"
        "您输入的内容不会被保存。",
        "page_api": "API",
        "language": "语言",
        "tab_translate": "翻译",
        "tab_length": "句长",
        "tab_attention": "注意力",
        # the models
        "model_rnn": "RNN",
        "model_lstm": "LSTM",
        "model_lstm-attention": "LSTM + 注意力",
        "model_transformer": "Transformer",
        "how_rnn": "整句话压进一个向量。",
        "how_lstm": "还是一个向量，但加了门控。",
        "how_lstm-attention": "每写一个词，都回头看一遍原文。",
        "how_transformer": "每个词都直接看见所有词。",
        "drawing_rnn": "原文的词全部汇入一点，译文的词都从这一点出来。",
        "drawing_lstm": "原文的词全部汇入一点，译文的词都从这一点出来。",
        "drawing_lstm-attention": "译文的一个词直接连到原文的每个词，有强有弱。",
        "drawing_transformer": "译文的每个词都与原文的每个词相连。",
        # cards
        "card_trained": "训练量 {tokens}词元",
        "card_trained_unknown": "没有训练量记录",
        "card_bleu": "开发集 BLEU {score}",
        "card_bleu_unknown": "BLEU 尚未测量",
        "card_speed": "{seconds} 秒 · 每秒 {speed} 词元",
        "card_empty": "还没有要翻译的句子。",
        "card_working": "翻译中",
        "card_loading": "正在加载模型",
        "note_empty": "没有内容可以翻译。",
        "note_surrogate": "损坏的字符已换成 \ufffd。",
        "note_unknown": "模型不认识：{shown}",
        "note_split": "太长，一次读不完，分成 {number} 段翻译。",
        "note_truncated": "有一个词长达 {pieces} 个词元，只读了前 {read} 个。",
        "note_limit": "没能自己收尾，写到第 {number} 个词元时被截断。",
        "note_repetition": "出现重复：{shown}",
        # Translate tab
        "translate_lead": "同一句话交给四个模型，按问世先后排列。看看谁漏了词，谁在原地打转。",
        "translate_box": "一句英语",
        "translate_placeholder": "在这里输入或粘贴英语",
        "translate_button": "翻译",
        "translate_longer": "把句子变长 →",
        "translate_examples": "例句",
        "translate_beams": "搜索方式",
        "translate_beams_1": "贪心",
        "translate_beams_4": "束宽 4",
        "translate_gloss": "大意：{text}",
        "translate_too_long": "这段文字有 {number} 个字符，本页最多接受 {limit} 个，请缩短一些。"
        "命令行 “seqviz translate” 不限长度。",
        "translate_language": "这看起来不是英语。模型只读得懂英语，结果多半不知所云。",
        "translate_chinese": "这几个模型只读得懂英语。不妨试试下面的例句：",
        "translate_legend": "颜色越浅，模型越没把握；波浪线表示译文在重复。",
        "translate_numbers": "这些数字是什么意思",
        "translate_numbers_text": "用时和速度是在这台机器上翻译这段文字时实测的。四个模型的分词器、数据、"
        "数据顺序和参数量都相同（参数量相差不到 3%）；“训练量”指每个模型见过的法语词元数。BLEU：{bleu}。",
        "translate_numbers_bleu": "在 {sentences} 个没见过的句子上用贪心搜索测得，{signature}",
        "translate_numbers_bleu_unknown": "这套权重还没有测量",
        # Length tab
        "length_lead": "一个越来越长的句子。把滑块往右拖，看谁先跟不上。",
        "length_passage": "短文",
        "length_slider": "英语句子的长度（词数）",
        "length_words": "{number} 词",
        "length_grow": "▶ 变长",
        "length_metric": "曲线",
        "length_english": "英语原文，{number} 词",
        "length_new": "新增的词有底色。",
        "length_gloss": "中文大意",
        "length_reference": "法语参考译文（人工撰写）",
        "length_bleu": "句子级 BLEU",
        "length_chrf": "句子级 chrF",
        "length_plot": "这段短文在各个长度上的{metric}",
        "length_axis": "英语词数",
        "length_plot_alt": "横轴为英语词数，纵轴为{metric}。{models}。",
        "length_plot_alt_model": "{model}：{values}",
        "length_plot_alt_value": "{words} 词时 {score}",
        "length_plot_alt_none": "{model}：尚未计算",
        "length_filling": "其余长度正在翻译。",
        "length_how": "这张图说明什么，不说明什么",
        "length_how_text": "这里只是一段短文：它的 {stages} 个长度都由这台机器上的模型用贪心搜索当场翻译。"
        "句子级 BLEU 和句子级 chrF 把译文与一份人工撰写的法语参考译文相比，单看一句波动很大。"
        "参数设置：{signatures}。",
        "length_measured": "整个测试集",
        "length_measured_none": "整个测试集上 BLEU 随句长的变化：这套权重还没有测量。",
        "length_measured_text": "整个测试集上 BLEU 随句长的变化：共 {number} 个句子，{low} 到 {high} 词。",
        "length_measured_format": "BLEU 随句长的变化：报告的格式本页不认识。",
        # Attention tab: keys begin with attention_ (edited by the maker of attention.py)
    },
}


def words(key: str, language: str, **values: Any) -> str:
    """The text of `key`, with ``{name}`` filled in from `values`. Not escaped."""
    text = WORDS[language if language in WORDS else "en"][key]
    return text.format(**values) if values else text
