"""The `gate` command: one module a subcommand."""
