"""From text to batches: a public corpus made into files, its pairs read, cleaned, rewritten, encoded once, put into batches."""
