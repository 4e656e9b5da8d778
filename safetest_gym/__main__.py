"""``python -m safetest_gym`` is the ``safetest-gym`` command."""

from __future__ import annotations

from safetest_gym.cli.app import main

if __name__ == "__main__":
    main()
