"""The differential tester: random torch programs, judged by torch, compared with the static engine."""
