"""The ``safetest-gym`` command; one module per subcommand."""

__all__: list[str] = []
