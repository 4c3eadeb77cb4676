"""How the house is built, in figures: `python -m bench.structure`.

    tree       the modules of a work tree, and the kinds of their lines
    imports    arrows between modules and between rooms, floors, circles
    counts     modules per folder, `Any`, comments, lengths of functions
    passes     the files that one decide and one guard pass

Nothing here takes a time, and nothing is written unless `--save` asks for it.
"""
