"""The security headers of every response of the dashboard's server."""

from __future__ import annotations

from typing import Final

from tornado.httputil import HTTPHeaders, HTTPServerRequest
from tornado.web import OutputTransform

CONTENT_SECURITY_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        # Bokeh gives each component its style element, and charts their sizes.
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""No script but the server's own files, none inline, no eval, and nothing from another host."""

_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_STATIC: Final = ("/static/", "/assets/")


class SecurityHeaders(OutputTransform):
    """Adds the headers to a response, whichever handler makes it."""

    def __init__(self, request: HTTPServerRequest) -> None:
        """Takes the request that is answered."""
        self._path: Final = request.path

    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        """The response with the headers; only the libraries' and the dashboard's own files may be kept by a browser."""
        for name, value in _HEADERS.items():
            headers[name] = value
        if not self._path.startswith(_STATIC):
            headers["Cache-Control"] = "no-store"
        headers.pop("Server", None)
        return status_code, headers, chunk
