"""The pages of the Python client and its guard."""
