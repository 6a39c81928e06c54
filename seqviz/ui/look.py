"""How the page looks: theme, CSS, and the models' colours, dashes and markers."""

from __future__ import annotations

import gradio as gr

YEARS = {"rnn": 2014, "lstm": 2014, "lstm-attention": 2015, "transformer": 2017}
DASHES = {"rnn": "1 5", "lstm": "7 4", "lstm-attention": "", "transformer": ""}
"""SVG stroke-dasharray of each model's curve; its colour is the CSS variable ``--<name>``."""
MARKERS = {"rnn": "▪", "lstm": "●", "lstm-attention": "▲", "transformer": "■"}

CSS = """
:root { --rnn: #767676; --lstm: #D55E00; --lstm-attention: #009E73; --transformer: #0072B2; }
.gradio-container { width: 100% !important; max-width: 1180px !important; margin: 0 auto !important; }
"""

HEAD = ""


def theme() -> gr.themes.Base:
    return gr.themes.Base(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
