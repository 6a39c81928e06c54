from seqviz.cli import app

app()
