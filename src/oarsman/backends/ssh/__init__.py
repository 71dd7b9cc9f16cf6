"""Jobs on SSH hosts."""
