"""The Length tab."""

from __future__ import annotations

import gradio as gr

from seqviz.ui.service import Service
from seqviz.ui.tab import Tab


def tab(service: Service, language: gr.Radio) -> Tab:
    gr.HTML("")
    return Tab()
