"""GradSight in the user's own process: `gradsight.watch()`, its words, notebooks and pytest."""
