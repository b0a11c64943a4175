"""How batches are sampled: the options of every part of `gnnc bench` that samples, and as text."""

from __future__ import annotations

import argparse

from ..frontend.tools.children import Message


def add_batches(parser: argparse.ArgumentParser) -> None:
    """Of every part that samples."""
    usual = [15, 10, 5]
    text = "edges taken of a node by hop, the input layer's first, as DGL has them"
    parser.add_argument("--fanouts", nargs="+", type=int, default=usual, help=text, metavar="K")
    parser.add_argument("--batch-size", type=int, default=1024, help="seeds of a batch")


def batches_text(result: Message) -> str:
    """How a result's batches are sampled."""
    fanouts = ", ".join(map(str, result["fanouts"]))
    return f"{result['batch_size']:,} seeds a batch, fan-outs {fanouts} from the input on"
