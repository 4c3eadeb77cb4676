"""Imported histories: maps, sources of every kind, hostile files, the import and what engines make of its sets."""
