"""What a link to the page shows in a chat or a feed: our title, one sentence and a picture, not Gradio's.

Gradio writes its own preview tags into the page and only appends a head of one's own. So the page is
rewritten as it is served, by `Preview`, which also serves the picture.
"""

from __future__ import annotations

import io
import re
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from seqviz import meaning
from seqviz.drawing.styles import escape
from seqviz.language import LANGUAGES, Language
from seqviz.ui import outcomes, story
from seqviz.ui.service import MODELS, Service

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PICTURE = "/preview.{language}.png"
LONGEST = 160
"""Characters of a text that came with the link."""
_GRADIO_S = re.compile(r'<meta\s[^>]*(?:property|name)="(?:og|twitter):[^>]*>\s*')


class Preview:
    """ASGI middleware around the page.

    Args:
        app: Gradio's.
        service: what the picture shows.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service
        self.picture = cache(lambda language: picture(service, language))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self.app(scope, receive, send)
        root = scope.get("root_path", "").rstrip("/")
        path = scope["path"].removeprefix(root) or "/"
        for language in LANGUAGES:
            if path == PICTURE.format(language=language):
                from starlette.concurrency import run_in_threadpool
                from starlette.responses import Response

                png = await run_in_threadpool(self.picture, language)
                return await Response(png, media_type="image/png")(scope, receive, send)
        if path != "/":
            return await self.app(scope, receive, send)
        await self.app(scope, receive, _rewriting(send, tags(scope, root)))


def _rewriting(send: Send, head: str) -> Send:
    """Sends a page on with another head; what is no page goes on as it came."""
    begun: list[Message] = []
    parts: list[bytes] = []

    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start":
            kinds = dict(message["headers"])
            if b"text/html" not in kinds.get(b"content-type", b""):
                return await send(message)
            begun.append(message)
        elif not begun:
            await send(message)
        else:
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                body = rewritten(b"".join(parts).decode("utf-8"), head).encode("utf-8")
                headers = [h for h in begun[0]["headers"] if h[0] != b"content-length"]
                headers.append((b"content-length", str(len(body)).encode()))
                await send({**begun[0], "headers": headers})
                await send({"type": "http.response.body", "body": body})

    return forward


def rewritten(page: str, head: str) -> str:
    """A page without Gradio's preview tags and with ours."""
    return _GRADIO_S.sub("", page).replace("<head>", f"<head>{head}", 1)


def tags(scope: Scope, root: str) -> str:
    """Preview tags in the language that the link or the browser asks for."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    language = chosen_language(query.get("lang", [""])[-1], headers.get("accept-language", ""))
    scheme = headers.get("x-forwarded-proto", scope["scheme"]).split(",")[0].strip()
    host = headers.get("x-forwarded-host", headers.get("host", "localhost")).split(",")[0].strip()
    address = f"{scheme}://{host}{root}"
    say = Language.of(language).say
    text = " ".join(query.get("text", [""])[-1].split())
    told = f"“{text[:LONGEST]}{'…' if len(text) > LONGEST else ''}”" if text else ""
    said = {
        "og:type": "website",
        "og:site_name": "seqviz",
        "og:title": say("page.headline"),
        "og:description": told or say("page.subline"),
        "og:image": address + PICTURE.format(language=language),
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": say("card.figure.note"),
    }
    card = '<meta name="twitter:card" content="summary_large_image" />'
    return card + "".join(
        f'<meta property="{name}" content="{escape(value)}" />' for name, value in said.items()
    )


def chosen_language(asked: str, accepted: str) -> str:
    """From ``?lang=``, else from a browser's list of languages, else English."""
    for part in (asked, *accepted.split(",")):
        code = part.strip().lower()[:2]
        if code in LANGUAGES:
            return code
    return "en"


def picture(service: Service, language: str) -> bytes:
    """A PNG of the text that opens the page and how many of its words each model's output has.

    Asks no model: where nothing is known of the text the picture says so.
    """
    from seqviz.drawing import figures

    text = story.text_of(service)
    last = len(text.stages) - 1
    found: dict[str, Any] = {}
    outputs: dict[str, tuple[str, str]] = {}
    for name in MODELS:
        known = service.known(name, text)
        came = outcomes.came(outcomes.words_at(text, known, last))
        found[name] = (came.kept, came.judged) if came.judged else None
        if output := known[last]:
            outputs[name] = (output.text, f"≈ {meaning.line(output.text, language)}")
    file = io.BytesIO()
    figure = figures.share_card(
        text.stages[last].english, found, outputs=outputs, language=language
    )
    figures.save(figure, file, "png", dpi=100)
    return file.getvalue()
