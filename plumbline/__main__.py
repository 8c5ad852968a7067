"""The command ``plumbline``: ``python -m plumbline``."""

import sys

from plumbline.console import main

sys.exit(main())
