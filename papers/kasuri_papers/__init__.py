"""Makes the published figures again: runs, data, plots, and a verdict beside each published claim.

>>> from kasuri_papers import PAPERS
>>> [figure.id for figure in PAPERS["mfs"].figures][:2]
['003-F1', '003-F2']
"""

from kasuri_papers.figure import Figure, Paper, Verdict
from kasuri_papers.papers import PAPERS
from kasuri_papers.reproduction import Outcome, reproduce

__all__ = ["PAPERS", "Figure", "Outcome", "Paper", "Verdict", "reproduce"]
