"""What a link to the page shows elsewhere: tags in the served head, and their picture."""

from __future__ import annotations

import io
import re

import gradio as gr
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

from seqviz import ui
from seqviz.language import LANGUAGES, Language
from seqviz.ui import preview
from seqviz.ui.service import Service


@pytest.fixture(scope="module", params=["/", "/translators"])
def served(request, tmp_path_factory):
    """A client, and the path of the page; without any model, report or table."""
    service = Service(tmp_path_factory.mktemp("none"))
    page = ui.build(service=service)
    app = gr.mount_gradio_app(FastAPI(), page, path=request.param, **ui.served_with(service))
    with TestClient(app) as client:
        yield client, request.param.rstrip("/")


def tags_of(page: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tag in re.findall(r"<meta[^>]*>", page):
        name = re.search(r'(?:property|name)="([^"]*)"', tag)
        content = re.search(r'content="([^"]*)"', tag)
        if name and content:
            found.setdefault(name.group(1), []).append(content.group(1))
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_served_head_is_ours(served, language):
    client, path = served
    answer = client.get(f"{path}/?lang={language}", headers={"host": "example.org"})
    assert answer.status_code == 200
    assert int(answer.headers.get("content-length", len(answer.content))) == len(answer.content)
    found, say = tags_of(answer.text), Language.of(language).say
    assert found["og:title"] == [say("page.headline")]
    assert found["og:description"] == [say("page.subline")]
    assert not any("Gradio" in value for values in found.values() for value in values)
    (picture,) = found["og:image"]
    assert picture == f"http://example.org{path}/preview.{language}.png"
    shown = client.get(picture.removeprefix("http://example.org"))
    assert shown.headers["content-type"] == "image/png"
    assert Image.open(io.BytesIO(shown.content)).size == (1200, 630)


def test_behind_a_proxy_the_picture_has_the_outer_address(served):
    client, path = served
    forwarded = {"x-forwarded-proto": "https", "x-forwarded-host": "demo.example"}
    found = tags_of(client.get(f"{path}/", headers=forwarded).text)
    assert found["og:image"][0].startswith(f"https://demo.example{path}/preview.")


def test_a_text_in_the_link_is_told_as_text(served):
    client, path = served
    asked = {"text": '<b>"The boat"</b> ' + "sinks. " * 100}
    found = tags_of(client.get(f"{path}/", params=asked).text)["og:description"]
    assert found[0].startswith("“&lt;b&gt;&quot;The boat&quot;") and found[0].endswith("…”")
    assert len(found[0]) < 260


def test_what_is_no_page_passes_as_it_is(served):
    client, path = served
    assert client.get(f"{path}/config").headers["content-type"].startswith("application/json")
    assert client.get(f"{path}/nothing-here").status_code == 404
    assert client.get(f"{path}/preview.fr.png").status_code == 404


def test_a_page_without_gradio_s_tags_gets_ours_all_the_same():
    assert preview.rewritten("<html><head><title>x</title></head>", "<meta />") == (
        "<html><head><meta /><title>x</title></head>"
    )
