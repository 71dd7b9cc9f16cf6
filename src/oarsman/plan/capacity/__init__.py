"""Who may start, and where: whole gangs only. Pure arithmetic over what there is and who holds it."""
