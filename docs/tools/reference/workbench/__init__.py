"""The pages of the lake and of rulebooks."""
