"""Tests of the operator facts: true on fresh inputs, fresh, complete, quick to load, and told well."""
