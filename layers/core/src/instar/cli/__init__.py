"""The command `instar`: one module per command group."""
