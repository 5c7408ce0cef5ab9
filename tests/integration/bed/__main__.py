"""python3 tests/integration/bed up 4: see __init__.py."""
import os
import sys

sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from bed import main  # noqa: E402

sys.exit(main(sys.argv[1:]))
