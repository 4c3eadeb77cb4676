"""The installed program `gate`. Spawned processes load this module again, so it imports nothing at the top."""


def main() -> None:
    """Runs the command in the arguments."""
    from api.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
