"""What makes and checks the documentation: the reference that comes from sources, the site, and the counts of its prose."""
