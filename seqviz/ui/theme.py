"""How the page looks: theme, CSS and script. What a model looks like stands in `seqviz.drawing.styles`."""

from __future__ import annotations

import json
from pathlib import Path

from gradio import themes

from seqviz.drawing import heatmap
from seqviz.drawing.styles import MODEL_STYLES
from seqviz.language import LANGUAGES, Language
from seqviz.ui import lines, stepping

_HERE = Path(__file__).parent
_COLOURS = " ".join(f"--{name}: {style.color};" for name, style in MODEL_STYLES.items())
_SHEETS = "\n".join(
    (_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "lanes.css", "lab.css")
)
CSS = f":root {{ {_COLOURS} }}\n{_SHEETS}"
"""A model's colour is the CSS variable of its name, ``--lstm-attention``; the dark page lightens it."""

_SCRIPT = "\n".join(
    (_HERE / name).read_text(encoding="utf-8")
    for name in ("page.js", "queue.js", "tabs.js", "length.js", "story.js", "lab.js", "links.js")
)
_QUEUE = {
    language: {
        key: Language.of(language).within("queue").template(key)
        for key in ("place", "full", "full_title", "lost", "lost_title")
    }
    for language in LANGUAGES
}
_SCRIPT += f"\nwindow.seqviz.followQueue({json.dumps(_QUEUE)});"
# What stands around the page Gradio's CSS cannot reach: it puts a class inside of it before each selector.
_FRAME = (
    "@media (max-width: 640px) { .gradio-container > .main.app { padding: 6px 12px !important; } }"
)
HEAD = f"<script>{_SCRIPT}</script><style>{_FRAME}</style>{heatmap.HEAD}{stepping.HEAD}{lines.HEAD}"


def language_script() -> str:
    """Script for a change of language; titles come from `seqviz.language`."""
    titles = json.dumps(
        {language: Language.of(language).say("page.title") for language in LANGUAGES}
    )
    return f"(chosen) => window.seqviz.language(chosen, {titles}[chosen])"


_SANS = [
    "system-ui",
    "-apple-system",
    "Segoe UI",
    "Roboto",
    "PingFang SC",
    "Microsoft YaHei",
    "sans-serif",
]


def gradio_theme() -> themes.Base:
    """A calm theme on Gradio's plainest: paper, ink and thin lines; no font or file from elsewhere."""
    plain = themes.Base(
        primary_hue=themes.colors.stone,
        secondary_hue=themes.colors.stone,
        neutral_hue=themes.colors.stone,
        radius_size=themes.sizes.radius_md,
        font=_SANS,
        font_mono=["ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace"],
    )
    values = {
        "body_background_fill": "var(--paper)",
        "body_text_color": "var(--ink)",
        "body_text_color_subdued": "var(--soft)",
        "background_fill_primary": "var(--sheet)",
        "background_fill_secondary": "var(--paper)",
        "block_background_fill": "transparent",
        "block_border_width": "0px",
        "block_shadow": "none",
        "block_padding": "0px",
        "block_label_background_fill": "transparent",
        "block_label_text_color": "var(--soft)",
        "block_title_text_color": "var(--soft)",
        "block_info_text_color": "var(--soft)",
        "border_color_primary": "var(--rule)",
        "input_background_fill": "var(--sheet)",
        "input_border_width": "1px",
        "button_border_width": "1px",
        "checkbox_label_border_width": "0px",
        "checkbox_label_padding": "4px 6px",
        "input_border_color": "var(--rule)",
        "input_border_color_focus": "var(--focus)",
        "input_placeholder_color": "var(--soft)",
        "input_shadow_focus": "none",
        "button_primary_background_fill": "var(--ink)",
        "button_primary_background_fill_hover": "var(--ink-hover)",
        "button_primary_text_color": "var(--paper)",
        "button_primary_border_color": "var(--ink)",
        "button_secondary_background_fill": "var(--sheet)",
        "button_secondary_background_fill_hover": "var(--wash)",
        "button_secondary_text_color": "var(--ink)",
        "button_secondary_border_color": "var(--rule)",
        "button_large_text_size": "*text_md",
        "button_large_text_weight": "600",
        "button_large_padding": "0.5rem 1.1rem",
        "slider_color": "var(--ink)",
        "checkbox_label_background_fill": "transparent",
        "checkbox_label_background_fill_hover": "var(--wash)",
        "checkbox_label_background_fill_selected": "transparent",
        "checkbox_label_text_color": "var(--ink)",
        "checkbox_label_text_color_selected": "var(--ink)",
        "checkbox_background_color_selected": "var(--tick)",
        "checkbox_border_color_selected": "var(--tick)",
        "color_accent": "var(--ink)",
        "color_accent_soft": "var(--wash)",
        "link_text_color": "var(--focus)",
        "link_text_color_hover": "var(--focus)",
    }
    for name in list(values):
        if hasattr(plain, f"{name}_dark"):
            values[f"{name}_dark"] = values[name]
    return plain.set(**values)
