"""The pages of migrations: listing has all of them, one has one, proposing a draft that is to become one."""
