"""What several pages show: a state, a cause, a timeline, ranks, a log."""
