"""The pointwise vocabulary: one record per function, which every level of the compiler reads.

`record.py` says what a record holds, `formulas.py` what derivatives are written in, `spelling.py`
what C text is written in, `meanings.py` has the NumPy functions. The records themselves are in
`arithmetic.py`, `elementary.py`, `trigonometric.py`, `activations.py` and `logic.py`.
"""

from .record import OperandKind, Parameter, PointwiseSpec
from .vocabulary import POINTWISE

__all__ = ["POINTWISE", "OperandKind", "Parameter", "PointwiseSpec"]
