"""What every answer says to the browser, and the refusal of requests that were meant for somebody else."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from oarsman.console.api import problems
from oarsman.console.security.proxies import seen_through
from oarsman.console.settings import Site
from oarsman.service.models import ProblemDetails
from oarsman.text.sentence import Text

# NiceGUI compiles its templates in the browser and writes styles and scripts into its pages: that is what the two
# "unsafe" words are for. No other origin is ever asked for anything, so nothing can be carried away either.
PAGES_POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
API_POLICY = "default-src 'none'; frame-ancestors 'none'"  # data, never a page

_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # a link's key is told to nobody else
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STAY_ENCRYPTED = "max-age=31536000"  # of this host alone, for a year


def security_headers(app: ASGIApp, site: Site) -> ASGIApp:
    """The outermost ASGI layer: it sees every request and every answer, errors included."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await app(scope, receive, send)
            return

        scope = seen_through(scope, site)
        hosts = Headers(scope=scope).getlist("host")
        host = hosts[0] if len(hosts) == 1 else None

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                _add(headers, scope["path"])
                if site.stays_encrypted(host, encrypted=site.is_encrypted(scope["scheme"], host)):
                    headers["Strict-Transport-Security"] = _STAY_ENCRYPTED
            await send(message)

        if site.answers_to(host):
            await app(scope, receive, with_headers)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        else:
            misdirected = ProblemDetails(
                title="Misdirected Request",
                status=421,
                code="misdirected",
                detail=Text("this server does not go by that name"),
                hint=Text("start it with --public-name NAME if it should"),
            )
            await problems.answer(misdirected)(scope, receive, with_headers)

    return answer


def _add(headers: MutableHeaders, path: str) -> None:
    is_api = path == "/api" or path.startswith("/api/")
    headers.update({**_ALWAYS, "Content-Security-Policy": API_POLICY if is_api else PAGES_POLICY})
    if is_api or path.startswith("/login"):
        headers["Cache-Control"] = "no-store"
