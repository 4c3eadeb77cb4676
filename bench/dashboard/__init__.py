"""Tools to measure the dashboard.

    instance     an instance with a million decisions, and the dashboard's process over it
    chromium     a browser whose pages measure their own time
    sessions     sessions without a browser, with Bokeh's own messages
    urls         addresses of pages, each used once
    empty_page   the floor: a server with an empty page

The parts `dashboard` and `studio` use them.
"""
