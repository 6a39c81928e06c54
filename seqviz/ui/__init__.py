"""The page: `build` makes it, `launch` serves it.

**How a tab is made.** One file a tab, with one function ``tab(service, language) -> Tab``, called inside
its ``gr.Tab`` block. `service` is the only state (loaded models, caches; see `seqviz.ui.service`),
`language` is the radio at the top of the page: its value, "en" or "zh", is given to a handler like any
other input. The function makes components, subscribes its own events, and returns a `Tab`
(`seqviz.ui.tab`) with

- ``components`` and ``texts``: the components whose labels, choices or fixed text change with the
  language, and a function from language to their updates in the same order, e.g.
  ``texts=lambda language: [gr.Button(words("attention_download", language)), …]``. It must be quick and
  must not touch a model. The first texts a component is made with may be English.
- ``show``: keyword arguments of the event that draws the tab's results (``fn``, ``inputs``,
  ``outputs``, …). The page runs it when it opens and after each change of language, in the order of
  the tabs; `language` should be among its inputs. None: nothing to draw.

**Rules.** Every event that runs a model takes ``**MODEL_EVENT`` (`seqviz.ui.tab`: shared queue), and is
``api_visibility="private"`` unless it is a documented endpoint made with ``gr.api``. Texts come from
`seqviz.ui.words`, looks (theme, CSS, the models' colours, dashes and markers, `head`) from
`seqviz.ui.look`; CSS of a tab goes there too. A colour in markup is ``var(--lstm)``, never a number, so
that dark mode works. Every string from a person or a model passes `html.escape`; markup is the *value*
of ``gr.HTML``, never its template. PyTorch is not imported by any module here at the top: what needs it
is imported inside functions that run after `Service.wait`. ``show_progress="hidden"`` where a handler
draws its own waiting state.
"""

from __future__ import annotations

import os

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

from pathlib import Path  # noqa: E402

import gradio as gr  # noqa: E402

from seqviz.ui import attention, length, look, translate  # noqa: E402
from seqviz.ui.service import Service  # noqa: E402
from seqviz.ui.words import LANGUAGES, words  # noqa: E402

__all__ = ["Service", "build", "launch"]


def build(models_folder: str | Path | None = None, service: Service | None = None) -> gr.Blocks:
    """Make the page.

    Args:
        models_folder: folder with the four model folders; None takes the shipped ones.
        service: loaded models to use instead.
    """
    service = service or Service(models_folder)
    with gr.Blocks(title="seqviz", analytics_enabled=False) as page:
        with gr.Row(elem_classes="top"):
            head = gr.HTML(_head("en", service))
            language = gr.Radio(
                [("English", "en"), ("中文", "zh")],
                value="en",
                show_label=False,
                container=False,
                elem_id="language",
            )
        with gr.Tabs(elem_id="tabs") as tabs:
            with gr.Tab(words("tab_translate", "en"), id="translate") as first:
                translate_tab = translate.tab(service, language, tabs)
            with gr.Tab(words("tab_length", "en"), id="length") as second:
                length_tab = length.tab(service, language)
            with gr.Tab(words("tab_attention", "en"), id="attention") as third:
                attention_tab = attention.tab(service, language)
        made = [translate_tab, length_tab, attention_tab]
        components = [head, first, second, third]
        components += [component for tab in made for component in tab.components]

        def texts(chosen: str) -> list:
            updates = [_head(chosen, service)]
            updates += [gr.Tab(label=words(f"tab_{name}", chosen)) for name in ("translate", "length", "attention")]
            return updates + [update for tab in made for update in tab.texts(chosen)]

        def open_page(request: gr.Request) -> list:
            chosen = _first_language(request)
            return [chosen, *texts(chosen)]

        quick = {"queue": False, "show_progress": "hidden", "api_visibility": "private"}
        opened = page.load(open_page, outputs=[language, *components], **quick)
        changed = language.input(texts, inputs=language, outputs=components, **quick)
        for event in (opened, changed):
            for tab in made:
                if tab.show:
                    event = event.then(**tab.show)
    return page


def launch(
    host: str | None = None,
    port: int | None = None,
    root_path: str | None = None,
    models_folder: str | Path | None = None,
    block: bool = True,
) -> gr.Blocks:
    """Serve the page, then load the models while it already answers.

    Args:
        host: address to listen on; None takes GRADIO_SERVER_NAME or 127.0.0.1.
        port: None takes GRADIO_SERVER_PORT or the first free one from 7860.
        root_path: path under which a proxy shows the page.
        models_folder: see `build`.
        block: stay until interrupted.
    """
    service = Service(models_folder)
    page = build(service=service)
    page.queue(max_size=32)
    page.launch(
        server_name=host,
        server_port=port,
        root_path=root_path,
        prevent_thread_lock=True,
        ssr_mode=False,
        run_history=False,
        footer_links=[],
        theme=look.theme(),
        css=look.CSS,
        head=look.HEAD,
    )
    service.start()
    if block:
        page.block_thread()
    return page


def _head(language: str, service: Service) -> str:
    return f"<h1>seqviz</h1><p>{words('tagline', language)}</p>"


def _first_language(request: gr.Request) -> str:
    """From ``?lang=``, else from the browser's list of languages, else English."""
    asked = str(request.query_params.get("lang", "")).lower()[:2]
    if asked in LANGUAGES:
        return asked
    for part in request.headers.get("accept-language", "").split(","):
        code = part.strip().lower()[:2]
        if code in LANGUAGES:
            return code
    return "en"
