"""What people read, in their language: English is the source, `locale/` has the catalogue of each other language."""
