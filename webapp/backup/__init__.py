"""Back up a Lookout while it runs, as it is at one moment, and restore it into an empty folder (docs/backup.md)."""
