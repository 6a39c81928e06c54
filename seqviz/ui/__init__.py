"""The page: `build` makes it, `launch` serves it.

**How a tab is made.** One file a tab, with one function ``tab(service, language, text) -> Tab``, called
inside its ``gr.Tab`` block. `service` is the only state (loaded models, caches; see `seqviz.ui.service`),
`language` is the radio at the top of the page: its value, "en" or "zh", is given to a handler like any
other input; `text` is the one text of the page (`seqviz.ui.text`). The function makes components,
subscribes its own events, and returns a `Tab` (`seqviz.ui.tab`) with

- ``spoken``: the components whose labels, choices or fixed text change with the language, each made
  together with what it says: ``spoken.make(gr.Button, {"value": "length.onward"}, min_width=140)``.
- ``show``: a list of the keyword arguments of the events that draw the tab's results (``fn``,
  ``inputs``, ``outputs``, …). The page runs them when the tab is opened, and once more when the text or
  the language has changed since; `language` should be among their inputs.
- ``parts``: components that the page connects to, by name.

**Rules.** Every event that runs a model takes ``**MODEL_EVENT`` (`seqviz.ui.tab`: shared queue), and is
``api_visibility="private"`` unless it is a documented endpoint made with ``gr.api``. Texts come from
`seqviz.language`, theme, CSS and script from `seqviz.ui.theme` (``*.css``, ``*.js``), what a model
looks like from `seqviz.drawing.styles`. A colour in markup is ``var(--lstm)``, never a number, so
that dark mode works. Every string from a person or a model passes `seqviz.drawing.styles.escape`; markup is the *value*
of ``gr.HTML``, never its template. PyTorch is not imported by any module here at the top: what needs it
is imported inside functions that run after `Service.wait`. ``show_progress="hidden"`` where a handler
draws its own waiting state.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
try:
    tempfile.gettempdir()  # Gradio asks for it to be imported, and makes an empty folder there
except FileNotFoundError as error:
    raise OSError(
        "expected a folder for temporary files that can be written, got none: "
        "let the environment variable TMPDIR name one, such as /dev/shm"
    ) from error

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr
from starlette.middleware import Middleware

from seqviz.drawing.names import name_of
from seqviz.drawing.styles import escape
from seqviz.language import LANGUAGES, Language
from seqviz.ui import attention, cards, lab, length, links, text, theme, translate
from seqviz.ui.preview import Preview, chosen_language
from seqviz.ui.service import MODELS, Service
from seqviz.ui.tab import QUICK_EVENT, Spoken, Tab
from seqviz.ui.text import Text

__all__ = ["Service", "build", "launch"]

QUEUE = 128
"""Visitors who may wait for a model at a time; the next one is told to come back."""
TABS = {"translate": translate, "length": length, "attention": attention, "lab": lab}


def build(models_folder: str | Path | None = None, service: Service | None = None) -> gr.Blocks:
    """Make the page.

    Args:
        models_folder: folder with the four model folders; None takes the shipped ones.
        service: loaded models to use instead.
    """
    spoken = Spoken()
    service = service or Service(models_folder)
    with gr.Blocks(title="seqviz", analytics_enabled=False) as page:
        with gr.Row(elem_classes="top") as top:
            spoken.make(gr.HTML, {"value": _head}, elem_id="head")
            language = gr.Radio(
                [(Language.of(code).say("language.name"), code) for code in LANGUAGES],
                value="en",
                label=Language.of("en").say("page.language"),
                container=False,
                elem_id="language",
            )
        asked = text.make(service, spoken)
        notice = gr.HTML(elem_id="notice")
        made: dict[str, Tab] = {}
        blocks: dict[str, gr.Tab] = {}
        with gr.Tabs(elem_id="tabs") as tabs:
            for name, module in TABS.items():
                with spoken.make(gr.Tab, {"label": f"tab.{name}"}, id=name) as blocks[name]:
                    made[name] = module.tab(service, language, asked)
        values = {
            "text": asked.box,
            "passage": asked.passage,
            **{name: made["attention"].parts[name] for name in links.ON_ATTENTION},
        }
        with top:
            links.copy_button(language, spoken, values, tabs, asked.slider)
        spoken.make(gr.HTML, {"value": partial(_footer, service)})
        _follow(blocks, made, asked)
        text.connect(service, asked)
        _lead_on(service, made, asked, tabs)
        _open(
            service,
            page,
            [spoken, *(tab.spoken for tab in made.values())],
            language,
            notice,
            {
                "tabs": tabs,
                "answers": made["translate"].parts["answers"],
                **values,
                "slider": asked.slider,
                "typed": asked.typed,
            },
        )
    return page.queue(max_size=QUEUE)


def _follow(blocks: dict[str, gr.Tab], made: dict[str, Tab], asked: Text) -> None:
    """A tab is drawn when it is opened, unless it already shows this text in this language; see ``tabs.js``."""
    for name, tab in made.items():
        # The script presses it.
        event = gr.Button("", visible="hidden", elem_id=f"draw-{name}").click(**tab.show[0])
        for shown in tab.show[1:]:
            event = event.then(**shown)
        event.success(None, js=f"() => window.seqviz.drawn({json.dumps(name)})", **QUICK_EVENT)
        blocks[name].select(None, js=f"() => window.seqviz.open({json.dumps(name)})", **QUICK_EVENT)
    asked.box.input(None, js="() => window.seqviz.stale()", **QUICK_EVENT)
    # The lanes of Length know every stage.
    asked.slider.change(None, js="() => window.seqviz.stale('attention', 'lab')", **QUICK_EVENT)


def _lead_on(service: Service, made: dict[str, Tab], asked: Text, tabs: gr.Tabs) -> None:
    """Buttons that put an example into the box, or open the next tab on the same text."""
    for english, button in made["translate"].parts["examples"].items():
        text.fill(service, asked, button, english)
    for name, key, goal in (
        ("translate", "longer", "length"),
        ("length", "onward", "attention"),
        ("attention", "onward", "lab"),
    ):
        made[name].parts[key].click(partial(gr.Tabs, selected=goal), outputs=tabs, **QUICK_EVENT)


def _open(
    service: Service,
    page: gr.Blocks,
    every: list[Spoken],
    language: gr.Radio,
    notice: gr.HTML,
    restored: dict[str, Any],
) -> None:
    """What happens when the page is opened, and when another language is chosen.

    Args:
        every: components that speak.
        restored: components that an address can fill, by name.
    """
    components = [component for one in every for component in one.components]

    def texts(chosen: str) -> list[Any]:
        return [said for one in every for said in one.texts(chosen)]

    def open_page(request: gr.Request) -> list:
        chosen = first_language(request)
        return [chosen, *texts(chosen)]

    def restore(request: gr.Request) -> list:
        link = links.read(request.query_params, service)
        found = links.restored(service, link, first_language(request))
        return [found.get(name, gr.skip()) for name in restored]

    def notice_of(chosen: str) -> Iterator[str]:
        yield from _notice(service, chosen)

    opened = page.load(open_page, outputs=[language, *components], **QUICK_EVENT).then(
        restore, outputs=list(restored.values()), **QUICK_EVENT
    )
    changed = language.input(texts, inputs=language, outputs=components, **QUICK_EVENT)
    # The document's language and title follow, whoever changed it.
    language.change(None, language, js=theme.language_script(), **QUICK_EVENT)
    for event, script in ((opened, "begin"), (changed, "redraw")):
        event.then(None, js=f"() => window.seqviz.{script}()", **QUICK_EVENT)
        event.then(
            notice_of,
            language,
            notice,
            show_progress="hidden",
            api_visibility="private",
            concurrency_limit=None,
            trigger_mode="always_last",
        )


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
    Raises:
        SystemExit: nothing can be served there; the message says why.
    """
    service = Service(models_folder)
    page = build(service=service)
    try:
        page.launch(
            server_name=host,
            server_port=port,
            root_path=root_path,
            prevent_thread_lock=True,
            quiet=True,
            **served_with(service),
        )
    except OSError as error:  # the port is taken, the host is not ours
        raise SystemExit(f"seqviz: {error}") from error
    print(f"seqviz: {page.local_url} (Ctrl-C stops it)", file=sys.stderr, flush=True)
    service.start()
    if block:
        page.block_thread()
    return page


def served_with(service: Service) -> dict[str, Any]:
    """How the page wants to be served, whoever serves it: style, script and preview, nothing of Gradio's own."""
    return {
        "app_kwargs": {"middleware": [Middleware(Preview, service=service)]},
        "max_file_size": "1kb",  # nothing on the page takes a file
        "ssr_mode": False,
        "run_history": False,
        "footer_links": [],
        "theme": theme.gradio_theme(),
        "css": theme.CSS,
        "head": theme.HEAD,
    }


def first_language(request: gr.Request) -> str:
    """From ``?lang=``, else from the browser's list of languages, else English."""
    asked = str(request.query_params.get("lang", ""))
    return chosen_language(asked, request.headers.get("accept-language", ""))


def _head(language: str) -> str:
    say = Language.of(language).say
    return f'<p class="wordmark">seqviz</p><h1>{escape(say("page.headline"))}</h1>'


def _weights(language: str, service: Service) -> str:
    """One line on what the shown weights are; empty if that is not recorded for all of them."""
    spoken = Language.of(language)
    found = [service.training(name) for name in MODELS]
    try:
        parameters = sum(training["num_parameters"] for training in found) / len(found)
        tokens = [training["target_tokens"] for training in found]
        budgets = [spoken.number(number) for number in (min(tokens), max(tokens))]
        date = max(str(training["created"]) for training in found)[:10]
    except (KeyError, TypeError):
        return ""
    return spoken.say(
        "page.weights",
        parameters=spoken.number(parameters),
        tokens=" – ".join(dict.fromkeys(budgets)),
        date=date,
    )


def _notice(service: Service, language: str) -> Iterator[str]:
    """That models are being loaded, then what went wrong, if anything did."""
    say = Language.of(language).say
    if not service.ready:
        yield f'<p class="hint" role="status">{escape(say("page.loading"))}</p>'
        service.wait()
    yield "".join(
        cards.problem(say("page.broken", model=name_of(name, language), error=error))
        for name, error in service.errors.items()
    )


def _footer(service: Service, language: str) -> str:
    say = Language.of(language).say
    return (
        f'<footer class="page-footer"><p>{escape(say("page.subline"))} {escape(_weights(language, service))}</p>'
        f"<p>{escape(say('page.footer'))}</p>"
        f'<p><a href="?view=api">{escape(say("page.api"))}</a></p></footer>'
    )
