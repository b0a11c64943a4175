"""reorder-linear, costs: seconds for a product and an aggregation in either order.

Of `n` source rows of `k` numbers and a matrix `k x f`, summed over `edges` into `m` target rows.
*First* is the product before the aggregation: `A (x W)`; *last* is after it: `(A x) W`. Counted are
rows gathered, rows streamed through memory (what one nest stores for another), and the product.

The order of the forward half settles that of the backward half, as autodiff follows it:

- first: `s = A' dy` gathers rows of f; then `dW = x' s` and `dx = s W'`, in one nest;
- last: `dW = (A x)' dy` with A x kept from the forward, then `dx = A' (dy W')` gathers rows of k,
  which is not needed where x needs no gradient.

The forward of the first may run as the last: its product moves once more after autodiff, when
backward no longer depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...analysis.seconds import gather_seconds, product_seconds, stream_seconds
from ...targets import Target


@dataclass(frozen=True)
class OrderCosts:
    """The two orders of one product and one aggregation, on a target.

    `stored`: x lies in memory whatever the order. `hoisted`: x is aggregated once per
    graph, and read so, `beside` where x is read as well, which the product before the aggregation
    does anyway. `training`: the matrix needs a gradient; `root_grad`: x does;
    `learnt`: a factor of x or of the sums does, but not x.
    """

    target: Target
    n: float
    m: float
    edges: float
    k: int
    f: int
    number_bytes: int
    stored: bool
    hoisted: bool = False
    beside: bool = False
    training: bool = False
    root_grad: bool = False
    learnt: bool = False

    def first(self) -> float:
        """The product before the aggregation, backward included."""
        if not self.training:
            return self._forward_first()
        keep = 0.0 if self.stored else self._stream(self.n, self.k)
        kept = replace(self, stored=True)
        forward = min(kept._forward_first(), kept._forward_last())
        backward = self._stream(self.m, self.f) + self._gather(self.f)
        backward += self._stream(self.n, self.k) + self._product(self.n)
        return keep + forward + backward + self.root_grad * self._product(self.n)

    def last(self) -> float:
        """The product after the aggregation, backward included."""
        out = self._forward_last()
        if self.training:
            stored = self._read_hoisted() if self.hoisted else 2 * self._stream(self.m, self.k)
            out += stored + self._product(self.m)
        if self.root_grad or self.learnt:
            out += self._product(self.m) + self._stream(self.m, self.k)
        if self.root_grad:
            out += self._gather(self.k)
        return out

    def _forward_first(self) -> float:
        read = self._stream(self.n, self.k) if self.stored else 0.0
        return read + self._product(self.n) + self._stream(self.n, self.f) + self._gather(self.f)

    def _forward_last(self) -> float:
        if self.hoisted:
            return self._read_hoisted() + self._product(self.m)
        write = 0.0 if self.stored else self._stream(self.n, self.k)
        return write + self._gather(self.k) + self._product(self.m)

    def _read_hoisted(self) -> float:
        return self._stream(self.m, self.k) + self.beside * self._stream(self.n, self.k)

    def _product(self, rows: float) -> float:
        return product_seconds(self.target, rows, self.k, self.f)

    def _stream(self, rows: float, width: int) -> float:
        return stream_seconds(self.target, rows, width * self.number_bytes)

    def _gather(self, width: int) -> float:
        return gather_seconds(self.target, self.edges, width * self.number_bytes)
