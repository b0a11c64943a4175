"""The shortest schedule of a few batches, by trying every order of every split.

Written apart from the product's simulator: the rules are stated once more, in plain recursion.
"""

from gnnc.frontend.morph.plan import Buffers, Times


def shortest(times: Times, buffers: Buffers, batches: int, known: float) -> float:
    """The optimum over all splits and orders, where a schedule of `known` seconds is known."""
    best = known
    for on_cpu in range(batches + 1):
        best = _Search(times, buffers, on_cpu, batches - on_cpu, best).best
    return best


class _Search:
    def __init__(self, times, buffers, on_cpu, on_accelerator, known):
        self.t, self.b = times, buffers
        self.p, self.q = on_cpu, on_accelerator
        self.best = known
        self.seen = {}
        self.go(0.0, 0.0, (), (), 0, 0)

    def ready(self, moves):
        """When the next batch of the CPU is ready, from the ends of the moves before it."""
        ends = []
        for j in range(len(moves) + 1):
            begin = ends[j - self.t.workers] if j >= self.t.workers else 0.0
            place = j - self.b.host - self.t.workers
            ends.append(max(begin, moves[place] if place >= 0 else 0.0) + self.t.cpu)
        return ends[-1]

    def go(self, accelerator, link, moves, trained, prepared, trained_there):
        left = self.p + self.q - len(trained) - trained_there
        if not left:
            self.best = min(self.best, accelerator)
            return
        work = left * self.t.train + (self.q - prepared) * self.t.accelerator
        if accelerator + work >= self.best - 1e-12:
            return
        if self._worse(accelerator, link, moves, trained, prepared, trained_there):
            return
        if prepared < self.q and prepared - trained_there < self.b.prepared:
            end = max(accelerator, link) + self.t.accelerator
            self.go(end, end, moves, trained, prepared + 1, trained_there)
        if len(moves) < self.p and len(moves) - len(trained) < self.b.moved:
            place = len(moves) - self.b.moved
            start = max(link, self.ready(moves), trained[place] if place >= 0 else 0.0)
            end = start + self.t.move
            self.go(accelerator, end, (*moves, end), trained, prepared, trained_there)
        if len(moves) > len(trained):
            end = max(accelerator, moves[len(trained)]) + self.t.train
            self.go(end, link, moves, (*trained, end), prepared, trained_there)
        if prepared > trained_there:
            end = accelerator + self.t.train
            self.go(end, link, moves, trained, prepared, trained_there + 1)

    def _worse(self, accelerator, link, moves, trained, prepared, trained_there):
        """Another order came to the same counts with nothing later."""
        key = (len(moves), len(trained), prepared, trained_there)
        state = (accelerator, link, *moves, *trained)
        states = self.seen.setdefault(key, [])
        if any(all(a <= b for a, b in zip(s, state, strict=True)) for s in states):
            return True
        states.append(state)
        return False
