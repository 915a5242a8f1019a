"""``python -m webapp``: how the supervisor runs commands, wherever Lookout is installed."""

from webapp.command import main

if __name__ == "__main__":
    main()
