"""The documented endpoints, as a program uses them: through Gradio's own client."""

from __future__ import annotations

import base64
import re

import pytest
from browsing import free_port
from conftest import REPOSITORY
from gradio_client import Client
from gradio_client.exceptions import AppError

from seqviz import ui
from seqviz.translating.translator import Translator
from seqviz.ui.service import MODELS, Service

TEXT = "The boat is green."

ENDPOINTS = {
    "/translate": {"text": "str", "beams": "int"},
    "/length": {"passage": "str", "stage": "int", "text": "str", "language": "str"},
    "/attention": {
        "text": "str",
        "model": "str",
        "kind": "str",
        "layer": "None | int",
        "head": "None | int",
        "beams": "int",
    },
    "/card": {"text": "str", "beams": "int", "language": "str"},
    "/reach": {"text": "str"},
    "/report": {"name": "str"},
    "/cost": {},
}


@pytest.fixture(scope="module")
def service(tiny_model, tiny_tokenizer) -> Service:
    """Tiny models; reports and texts are the shipped ones."""
    translators = {name: Translator(tiny_model(name), tiny_tokenizer, name=name) for name in MODELS}
    return Service(translators=translators)


@pytest.fixture(scope="module")
def client(service):
    port = free_port()
    page = ui.build(service=service)
    page.launch(server_port=port, prevent_thread_lock=True, quiet=True, ssr_mode=False)
    yield Client(f"http://127.0.0.1:{port}", verbose=False, httpx_kwargs={"timeout": 300})
    page.close()


def test_endpoints_and_their_types(client):
    """Adding or renaming an endpoint or one of its arguments is a decision: others build on them."""
    listed = client.view_api(return_format="dict", print_info=False)
    assert not listed["unnamed_endpoints"]
    found = {
        name: {p["parameter_name"]: p["python_type"]["type"] for p in endpoint["parameters"]}
        for name, endpoint in listed["named_endpoints"].items()
    }
    assert found == ENDPOINTS
    for name, endpoint in listed["named_endpoints"].items():
        (returned,) = endpoint["returns"]
        assert returned["python_type"]["type"].startswith("dict("), name
        for argument in ENDPOINTS[name]:
            assert f"{argument}: " in endpoint["description"], (name, argument)
        assert "Returns:" in endpoint["description"] or name == "/report"


def test_translate(client, service):
    answer = client.predict(TEXT, 2, api_name="/translate")
    assert tuple(answer) == MODELS
    for name, found in answer.items():
        assert found["text"] == service.translate(name, TEXT, 2).text
        assert found["seconds"] > 0 and isinstance(found["notes"], list)
    assert client.predict(text=TEXT, api_name="/translate")["rnn"]["text"] == (
        service.translate("rnn", TEXT).text
    )


def test_the_example_of_the_page_on_deploying(client, service, capsys):
    page = (REPOSITORY / "docs" / "deploying.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    [example] = [block for block in examples if "gradio_client" in block]
    address = "http://127.0.0.1:7860"
    assert address in example
    exec(example.replace(address, client.src), {})
    said = capsys.readouterr().out.strip().splitlines()[-1]
    assert said == service.translate("transformer", "The report was adopted yesterday.").text


def test_length(client, service):
    answer = client.predict("lost-keys", 2, api_name="/length")
    stage = service.growth("lost-keys").stages[1]
    assert answer["english"] == stage.english and answer["words"] == len(stage.english.split())
    assert answer["stage"] == 2 and set(answer["models"]) == set(MODELS)
    own = client.predict(text=f"{TEXT} The bridge is old.", stage=2, api_name="/length")
    assert own["stages"] == 2 and own["reference"] is None


def test_attention(client, service):
    answer = client.predict(TEXT, "transformer", layer=0, head=1, api_name="/attention")
    (part,) = answer["parts"]
    assert len(part["weights"]) == len(part["target"])
    assert {len(row) for row in part["weights"]} == {len(part["source"])}
    expected = service.translate("transformer", TEXT, attention=True).attention("cross").words()
    assert part["weights"] == expected.head(0, 1).tolist()


def test_card(client):
    answer = client.predict(TEXT, 1, "zh", api_name="/card")
    assert answer["type"] == "image/png"
    assert base64.b64decode(answer["data"]).startswith(b"\x89PNG\r\n")


def test_reach(client):
    answer = client.predict(TEXT, api_name="/reach")
    assert set(answer) == set(MODELS)
    assert answer["lstm"]["words"] == TEXT.split()
    assert max(answer["lstm"]["forward"]) == pytest.approx(1.0)


def test_report(client, service):
    assert client.predict("recall", api_name="/report") == service.report("recall")


def test_cost(client):
    answer = client.predict(api_name="/cost")
    assert answer["hardware"] and answer["says"]["en"] and answer["legend"]


@pytest.mark.parametrize(
    "endpoint, arguments, said",
    [
        ("/translate", ("a" * 5001,), "5,001 characters"),
        ("/length", ("nowhere", 1), "Expected a passage, one of"),
        ("/attention", (TEXT, "gru"), "expected model to be one of rnn, lstm"),
        ("/attention", (TEXT, "transformer", "cross", 99), "expected layer 0 to"),
        ("/attention", (TEXT, "rnn"), "attention"),
        ("/card", ("",), "at least one word"),
        ("/reach", ("word " * 101,), "at most 100 words"),
        ("/report", ("../../etc/passwd",), "expected one of"),
    ],
)
def test_refusals_say_what_was_expected(client, capfd, endpoint, arguments, said):
    with pytest.raises(AppError, match=said):
        client.predict(*arguments, api_name=endpoint)
    assert "Traceback" not in capfd.readouterr().err


def test_what_is_private_cannot_be_called(client):
    config = client.config["dependencies"]
    private = [d for d in config if d["api_visibility"] != "public"]
    assert private and len(config) - len(private) == len(ENDPOINTS)
    with pytest.raises(ValueError, match="Cannot find a function"):
        client.predict(TEXT, api_name="/draw")
