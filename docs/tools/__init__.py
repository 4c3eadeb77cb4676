"""Tools of the documentation: generated reference pages, diagrams, the site, and checks of the prose."""
