"""What all tests share: how hard hypothesis tries.

HYPOTHESIS_PROFILE chooses `dev` (quick, new examples every time) or `ci` (more examples, the same ones every time);
without it, a set CI variable chooses `ci`.
"""

import os

from hypothesis import HealthCheck, settings

# No deadlines: the first example of a test may import or compile, and a checked build is slow.
_COMMON = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("dev", max_examples=50, **_COMMON)
settings.register_profile("ci", max_examples=200, derandomize=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))
