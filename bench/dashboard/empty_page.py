"""A Bokeh server whose page shows one empty element: `python -m bench.dashboard.empty_page PORT`.

What the dashboard's first page takes beyond it is the dashboard's own.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from bokeh.application.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.core.templates import get_env
from bokeh.models.widgets.markups import Div
from bokeh.server.server import Server

if TYPE_CHECKING:
    from bokeh.document import Document

# Bokeh's own template, and beyond it that the page says that it is ready as the dashboard's does.
_TEMPLATE: Final = """
{% extends base %}
{% block postamble %}
<script>
const look = () => {
  const shown = window.Bokeh && Bokeh.documents[0];
  if (shown && shown.is_idle) document.body.dataset.state = "ready";
  else requestAnimationFrame(look);
};
look();
</script>
{% endblock %}
"""


def main() -> None:
    """Serves until it is stopped."""
    port = int(sys.argv[1])
    server = Server(
        {"/": Application(FunctionHandler(_make))},
        address="127.0.0.1",
        port=port,
        allow_websocket_origin=[f"127.0.0.1:{port}"],
    )
    server.start()
    server.io_loop.start()


def _make(document: Document) -> None:
    document.template = get_env().from_string(_TEMPLATE)
    document.add_root(Div(text=""))


if __name__ == "__main__":
    main()
