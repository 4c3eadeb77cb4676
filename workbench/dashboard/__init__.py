"""The dashboard: how each policy does, what went wrong, and the decisions that show it, in a browser.

    store    what pages ask for: snapshots of the lake, reports over them, reads of the ledger; knows nothing of pages
    studio   what authors work with: a draft in hand, the facts at hand, processes for what takes longer
    views    pure: what was asked and what was found in, sentences, tables and charts as HTML out
    acts     what people do on pages, each act by its name
    pages    what each page loads, and the session that shows it, in Panel
    app      the server: routes, sign-in, security headers, downloads, health

Each imports only those above it in this list. A page is a URL: the path names it, and the query string holds every
filter. Within a session a link asks the server for another page over the websocket, and only what changed is sent.
docs/dashboard.md describes the pages, and docs/adr/0014-the-dashboard.md why it is built so.
"""

from __future__ import annotations

import os
from typing import Final

PANEL_FILES: Final = "/assets/panel"
"""Where the server shows Panel's own files."""

# Where Panel's components look for their style sheets; it is read when Panel is imported, which is after this.
os.environ["PANEL_CDN_ROOT"] = f"{PANEL_FILES}/"
