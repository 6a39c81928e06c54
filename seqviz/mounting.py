"""The page inside an app of your own: `mount`. Gradio is imported when it is called, not before."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import FastAPI

    from seqviz.ui.service import Service


def mount(
    app: FastAPI,
    path: str,
    *,
    models_folder: str | Path | None = None,
    service: Service | None = None,
) -> FastAPI:
    """Put the page into a FastAPI app, under a path, with its style and script; its endpoints lie there, too.

    The models are loaded in a thread when the app starts. Behind a proxy that shows the app under another path,
    tell the server: ``uvicorn --root-path /PATH``.

    Args:
        app: whose other routes, beginning and end stay as they are.
        path: begins with "/", such as "/translators".
        models_folder: folder with the four model folders; None takes the shipped ones.
        service: loaded models to use instead.
    Returns:
        the app.
    Raises:
        ModuleNotFoundError: Gradio is not installed.
        TypeError: no FastAPI app.
        ValueError: a path that is none.
    """
    try:
        import gradio as gr
        from fastapi import FastAPI
    except ModuleNotFoundError as error:
        message = "the page needs Gradio; pip install 'seqviz[app]'"
        raise ModuleNotFoundError(message, name=error.name) from error
    from seqviz.ui import Service, build, served_with

    if not isinstance(app, FastAPI):
        raise TypeError(f"expected a FastAPI app, got {type(app).__name__}")
    if not re.fullmatch(r"/[\w./~-]*", path):
        raise ValueError(
            f"expected a path that begins with / and holds nothing but letters, digits and - . _ ~ /, "
            f"got {path!r}; give one such as '/translators'"
        )
    service = service or Service(models_folder)
    page = build(service=service)
    gr.mount_gradio_app(app, page, path=path.rstrip("/") or "/", **served_with(service))
    begin = app.router.lifespan_context

    @asynccontextmanager
    async def begin_to_load(started: Any) -> AsyncIterator[Any]:
        service.start()
        async with begin(started) as state:
            yield state

    app.router.lifespan_context = begin_to_load
    return app
