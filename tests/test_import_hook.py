"""Transformers learns of our models when it is imported, whoever asked for it before."""

from __future__ import annotations

import subprocess
import sys


def test_asking_for_transformers_does_not_use_up_the_import_hook():
    code = (
        "import importlib.util, sys, seqviz\n"
        "assert importlib.util.find_spec('transformers') and importlib.util.find_spec('transformers')\n"
        "assert 'transformers' not in sys.modules\n"
        "import transformers\n"
        "assert 'seqviz.architectures' in sys.modules, 'not registered'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
