"""The only code that talks to anything outside the process."""
