"""What users see, written down in files, so that a change of it shows as a diff in review.

help.en.txt, help.zh_CN.txt   the help page of the command and of every verb, in each language
chart.yaml                    what Helm makes of the chart with the values in values.*.yaml

The chart with its defaults, the definition of MPIJobs and the REST API are in deploy/: `make manifests` writes those.
"""

import sys
from pathlib import Path

# What tests share is imported from their folder: pytest finds it there, `python -m tests.contracts` does not.
if (_tests := str(Path(__file__).resolve().parents[1])) not in sys.path:
    sys.path.append(_tests)
