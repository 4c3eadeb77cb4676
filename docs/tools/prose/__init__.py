"""Counts and checks what people read: pages, docstrings, notebooks. `python -m docs.tools.prose count | check [PATH ...]`.

`texts` finds the texts, `counts` measures their readability, `style` applies the house rules of house.toml, and `grammar` runs
the grammar checker Harper over them, with the house's own words in words.txt.
"""
