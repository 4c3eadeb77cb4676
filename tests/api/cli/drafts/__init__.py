"""The command `gate drafts`, over an instance with an author, an approver and a viewer."""
