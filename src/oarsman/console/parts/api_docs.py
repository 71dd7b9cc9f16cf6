"""The description of the API (OpenAPI) as HTML: groups, operations, what each takes and answers, a line for curl.

Everything of the description goes through `escape`; nothing is fetched, and there is no script in it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

from oarsman.console.parts.words import Words
from oarsman.text.catalogue import N_

Schema = Mapping[str, Any]
GROUPS = {  # in this order; what others are called is shown behind them as it is
    "jobs": N_("Jobs"),
    "logs": N_("Logs"),
    "before it runs": N_("Before a job runs"),
    "place": N_("Hosts and queue"),
    "environments": N_("Environments"),
    "sweeps": N_("Sweeps"),
    "session": N_("Session"),
    "accounts": N_("Accounts"),
    "tokens": N_("API tokens"),
    "audit": N_("Audit log"),
}
_LIMITS = {"minimum": "≥ {}", "maximum": "≤ {}", "minLength": "len ≥ {}", "maxLength": "len ≤ {}", "pattern": "{}"}
_SUCCESS = "2"
_DEEPEST = 4  # levels of an example


def html_of(description: Schema, say: Words, address: str) -> str:
    """`address`: where the API is."""
    return "".join(_Written(description, say, address).all())


class _Written:
    def __init__(self, description: Schema, say: Words, address: str) -> None:
        self._schemas: Mapping[str, Schema] = description["components"]["schemas"]
        self._about: str = description["info"]["description"]
        self._say, self._address = say, address
        self._groups: dict[str, list[tuple[str, str, Schema]]] = {name: [] for name in GROUPS}
        for path, methods in description["paths"].items():
            for method, one in methods.items():
                self._groups.setdefault(one["tags"][0], []).append((method.upper(), path, one))
        self._usual = _shared(one for found in self._groups.values() for _, _, one in found)

    def all(self) -> Iterator[str]:
        say = self._say
        for paragraph in self._about.strip().split("\n\n"):
            yield f"<p>{_said(say(paragraph))}</p>"
        yield f"<nav aria-label='{escape(say('Groups'))}'>"
        yield from (f"<a href='#of-{_id(name)}'>{escape(self._called(name))}</a> " for name in self._groups)
        yield f"<a href='#models'>{escape(say('Models'))}</a></nav>"
        yield f"<h2>{escape(say('Every operation may also answer'))}</h2>{self._answers(self._usual)}"
        for name, found in self._groups.items():
            yield f"<h2 id='of-{_id(name)}'>{escape(self._called(name))}</h2>"
            yield from (self._operation(*one) for one in found)
        yield f"<h2 id='models'>{escape(say('Models'))}</h2>"
        yield from (self._model(name, schema) for name, schema in self._schemas.items())

    def _called(self, group: str) -> str:
        return self._say(GROUPS.get(group, group))

    # -- one operation -------------------------------------------------------------------------------
    def _operation(self, method: str, path: str, one: Schema) -> str:
        say, body, parts = self._say, _body(one), []
        parts.append(f"<p lang='en'>{_said(one.get('description', ''))}</p>")
        if found := one.get("parameters"):
            rows = [(each["name"], each["in"], each, each.get("required", False)) for each in found]
            parts.append(self._fields(say("Parameters"), rows))
        if body is not None:
            parts.append(f"<h4>{escape(say('Body'))}</h4><p>{self._type(body)}</p>")
        own = {status: each for status, each in one["responses"].items() if status not in self._usual}
        parts.append(f"<h4>{escape(say('Answers'))}</h4>{self._answers(own)}")
        parts.append(f"<h4>{escape(say('Example'))}</h4><pre>{escape(self.curl(method, path, one))}</pre>")
        head = f"<b class='is-{method.lower()}'>{method}</b> <code>{escape(path)}</code>"
        title = f"<span lang='en'>{escape(one['summary'])}</span>"
        return f"<details id='{_id(one['operationId'])}'><summary>{head} {title}</summary>{''.join(parts)}</details>"

    def curl(self, method: str, path: str, one: Schema) -> str:
        """As one types it; `$TOKEN` is an API token."""
        given = {each["name"]: each for each in one.get("parameters", ())}
        for name in re.findall(r"{(\w+)}", path):
            path = path.replace(f"{{{name}}}", str(self._example(given[name])))
        needed = {name: self._example(each) for name, each in given.items() if each["in"] == "query"}
        query = urlencode({name: value for name, value in needed.items() if given[name].get("required")})
        words = ["curl", *([] if method == "GET" else ["-X", method])]
        line = shlex.join(words) + ' -H "Authorization: Bearer $TOKEN"'
        if (body := _body(one)) is not None:
            sent = json.dumps(self._value(body, 0), ensure_ascii=False)
            line += f" -H 'Content-Type: application/json' \\\n  -d {shlex.quote(sent)}"
        return f"{line} \\\n  {shlex.quote(self._address + path + (f'?{query}' if query else ''))}"

    def _answers(self, found: Schema) -> str:
        rows = []
        for status, one in sorted(found.items()):
            schemas = [content.get("schema", {}) for content in one.get("content", {}).values()]
            types = ", ".join(filter(None, map(self._type, schemas)))
            # What the framework says of a success tells nobody anything.
            meaning = "" if status.startswith(_SUCCESS) and types else _said(self._say(one["description"]))
            rows.append(f"<tr><td>{escape(status)}</td><td>{meaning}</td><td>{types}</td></tr>")
        return f"<table>{''.join(rows)}</table>"

    # -- what things look like -----------------------------------------------------------------------
    def _model(self, name: str, schema: Schema) -> str:
        needed = schema.get("required", ())
        rows = [(field, "", each, field in needed) for field, each in schema.get("properties", {}).items()]
        about = f"<p lang='en'>{_said(schema.get('description', ''))}</p>"
        inside = self._fields(self._say("Fields"), rows) if rows else f"<p>{self._type(schema)}</p>"
        head = f"<summary><code>{escape(name)}</code></summary>"
        return f"<details>{head}<div id='{_id(name)}'>{about}{inside}</div></details>"  # which a link to it opens

    def _fields(self, title: str, rows: Iterable[tuple[str, str, Schema, bool]]) -> str:
        found = []
        for name, where, one, needed in rows:
            schema = one.get("schema", one)
            about = [_said(one.get("description") or schema.get("description") or "")]
            if "default" in schema:
                about.append(_said(self._say("default: {value}", value=json.dumps(schema["default"]))))
            star = f" <b>{escape(self._say('required'))}</b>" if needed else ""
            of = f"<td>{escape(where)}</td>" if where else ""
            told = "; ".join(filter(None, about))
            name = f"<td><code>{escape(name)}</code>{star}</td>"
            found.append(f"<tr>{name}{of}<td>{self._type(schema)}</td><td lang='en'>{told}</td></tr>")
        return f"<h4>{escape(title)}</h4><table>{''.join(found)}</table>"

    def _type(self, schema: Schema) -> str:
        if "$ref" in schema:
            name = _named(schema)
            return f"<a href='#{_id(name)}'>{escape(name)}</a>"
        if "anyOf" in schema:
            return " | ".join(self._type(one) for one in schema["anyOf"])
        if "enum" in schema or "const" in schema:
            return " | ".join(f"<code>{escape(json.dumps(one))}</code>" for one in _choices(schema))
        if schema.get("type") == "array":
            return f"[{self._type(schema.get('items', {}))}]"
        if isinstance(more := schema.get("additionalProperties"), Mapping):
            return f"{{{escape(self._say('name'))}: {self._type(more)}}}"
        limits = [_LIMITS[name].format(schema[name]) for name in _LIMITS if name in schema]
        kind = schema.get("format") or schema.get("type", "")
        return escape(kind) + (f" <small>{escape(', '.join(limits))}</small>" if limits else "")

    # -- examples ------------------------------------------------------------------------------------
    def _example(self, parameter: Schema) -> Any:
        return next(iter(parameter.get("examples", ())), None) or self._value(parameter.get("schema", {}), 0)

    def _value(self, schema: Schema, depth: int) -> Any:
        """The least that can be sent, where no better example is stated."""
        if "$ref" in schema:
            return self._value(self._schemas[_named(schema)], depth)
        for stated in (schema.get("examples"), [schema["default"]] if "default" in schema else (), _choices(schema)):
            if stated:
                return stated[0]
        if "anyOf" in schema:
            return self._value(schema["anyOf"][0], depth)
        if "properties" in schema:
            needed, fields = schema.get("required", ()), schema["properties"] if depth < _DEEPEST else {}
            shown = {name: one for name, one in fields.items() if name in needed or "examples" in one}
            return {name: self._value(one, depth + 1) for name, one in shown.items()}
        return {"array": [], "object": {}, "integer": schema.get("minimum", 1), "boolean": True}.get(
            schema.get("type", ""), "..."
        )


def _shared(found: Iterable[Schema]) -> Schema:
    """The answers that every operation may give."""
    every = [one["responses"] for one in found]
    first = every[0] if every else {}
    return {status: one for status, one in first.items() if all(status in each for each in every)}


def _body(one: Schema) -> Schema | None:
    content = one.get("requestBody", {}).get("content", {})
    schema: Schema | None = next((each["schema"] for each in content.values()), None)
    return schema


def _choices(schema: Schema) -> list[Any]:
    return [schema["const"]] if "const" in schema else list(schema.get("enum", ()))


def _named(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _id(name: str) -> str:
    return "api-" + re.sub(r"\W+", "-", name)


def _said(text: str) -> str:
    """With what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
