"""The dashboard: how each policy does, what went wrong, and the decisions that show it, in a browser.

- `store`: the data of pages: snapshots of the lake, reports over them, reads of the ledger; knows nothing about pages
- `studio`: the tools of authors: a draft, test facts, processes for long work
- `views`: pure functions from a question and its results to sentences, tables, and charts as HTML
- `acts`: the acts of users on pages, each by its name
- `pages`: the data that each page loads, and the session that shows it, in Panel
- `app`: the server: routes, sign-in, security headers, downloads, health

Each imports only those above it in this list. A page is a URL: the path selects it, and the query string has every
filter. Within a session, a link asks the server for another page over the WebSocket, and the server sends only the
changes.

`docs/guides/use-the-dashboard.md` describes the pages, and `docs/adr/0014-the-dashboard.md` the reasons for the design.
"""

from __future__ import annotations

import os
from typing import Final

PANEL_FILES: Final = "/assets/panel"
"""Where the server shows Panel's own files."""

# Where Panel's components look for their style sheets; it is read when Panel is imported, which is after this.
os.environ["PANEL_CDN_ROOT"] = f"{PANEL_FILES}/"
