"""The pages of the HTTP API: its endpoints, error codes and JSON formats, and the tools for agents."""
