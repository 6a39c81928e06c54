"""What was measured: plan, translate, score, report, and the README made of it."""
