"""The capacity arithmetic as it was, to compare the new one with."""
