"""The pinned emulator with our repairs: what it takes to run the unmodified template here.

Each module repairs one fault and has one contract test in tests/cloud/launcher. A module reaches
into the emulator's inside, so the pin is exact; with a new version run these tests first.
"""
