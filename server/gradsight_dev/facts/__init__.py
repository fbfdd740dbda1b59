"""Generator of the operator facts: measures real torch, cross-checks the answers, writes the table and its report."""
