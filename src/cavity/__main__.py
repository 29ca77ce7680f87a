"""Run the command line with ``python -m cavity``."""

import sys

from cavity.cli import main

sys.exit(main())
