"""What the dashboard is measured with.

instance     an instance with a million decisions, and the dashboard's process over it
chromium     a browser whose pages tell how long they took
sessions     sessions without a browser, by Bokeh's own messages
urls         addresses of pages, each asked for once
empty_page   the floor: a server whose page shows nothing
"""
