"""The Python client: jobs made, run and followed from programs and notebooks."""
