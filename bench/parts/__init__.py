"""The parts of `make bench`, a module each: `run(quick=...)` measures, `show(result)` lays the figures out."""
