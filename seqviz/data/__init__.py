"""From text to batches: what is done to the pairs of a corpus before they are trained on."""
