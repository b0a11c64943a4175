"""DGL 2.1's graphs in plain torch: code that is written for DGL runs here without it."""

from . import function as function
from . import ops as ops
from .base import *
from .batch import *
from .blocks import *
from .create import *
from .graph import *
from .readout import *
from .subgraphs import *
from .transforms import *
