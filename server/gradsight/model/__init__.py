"""The nouns of the house: plain frozen data that every floor above may speak of."""

from gradsight.model.finding import Certainty, Finding, Related, Role, Severity
from gradsight.model.report import Gap, Report, SyntaxProblem
from gradsight.model.settings import Settings
from gradsight.model.source import Source, Span

__all__ = [
    "Certainty",
    "Finding",
    "Gap",
    "Related",
    "Report",
    "Role",
    "Settings",
    "Severity",
    "Source",
    "Span",
    "SyntaxProblem",
]
