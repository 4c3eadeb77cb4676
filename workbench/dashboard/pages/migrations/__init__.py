"""The pages of migrations: `listing`, `one`, and `proposing` (a draft that is to become one)."""
