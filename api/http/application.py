"""Flask, without the parts that this service does not need. Each is left out with a documented hook of Flask.

    routes       the application matches routes, but builds no URLs from them
    hosts        `requests.assign_request_id` checks them, and no route depends on one
    sessions     there are none
    coroutines   no view is one

This makes a request cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NoReturn
from wsgiref.types import WSGIEnvironment

from flask import Flask, Request, Response
from flask.sessions import NullSession, SessionInterface, SessionMixin
from flask.typing import ResponseReturnValue
from werkzeug.routing import MapAdapter, Rule


class _Route(Rule):
    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        # Werkzeug would write and compile two functions for each route that make its URL, which is nine tenths of what
        # an application takes to be made. Nothing here asks for a URL.
        return _no_url


def _no_url(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("This application builds no URLs from its routes; write out the path.")


class _Known(MapAdapter):
    """Of a request whose route is known."""

    def __init__(self, route: Rule, *request: Any) -> None:
        super().__init__(*request)
        self._route = route

    def match(self, *asked: Any, **how: Any) -> Any:
        # So Flask asks for the request's own route. Whatever else is asked, Werkzeug answers.
        return (self._route, {}) if not asked and how == {"return_rule": True} else super().match(*asked, **how)


class _NoSessions(SessionInterface):
    """Nothing is kept from one request of a caller to the next."""

    _NONE: Final = NullSession()

    def open_session(self, app: Flask, request: Request) -> SessionMixin:
        return self._NONE

    def is_null_session(self, obj: object) -> bool:
        return True

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        return


def _scheme(environ: WSGIEnvironment) -> str:
    """http, or ws where the connection is to become a web socket, which no route is for."""
    if environ.get("HTTP_UPGRADE", "").lower() != "websocket":
        return "http"
    asked = {each.strip(" \t") for each in environ.get("HTTP_CONNECTION", "").lower().split(",")}
    return "ws" if "upgrade" in asked else "http"


class Application(Flask):
    """A Flask application as the service needs it."""

    url_rule_class = _Route
    session_interface = _NoSessions()

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """What matches a request's path; nothing outside of requests, where URLs could only be made."""
        if request is None:
            return None
        environ = request.environ
        # An authority (CONNECT's form) has no path, and is not that of the root.
        path = request.path if environ["PATH_INFO"] else ""
        scheme, method = _scheme(environ), environ["REQUEST_METHOD"]
        route = self._fixed_routes.get((method, path)) if scheme == "http" else None
        if route is not None:
            return _Known(route, self.url_map, "", "/", "", scheme, path, method)
        return MapAdapter(self.url_map, "", "/", "", scheme, path, method)

    @cached_property
    def _fixed_routes(self) -> Mapping[tuple[str, str], Rule]:
        """The routes without a variable part, by method and path: one look, where Werkzeug walks through its map."""
        found: dict[tuple[str, str], Rule] = {}
        for route in self.url_map.iter_rules():
            if not route.arguments and not route.websocket:
                for method in route.methods or ():
                    found.setdefault((method, route.rule), route)
        return found

    def ensure_sync(self, func: Callable[..., object]) -> Callable[..., object]:
        """The function itself: Flask would look at each again at every request."""
        return func

    def preprocess_request(self) -> ResponseReturnValue | None:
        """Runs what comes before every request; an answer that it gives is the request's."""
        for before in self.before_request_funcs.get(None, ()):
            if (answer := before()) is not None:
                return answer  # type: ignore[return-value]
        return None

    def process_response(self, response: Response) -> Response:
        """Runs what comes after every request, what was registered first at the end."""
        for after in reversed(self.after_request_funcs.get(None, ())):
            response = after(response)
        return response

    def do_teardown_request(self, exc: object = None) -> None:
        """Nothing: no request leaves anything open."""

    def do_teardown_appcontext(self, exc: object = None) -> None:
        """Nothing, as after a request."""
