"""What Python programs use to make jobs."""
