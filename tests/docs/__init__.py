"""The tools of the documentation: the checks of its prose, its diagrams, and the site."""
