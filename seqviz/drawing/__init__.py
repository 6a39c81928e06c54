"""How it is shown: looks of the models, attention maps as markup, figures, and all of them as files."""
