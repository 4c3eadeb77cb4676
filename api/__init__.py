"""The edges: the HTTP service (Flask) and the `gate` command."""
