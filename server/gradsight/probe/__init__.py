"""Our side of the probe: spawn, limits, verdicts."""
