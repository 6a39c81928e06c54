"""What was measured: plan, translate, score, report, and the pages made of it."""
