"""The page inside somebody's own FastAPI app."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import free_port
from conftest import REPOSITORY
from fastapi import FastAPI
from fastapi.testclient import TestClient

import seqviz
from seqviz.translating.translator import Translator
from seqviz.ui import theme
from seqviz.ui.service import MODELS, Service

TEXT = "The boat is green."


@pytest.fixture(scope="module")
def service(tiny_model, tiny_tokenizer) -> Service:
    translators = {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}
    return Service(translators=translators)


@pytest.fixture(scope="module")
def client(service):
    app = FastAPI()

    @app.get("/")
    def own() -> dict[str, str]:
        return {"said": "mine"}

    assert seqviz.mount(app, "/translators", service=service) is app

    @app.get("/later")
    def later() -> dict[str, str]:
        return {"said": "mine, too"}

    with TestClient(app) as client:
        yield client


def config_of(page: str) -> dict[str, Any]:
    _, _, after = page.partition("window.gradio_config = ")
    return json.JSONDecoder().raw_decode(after)[0]


def translated(client: TestClient, path: str) -> dict[str, Any]:
    asked = client.post(f"{path}/gradio_api/call/translate", json={"data": [TEXT, 1]})
    assert asked.status_code == 200, asked.text
    address = f"{path}/gradio_api/call/translate/{asked.json()['event_id']}"
    [(event, payload)] = re.findall(
        r"event: (complete|error)\ndata: (.*)", client.get(address).text
    )
    assert event == "complete"
    return json.loads(payload)[0]


@pytest.mark.parametrize("address", ["/translators", "/translators/"])
def test_style_script_and_head_are_in_place(client, address: str):
    answer = client.get(address)
    assert answer.status_code == 200
    config = config_of(answer.text)
    assert config["head"] == theme.HEAD and config["css"] == theme.CSS
    assert config["root"].endswith("/translators")
    assert config["footer_links"] == [] and config["analytics_enabled"] is False
    served = client.get("/translators/theme.css").text
    assert "--button-primary-background-fill: var(--ink)" in served


def test_the_endpoints_answer_under_the_path(client, service):
    answer = translated(client, "/translators")
    assert {name: found["text"] for name, found in answer.items()} == {
        name: service.translate(name, TEXT).text for name in MODELS
    }
    listed = client.get("/translators/gradio_api/info").json()["named_endpoints"]
    assert {"/translate", "/length", "/attention"} <= set(listed)


def test_the_rest_of_the_app_stays(client):
    assert client.get("/").json() == {"said": "mine"}
    assert client.get("/later").json() == {"said": "mine, too"}
    assert client.get("/gradio_api/info").status_code == 404


def test_models_are_loaded_when_the_app_starts(monkeypatch, models_folder: Path):
    """Not before: a server that makes its workers by forking has no threads then."""
    begun = []
    monkeypatch.setattr(Service, "start", lambda self: begun.append(self))
    app = FastAPI()
    seqviz.mount(app, "/translators", models_folder=models_folder)
    assert not begun
    with TestClient(app):
        assert len(begun) == 1 and begun[0].folder == models_folder


def test_the_apps_own_beginning_and_end_stay(service):
    from contextlib import asynccontextmanager

    seen = []

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        seen.append("begin")
        yield {"kept": 1}
        seen.append("end")

    app = FastAPI(lifespan=lifespan)
    seqviz.mount(app, "/translators/", service=service)
    with TestClient(app) as client:
        assert client.app_state == {"kept": 1}
        assert seen == ["begin"]
        assert client.get("/translators").status_code == 200
    assert seen == ["begin", "end"]


def test_behind_a_proxy(service):
    """The server is told, as `uvicorn --root-path /behind` does."""
    app = FastAPI()
    seqviz.mount(app, "/translators", service=service)
    with TestClient(app, root_path="/behind") as client:
        root = config_of(client.get("/behind/translators/").text)["root"]
    assert root.endswith("/behind/translators")


@pytest.mark.parametrize("path", ["", "translators", "http://host/translators", "/a b", "/x?y=1"])
def test_a_path_that_is_none(service, path: str):
    with pytest.raises(ValueError, match="expected a path that begins with /"):
        seqviz.mount(FastAPI(), path, service=service)


def test_an_app_that_is_none(service):
    with pytest.raises(TypeError, match="expected a FastAPI app, got str"):
        seqviz.mount("/translators", "/translators", service=service)


def test_the_example_of_the_page_on_deploying(monkeypatch, tiny_model, tiny_tokenizer, service):
    page = (REPOSITORY / "docs" / "deploying.md").read_text(encoding="utf-8")
    [example] = [
        block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "mount(" in block
    ]
    names: dict[str, Any] = {}
    exec(example, names)
    monkeypatch.setattr(Service, "start", lambda self: None)
    [path] = re.findall(r'mount\(app, "([^"]+)"\)', example)
    with TestClient(names["app"]) as client:
        assert config_of(client.get(path).text)["head"] == theme.HEAD


def test_without_gradio(monkeypatch):
    monkeypatch.setitem(sys.modules, "gradio", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs Gradio; pip install 'seqviz\[app\]'"):
        seqviz.mount(FastAPI(), "/translators")


@pytest.fixture(scope="module")
def address(service) -> Iterator[str]:
    """Of an app with the page in it, on a port of this machine."""
    import uvicorn

    app, port = FastAPI(), free_port()
    seqviz.mount(app, "/translators", service=service)
    server = uvicorn.Server(
        uvicorn.Config(app, port=port, log_level="error", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{port}/translators"
    server.should_exit = True
    thread.join(60)


@pytest.mark.browser
def test_a_visitor_sees_the_page_as_it_is_meant(browser, address: str):
    page = browser.new_page()
    page.goto(address)
    page.locator(".wordmark").wait_for(timeout=120_000)
    page.wait_for_function("typeof window.seqviz?.language === 'function'", timeout=120_000)
    variables = (
        "['--lstm', '--paper'].map(n => getComputedStyle(document.body).getPropertyValue(n))"
    )
    page.wait_for_function(f"{variables}.every(v => v.trim())", timeout=120_000)
    box = page.locator("#translate textarea, textarea").first
    box.fill(TEXT)
    assert box.input_value() == TEXT
    page.close()
