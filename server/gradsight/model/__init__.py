"""The nouns: plain frozen data that every floor above may speak of."""

from gradsight.model.finding import Certainty, Finding, Related, Role, Severity
from gradsight.model.fix import Edit, Fix, Safety, apply_edits
from gradsight.model.report import Gap, Report, SyntaxProblem
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span

__all__ = [
    "Certainty",
    "Edit",
    "Finding",
    "Fix",
    "Gap",
    "Related",
    "Report",
    "Role",
    "Safety",
    "Settings",
    "Severity",
    "Source",
    "Span",
    "SyntaxProblem",
    "apply_edits",
]
