"""Start the page: ``python app.py``."""

import os
import sys
from pathlib import Path

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
sys.path.insert(0, str(Path(__file__).resolve().parent))

from seqviz.ui import launch

if __name__ == "__main__":
    launch()
