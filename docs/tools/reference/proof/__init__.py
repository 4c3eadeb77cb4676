"""The pages of what a verification checks and finds."""
