"""The Model Context Protocol over the application, without a server."""
