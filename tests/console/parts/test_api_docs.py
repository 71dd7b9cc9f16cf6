"""The description of the API as a page."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from typing import Any

import pytest

from oarsman.console.parts.api_docs import GROUPS, html_of
from oarsman.console.parts.words import Words
from oarsman.console.server import bare_app

ADDRESS = "https://jobs.example.org"


@pytest.fixture(scope="module")
def described() -> dict[str, Any]:
    return bare_app().openapi()


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, one) for path, found in described["paths"].items() for method, one in found.items()]


def test_every_operation_is_there_with_all_that_it_takes_and_a_line_for_curl(described: dict[str, Any]) -> None:
    page = html_of(described, Words("en"), ADDRESS)
    for method, path, one in operations(described):
        found = re.search(rf"<details id='api-{one['operationId']}'>.*?</details>", page, re.DOTALL)
        assert found is not None, path
        assert f"<code>{path}</code>" in found[0]
        for parameter in one.get("parameters", ()):
            assert f"<code>{parameter['name']}</code>" in found[0], (path, parameter["name"])
        line = re.search(r"<pre>(.*?)</pre>", found[0], re.DOTALL)
        assert line is not None, path
        words = shlex.split(unescape(line[1]))
        assert words[0] == "curl"
        assert words[-1].startswith(f"{ADDRESS}/api/v1/")
        assert "{" not in words[-1], words[-1]
        assert (words[words.index("-X") + 1] if "-X" in words else "GET") == method.upper()
        if "requestBody" in one:
            assert isinstance(json.loads(words[words.index("-d") + 1]), dict)


def test_every_link_leads_to_something_on_the_page(described: dict[str, Any]) -> None:
    page = html_of(described, Words("en"), ADDRESS)
    ids = re.findall(r" id='([^']+)'", page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"href='#([^']+)'", page)) <= set(ids)


def test_every_group_has_a_name_and_its_words_are_chinese_for_chinese_readers(described: dict[str, Any]) -> None:
    assert {one["tags"][0] for _, _, one in operations(described)} == set(GROUPS)
    page = html_of(described, Words("zh"), ADDRESS)
    said = re.sub(
        r"<(pre|code|small)>.*?</\1>|<(\w+) lang='en'>.*?</\2>|<table>.*?</table>|<[^>]+>", " ", page, flags=re.S
    )
    words = set(re.findall(r"[A-Za-z]{3,}", said)) - {
        "API",
        "REST",
        "MPI",
        "RFC",
        "UTC",
        "Authorization",
        "Bearer",
        "Cookie",
    }
    assert words <= {
        "TOKEN",
        "ProblemDetails",
        "camelCase",
        "GET",
        "PUT",
        "POST",
        "PATCH",
        "DELETE",
        *_models(described),
    }


def test_nothing_of_a_description_becomes_markup() -> None:
    hostile = "<img src=x onerror=alert(1)>'\"`<b>`"
    answer = {"description": hostile, "content": {"a/b": {"schema": {"type": hostile}}}}
    one = {"tags": [hostile], "operationId": hostile, "summary": hostile, "description": hostile}
    one |= {"parameters": [{"name": hostile, "in": hostile, "schema": {"pattern": hostile, "default": hostile}}]}
    path = {hostile: {"get": one | {"responses": {"200": answer}}}}
    models = {"components": {"schemas": {hostile: {"properties": {hostile: {"$ref": f"#/{hostile}"}}}}}}
    page = html_of({"info": {"description": hostile}, "paths": path, **models}, Words("en"), ADDRESS)
    assert "<img" not in page
    assert "<b>`" not in page


def _models(described: dict[str, Any]) -> set[str]:
    return set(described["components"]["schemas"])
