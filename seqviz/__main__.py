"""`python -m seqviz` is the command `seqviz`."""

from seqviz.cli import main

main()
