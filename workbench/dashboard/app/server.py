"""Composes the dashboard's server, and listens."""

from __future__ import annotations

import gc
import secrets
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import panel as pn
from bokeh.application.handlers.function import FunctionHandler
from bokeh.application.handlers.handler import Handler
from bokeh.server.auth_provider import AuthProvider
from bokeh.util.token import check_token_signature, get_token_payload
from panel.io.server import Server, get_server
from tornado.httputil import HTTPServerRequest
from tornado.web import Finish, HTTPError, RequestHandler, StaticFileHandler

from gate.clock import utc_now
from gate.errors import GateError
from gate.ledger.access.users import Users
from gate.origins import LOOPBACK, Origins
from workbench.charts.colours import stylesheet
from workbench.charts.inline.plans import Draw, drawn_here
from workbench.dashboard.app import libraries
from workbench.dashboard.app.downloads import (
    DryRunDownload,
    Files,
    KeysDownload,
    NotebookDownload,
    PacketDownload,
    RecordDownload,
    ReportDownload,
)
from workbench.dashboard.app.headers import SecurityHeaders
from workbench.dashboard.app.opened import OpenPages
from workbench.dashboard.app.pages import ASSETS, frame, outside, style
from workbench.dashboard.app.sessions import Sessions
from workbench.dashboard.app.sign_in import (
    Nowhere,
    SignIn,
    SignInOnce,
    SignIns,
    SignOut,
    failed,
    sign_in_cookie,
    sign_in_url,
)
from workbench.dashboard.app.throttle import Throttle
from workbench.dashboard.pages.looks import Looks
from workbench.dashboard.pages.session import Observer, Services, Session
from workbench.dashboard.store.store import Store
from workbench.dashboard.studio.proofs import Proofs
from workbench.dashboard.studio.uploads import remove_abandoned
from workbench.dashboard.studio.workshop import Workshop
from workbench.dashboard.views.location import PAGES, Location, LocationInvalid

if TYPE_CHECKING:
    from bokeh.document import Document

_HANDLE: Final = "sign_in"
_THREADS: Final = 4
_BODY: Final = 1024 * 1024
# A draft, twice in what JSON makes of it: as it is, and as its author began with it.
_MESSAGE: Final = 8 * 1024 * 1024
_UNUSED_MS: Final = 15_000
_CHECK_MS: Final = 5_000
# A page whose connection was not opened for so long must be loaded again, in seconds.
_TOKEN_SECONDS: Final = 300
# By these Bokeh lets a client choose its document's session, which might be somebody else's.
_CHOSEN: Final = ("bokeh-session-id", "bokeh-token")


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A server that is ready to listen.

    Attributes:
        server: The server; its port is taken.
        link: The path of a link that signs the demo's user in once; None without one.
        workshop: Processes for work that takes longer than a click.
    """

    server: Server
    link: str | None
    workshop: Workshop

    def run(self) -> None:
        """Serves until the process is asked to end."""
        libraries.stop_on_signals(self.server)
        # What was loaded until now stays for good, and looking through all of it stops everybody for long.
        gc.collect()
        gc.freeze()
        self.server.start()
        self.server.io_loop.start()
        self.server.stop()
        self.workshop.close()


def dashboard(
    store: Store,
    users: Users,
    observer: Observer,
    *,
    host: str,
    port: int,
    public_url: str | None = None,
    trusted_proxies: Iterable[str] = LOOPBACK,
    demo_user: str | None = None,
    draw: Draw = drawn_here,
    clock: Callable[[], datetime],
) -> Dashboard:
    """Composes the server, and takes its port.

    Args:
        store: What pages ask for.
        users: The users of the instance.
        observer: Takes note of failures that nobody foresaw.
        host: The address to listen on.
        port: The port.
        public_url: Under which browsers reach it through a proxy that terminates TLS; None where they reach it itself.
        trusted_proxies: The addresses of proxies whose word on the address of their client is taken, where there is a
            public URL.
        demo_user: The user whom a link signs in once; None for no such link.
        draw: Draws charts.
        clock: The clock.

    Raises:
        OSError: The port is taken.
    """
    sessions, secret = Sessions(users, clock), secrets.token_hex(32)
    origins = Origins(() if public_url is None else trusted_proxies)
    cookie = sign_in_cookie(port, secure=_is_secure(public_url))
    sign_ins = SignIns(users, sessions, Throttle(), origins, secret, cookie, _is_secure(public_url), clock)
    link = None if demo_user is None else sign_ins.link_for(demo_user)
    workshop = Workshop()
    services = Services(
        store,
        sessions.user,
        ThreadPoolExecutor(_THREADS, "dashboard"),
        clock,
        observer,
        sessions.turn,
        libraries.later,
        libraries.once_drawn,
        sessions.over,
        workshop,
        Proofs(workshop),
        draw,
    )
    remove_abandoned()
    libraries.keep_only((r"/?", r"/ws"))
    libraries.mend_curdoc()
    pn.extension(notifications=False)
    looks, opened, key = Looks(style()), OpenPages(), secrets.token_bytes(32)
    shared: dict[str, Any] = {"sign_ins": sign_ins, "store": store}
    server = get_server(
        {f"/{'' if page == 'overview' else page}": _application(services, looks, sign_ins, opened) for page in PAGES},
        address=host,
        port=port,
        verbose=False,
        location=False,
        auth_provider=_Auth(sign_ins, key),
        websocket_origin=_origins(host, port, public_url),
        extra_patterns=_patterns(shared),
        **_safeguards(sign_ins, key),
    )
    libraries.transform_responses(server, SecurityHeaders)
    libraries.answer_unknown(server, Nowhere, **shared)
    libraries.log_no_requests(server)
    return Dashboard(server, link, workshop)


def _safeguards(sign_ins: SignIns, key: bytes) -> dict[str, Any]:
    """What keeps sessions apart and requests small.

    Args:
        sign_ins: Who is signed in.
        key: What signs the tokens of pages.
    """
    return {
        "cookie_secret": sign_ins.secret,
        # Tokens are signed by a key that ends with this process, and hold no header and no cookie of the request.
        "secret_key": key,
        "sign_sessions": True,
        "include_headers": [],
        "include_cookies": [],
        "session_token_expiration": _TOKEN_SECONDS,
        "xsrf_cookies": True,
        "xsrf_cookie_kwargs": {"httponly": True, "samesite": "Strict", "secure": sign_ins.secure},
        "websocket_max_message_size": _MESSAGE,
        "unused_session_lifetime_milliseconds": _UNUSED_MS,
        "check_unused_sessions_milliseconds": _CHECK_MS,
        "use_index": False,
        # Tornado would take the client's own X-Real-Ip before the proxy's X-Forwarded-For.
        "http_server_kwargs": {"xheaders": False, "max_body_size": _BODY},
    }


def _patterns(shared: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Where what is no page of Panel's is answered, with what its handlers share; the first that matches answers."""
    downloads = {**shared, "files": Files()}
    path, files = libraries.panel_files()
    return [
        # No path of a file holds a null byte, and no component here loads files of its own.
        (r"/.*%00.*", Nowhere, shared),
        (r"/components/.*", Nowhere, shared),
        (r"/sign-in", SignIn, shared),
        (r"/sign-in/once/([A-Za-z0-9_-]{1,100})", SignInOnce, shared),
        (r"/sign-out", SignOut, shared),
        (r"/download/packet", PacketDownload, downloads),
        (r"/download/record", RecordDownload, downloads),
        (r"/download/keys", KeysDownload, downloads),
        (r"/download/notebook", NotebookDownload, downloads),
        (r"/download/dry-run", DryRunDownload, downloads),
        (r"/download/report", ReportDownload, downloads),
        (r"/health", Health),
        (rf"{path}/(.*)", StaticFileHandler, {"path": str(files)}),
        (r"/assets/charts.css", ChartColours),
        (r"/assets/(.*)", StaticFileHandler, {"path": str(ASSETS)}),
    ]


class Health(RequestHandler):
    """GET /health: the process answers. Whether the ledger is well is the overview's to say, to those signed in."""

    def get(self) -> None:
        """{status}."""
        self.finish({"status": "ok"})


class ChartColours(RequestHandler):
    """`GET /assets/charts.css`: the colors of charts, for light and dark pages."""

    def get(self) -> None:
        """The style sheet."""
        self.set_header("Content-Type", "text/css; charset=utf-8")
        self.finish(stylesheet())


class _Auth(AuthProvider):
    """Who asks: the user of the cookie, for pages and for websockets alike."""

    def __init__(self, sign_ins: SignIns, key: bytes) -> None:
        self._sign_ins = sign_ins
        self._key = key
        super().__init__()

    @property
    def get_user_async(self) -> Any:
        return self._user

    @property
    def get_login_url(self) -> Any:
        return self._sign_in

    def _sign_in(self, handler: RequestHandler) -> str:
        url = sign_in_url(handler.request.uri or "/", self._sign_ins.over(handler))
        # Panel puts a dot before it, which leads from `/held/` to `/held/sign-in` without another one.
        return f"{'.' * _is_folder(handler.request.path)}{url}"

    async def _user(self, handler: RequestHandler) -> str | None:
        if any(name in handler.request.arguments or name in handler.request.headers for name in _CHOSEN):
            raise HTTPError(403)
        token = _token(handler.request)
        session = self._sign_ins.session(handler)
        if session is None:
            return None
        if token is not None and not _is_of(token, session.handle, self._key):
            # A websocket that was opened with another session's token, or a token of long ago.
            return None
        try:
            user = await self._sign_ins.user(handler)
        except GateError as error:
            handler.set_status(503)
            handler.set_header("Content-Type", "text/html; charset=utf-8")
            raise Finish(outside("message.html", **failed(error, _again(handler)))) from error
        return None if user is None else user.user_id


class _HandleInToken(Handler):
    """Puts the signed-in session's handle into the token of a document's session."""

    def __init__(self, sign_ins: SignIns) -> None:
        super().__init__()
        self._sign_ins = sign_ins

    def modify_document(self, doc: Document) -> None:
        """Nothing; the other handler makes the document."""

    def process_request(self, request: HTTPServerRequest) -> dict[str, Any]:
        handle = self._sign_ins.handle(request)
        return {} if handle is None else {_HANDLE: handle}


def _application(services: Services, looks: Looks, sign_ins: SignIns, opened: OpenPages) -> Any:
    def make(document: Document) -> None:
        handle = libraries.token_payload(document).get(_HANDLE, "")
        refused, closed = opened.open(sign_ins.sessions.user_id(handle))
        session = Session(document, handle, services, looks, refused)
        document.template = frame()
        document.title = "Decision Gate workbench"
        # The page's own script says so.
        document.config.notify_connection_status = False
        document.template_variables["scripts"] = libraries.scripts()
        document.on_session_destroyed(lambda context: libraries.forget(document))
        document.on_session_destroyed(lambda context: closed())
        session.compute_ahead(libraries.loaded_url(document))

    return libraries.application(FunctionHandler(make), _HandleInToken(sign_ins))


def _again(handler: RequestHandler) -> str:
    """Where to ask for the page of a request again."""
    try:
        return Location.read(handler.request.uri or "/").url
    except LocationInvalid:
        return "/"


def _is_folder(path: str) -> bool:
    return path != "/" and path.endswith("/")


def _token(request: HTTPServerRequest) -> str | None:
    """The token of a websocket's request; None where it is no websocket."""
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return None
    named = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
    return named[1].strip() if len(named) == 2 else ""


def _is_of(token: str, handle: str, key: bytes) -> bool:
    """Whether this server signed a token, for the session of this handle, and it has not expired."""
    try:
        # First: a payload that nobody signed may be compressed to a thousandth of its size.
        if not check_token_signature(token, signed=True, secret_key=key):
            return False
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    payload = get_token_payload(token)
    # Bokeh, by whose clock it expires, would log one that has with all places that it came by.
    is_current = utc_now().timestamp() < payload["session_expiry"]
    return is_current and secrets.compare_digest(str(payload.get(_HANDLE)).encode(), handle.encode())


def _is_secure(public_url: str | None) -> bool:
    return public_url is not None and public_url.startswith("https://")


def _origins(host: str, port: int, public_url: str | None) -> list[str]:
    """The hosts whose pages may open a websocket: the server's own."""
    if public_url is not None:
        return [public_url.partition("://")[2]]
    return [f"{name}:{port}" for name in dict.fromkeys((host, "127.0.0.1", "localhost"))]
