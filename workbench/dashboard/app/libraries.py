"""Everything that depends on private or undocumented parts of Panel 1.9.4 and Bokeh 3.9.2, whose versions are pinned.

- `PANEL_CDN_ROOT`: the address of the style sheets of Panel's components, which is this server. `workbench.dashboard`
  sets it before Panel is imported.
- `keep_only`: keeps the URL patterns of a Bokeh application, without `metadata` and without `autoload.js`, which embeds
  the application in pages of other hosts.
- `forget`: removes the data that Panel keeps about an ended session.
- `mend_curdoc`: resets the current document of Bokeh after an error, for example after a malformed message. Without it,
  every other session would get parts of that document, and fail.
"""

from __future__ import annotations

import signal
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import panel
from bokeh.document import without_document_lock
from bokeh.io import doc as bokeh_doc
from bokeh.server.urls import per_app_patterns
from panel.io.application import Application
from panel.io.resources import CDN_ROOT
from panel.io.server import Server
from panel.io.state import state
from tornado.web import OutputTransform, RequestHandler

from workbench.dashboard import PANEL_FILES

if TYPE_CHECKING:
    from bokeh.application.handlers.handler import Handler
    from bokeh.document import Document

PINNED: Final = {"panel": "1.9.4", "bokeh": "3.9.2"}

if f"{PANEL_FILES}/" != CDN_ROOT:
    raise ImportError("Panel was imported before workbench.dashboard, and would load its style sheets from elsewhere.")


def panel_files() -> tuple[str, Path]:
    """The path under which components look for Panel's own files, and where these lie."""
    return f"{PANEL_FILES}/{panel.__version__}/dist", Path(panel.__file__).parent / "dist"


def scripts() -> list[str]:
    """The scripts that a page needs, in the order in which they run."""
    bokeh = [f"/static/js/{name}.min.js" for name in ("bokeh", "bokeh-widgets", "bokeh-tables")]
    return [f"{path}?v={version('bokeh')}" for path in bokeh] + [f"{panel_files()[0]}/panel.min.js"]


def keep_only(routes: tuple[str, ...]) -> None:
    """Takes every other pattern out of those that each application gets."""
    per_app_patterns[:] = [each for each in per_app_patterns if each[0] in routes]


def application(*handlers: Handler) -> Any:
    """An application that makes its documents by these handlers; Panel's server takes one where its types forbid it."""
    return Application(*handlers)  # type: ignore[no-untyped-call]


def token_payload(document: Document) -> dict[str, Any]:
    """What the token of a document's session holds."""
    payload: dict[str, Any] = getattr(document.session_context, "token_payload", {})
    return payload


def loaded_url(document: Document) -> str:
    """Path and query string of the request that a document is made for."""
    return str(getattr(getattr(document.session_context, "request", None), "uri", ""))


def later(document: Document, work: Callable[[], Awaitable[None]]) -> None:
    """Runs work soon, in parallel to the document, without blocking others. Bokeh awaits it, although its types say
    otherwise.
    """
    document.add_next_tick_callback(without_document_lock(work))  # type: ignore[arg-type]


def once_drawn(document: Document, work: Callable[[], None]) -> None:
    """Calls back once the browser has drawn a document and Panel has taken note of that.

    Panel drops changes that it makes before: it takes the browser not to have asked for the document yet, which it has.
    """

    def look() -> None:
        if state._connected.get(document):
            work()
        else:
            document.add_next_tick_callback(look)

    def drawn(_: object) -> None:
        document.add_next_tick_callback(look)

    document.on_event("document_ready", drawn)


def stop_on_signals(server: Server) -> None:
    """Lets a server's loop end, and with it what waits for it, when the process is asked to end."""
    loop: Any = server.io_loop
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.asyncio_loop.add_signal_handler(number, loop.stop)


def transform_responses(server: Server, transform: type[OutputTransform]) -> None:
    """Passes every response of a server through a transformation."""
    server._tornado.add_transform(transform)


def answer_unknown(server: Server, handler: type[RequestHandler], **arguments: Any) -> None:
    """Makes a handler answer where no pattern of a server matches."""
    settings = server._tornado.settings
    settings["default_handler_class"], settings["default_handler_args"] = handler, arguments


def log_no_requests(server: Server) -> None:
    """Keeps a server from logging what was asked for: an address holds filters, and perhaps a token."""
    server._tornado.settings["log_function"] = lambda handler: None


def mend_curdoc() -> None:
    """Lets Bokeh forget which document is being worked on after an error as well."""
    bokeh_doc.patch_curdoc = _patch_curdoc  # type: ignore[assignment]


@contextmanager
def _patch_curdoc(document: Any) -> Iterator[None]:
    noted: list[Any] = bokeh_doc._PATCHED_CURDOCS
    noted.append(weakref.ref(document))
    del document
    try:
        yield
    finally:
        noted.pop()


def forget(document: Document) -> None:
    """Drops what Panel holds of a document whose session is gone."""
    for reference, (view, root, of, _) in list(state._views.items()):
        if of is document:
            view._cleanup(root)
            del state._views[reference]
