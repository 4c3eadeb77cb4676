"""The `gate` command: one module or package per subcommand, listed in `main`.

All subcommands share `options`, which reads options and files, and `output`, which prints for people and as JSON.
"""
