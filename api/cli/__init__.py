"""The `gate` command: a module a subcommand, listed in `main`; `demo` has a package.

`options` and `output` are shared: how a command is asked, and how it answers, for people and as JSON.
"""
