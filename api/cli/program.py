"""The installed program `gate`. A process that is spawned loads this module again, which therefore loads nothing."""


def main() -> None:
    """Runs the command that the arguments name."""
    from api.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
