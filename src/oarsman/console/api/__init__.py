"""The REST API of the console, one file per subject."""
