"""SetEnv: what a function says about its sets; normal forms of keys, joins, where values live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from .types import FLAGS, ONE, UNIT, Dom, Map, RowsType, SetType, set_type

_LONGEST_PATH = 8
"""Steps of a path beyond which equations are not followed (they may go round in circles)."""


class DifferentSets(VerifyException):
    """Values of different sets are used as if they had the same rows."""


class Total(OpTrait):
    """The op may be computed on stored rows that nothing reads: finite operands give a finite
    result with a finite derivative."""


class KnowsEquations:
    """A structure op; its result may obey equations that its type does not spell."""

    def known_equations(self) -> Sequence[tuple[str, str]]:
        """Pairs of paths of the result that agree on every row."""
        return ()


@dataclass
class SetInfo:
    """One set of a function: the value that is it, its type, its maps and what is known of them."""

    value: SSAValue
    type: SetType
    maps: dict[str, Map]
    pairs: frozenset[tuple[str, ...]]
    equations: tuple[tuple[str, str], ...]


@dataclass
class SetEnv:
    """The sets of one function by name.

    Passes that add structure ops keep it up to date with `add`, or make a new one; value ops may
    come and go freely.
    """

    sets: dict[str, SetInfo] = field(default_factory=dict[str, SetInfo])
    _norms: dict[tuple[str, frozenset[str], bool], Dom] = field(
        default_factory=dict[tuple[str, frozenset[str], bool], Dom]
    )
    _same: dict[tuple[str, str], tuple[str, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[str, ...]]
    )

    # ------------------------------------------------------------ births

    @staticmethod
    def births(func: FuncOp) -> Iterable[SSAValue]:
        """The values that are sets: arguments, then results of structure ops in order."""
        for v in func.body.block.args:
            if isinstance(v.type, SetType):
                yield v
        for op in func.body.block.ops:
            for v in op.results:
                if isinstance(v.type, SetType):
                    yield v

    @staticmethod
    def of(func: FuncOp) -> SetEnv:
        """The sets of `func`. Raises VerifyException where a name is born twice."""
        env = SetEnv()
        for v in SetEnv.births(func):
            env.add(v)
        return env

    def add(self, v: SSAValue) -> None:
        """Makes a set known: an argument or the result of a structure op."""
        t = set_type(v)
        if t.label in self.sets:
            raise VerifyException(
                f"set {t.label} is born twice in one function: give every set argument and every "
                "structure op its own name (unify-sets merges equal ones)"
            )
        owner = v.owner
        known = tuple(owner.known_equations()) if isinstance(owner, KnowsEquations) else ()
        equations = tuple(dict.fromkeys((*t.equations, *known)))
        self.sets[t.label] = SetInfo(v, t, t.map_dict(), frozenset(t.pair_keys), equations)
        self._norms.clear()
        self._same.clear()

    def fresh(self, hint: str) -> str:
        """A set name that is not taken: `hint` or `hint_1`, `hint_2`, ..."""
        taken = set(self.sets) | {m.codomain for i in self.sets.values() for m in i.maps.values()}
        name, count = hint, 0
        while name in taken or name == UNIT:
            count += 1
            name = f"{hint}_{count}"
        return name

    # ------------------------------------------------------------ names

    def info(self, name: str) -> SetInfo:
        """Raises VerifyException where the function has no such set."""
        if name not in self.sets:
            raise VerifyException(
                f"set {name} is not born in this function: no argument and no structure op has "
                f"the type !inter.set<{name}, ..>"
            )
        return self.sets[name]

    def value(self, name: str) -> SSAValue:
        """The value that is the set `name`."""
        return self.info(name).value

    def full_type(self, name: str) -> SetType:
        """The set's type with the equations that its structure op implies written out: what an
        argument must say when the set crosses into another function."""
        info = self.info(name)
        t = info.type
        return SetType.get(t.label, info.maps, t.part_names, info.equations, t.pair_keys)

    def codomain(self, name: str, path: str) -> str:
        """The set that a path of maps ends in. Raises VerifyException where it does not exist."""
        for step in path.split("."):
            maps = self.info(name).maps
            if step not in maps:
                raise VerifyException(
                    f"set {name} has no map {step!r}; it has {', '.join(maps) or 'none'}"
                )
            name = maps[step].codomain
        return name

    def _path_flags(self, name: str, path: str) -> frozenset[str]:
        every, some = frozenset(FLAGS), frozenset[str]()
        for step in path.split("."):
            m = self.info(name).maps[step]
            every &= frozenset(m.flags)
            some |= frozenset(m.flags)
            name = m.codomain
        return (every - {"partial"}) | (some & {"partial"})

    def flags(self, name: str, path: str) -> frozenset[str]:
        """What is known of a path: mono and onto when each step is, or those of an equal path;
        partial when a step is."""
        self.codomain(name, path)
        own = self._path_flags(name, path)
        for other in self.same(name, path):
            own |= self._path_flags(name, other) - {"partial"}
        return own

    def is_partial(self, name: str, path: str) -> bool:
        return "partial" in self.flags(name, path)

    def same(self, name: str, path: str) -> tuple[str, ...]:
        """The paths known to agree with `path` on every row, itself included; the first is the
        canonical one (fewest steps, then by name)."""
        if (name, path) not in self._same:
            found, todo = {path}, [path]
            while todo:
                for other in self._rewritten(name, todo.pop().split(".")):
                    if other not in found and other.count(".") < _LONGEST_PATH:
                        found.add(other)
                        todo.append(other)
            self._same[name, path] = tuple(sorted(found, key=lambda p: (p.count("."), p)))
        return self._same[name, path]

    def _rewritten(self, name: str, steps: list[str]) -> Iterable[str]:
        """The paths one equation away."""
        for i in range(len(steps)):
            info = self.sets.get(name)
            if info is None:  # a codomain that verify_names will report
                return
            rest = ".".join(steps[i:])
            for a, b in info.equations:
                for old, new in ((a, b), (b, a)):
                    if rest == old or rest.startswith(old + "."):
                        yield ".".join((*steps[:i], new)) + rest[len(old) :]
            if steps[i] not in info.maps:
                return
            name = info.maps[steps[i]].codomain

    def determines(self, name: str, by: str, path: str) -> str | None:
        """The maps that lead from the end of `by` to the end of `path` ("" where both agree), None
        where no such path is known."""
        for p in self.same(name, path):
            for q in self.same(name, by):
                if p == q:
                    return ""
                if p.startswith(q + "."):
                    return p[len(q) + 1 :]
        return None

    # ------------------------------------------------------------ the lattice

    def norm(self, name: str, keys: Iterable[str], rounded: bool = True) -> Dom:
        """The normal form of a class of keys: a key that others determine is dropped, a mono or
        partial key means the whole set, no key at all means `unit`. `rounded`: a combination that
        is no declared pair rounds up to the set."""
        memo = (name, frozenset(keys), rounded)
        if memo not in self._norms:
            self._norms[memo] = self._normal(name, memo[1], rounded)
        return self._norms[memo]

    def _normal(self, name: str, keys: frozenset[str], rounded: bool) -> Dom:
        if any({"mono", "partial"} & self.flags(name, k) for k in keys):
            return Dom(name)
        left = {self.same(name, k)[0] for k in keys}
        for k in sorted(left, key=lambda k: (-k.count("."), k)):
            if any(self.determines(name, q, k) is not None for q in left - {k}):
                left.remove(k)
        if not left:
            return ONE
        dom = Dom(name, tuple(sorted(left)))
        if rounded and len(dom.keys) > 1 and not self.has_pair(name, dom.keys):
            return Dom(name)
        return dom

    def has_pair(self, name: str, keys: tuple[str, ...]) -> bool:
        """Whether the graph keeps a table of the distinct tuples of these (normal) keys."""
        pairs = self.info(name).pairs
        return keys in pairs or any(self.norm(name, p, False).keys == keys for p in pairs)

    def le(self, a: Dom, b: Dom) -> bool:
        """Whether `a` is coarser than `b` or equal: a value on `a` can be read on `b`."""
        if a.set == UNIT or a == b:
            return True
        if a.set != b.set or (b.keys and not a.keys):
            return False
        if not b.keys:
            return True
        if self.norm(a.set, a.keys + b.keys, False) != self.norm(b.set, b.keys, False):
            return False
        # a single key stores its whole codomain, and rows of it that occur nowhere have no tuple
        some_missing = len(b.keys) == 1 and "onto" not in self.flags(b.set, b.keys[0])
        return not (len(a.keys) > 1 and some_missing)

    def join(self, doms: Iterable[Dom]) -> Dom:
        """The least domain that all can be read on. Raises DifferentSets for two sets."""
        ds = [d for d in doms if d.set != UNIT]
        if not ds:
            return ONE
        if len(names := sorted({d.set for d in ds})) > 1:
            raise DifferentSets(
                f"operands live on different sets, {' and '.join(names)}: cross with inter.at (or "
                "reduce) first"
            )
        name = names[0]
        if any(not d.keys for d in ds):
            return Dom(name)
        d = self.norm(name, (k for d in ds for k in d.keys))
        return d if all(self.le(x, d) for x in ds) else Dom(name)

    def total(self, op: Operation, d: Dom, top: Dom | None = None) -> Dom:
        """A single key stores rows that no row of the set may read: only Total ops are computed
        there, others on `top` (the whole set)."""
        if op.has_trait(Total) or self.all_are_read(d):
            return d
        return top or Dom(d.set)

    def all_are_read(self, d: Dom) -> bool:
        """Whether some row of the set reads each row of a domain."""
        return len(d.keys) != 1 or "onto" in self.flags(d.set, d.keys[0])

    # ------------------------------------------------------------ rules that ops share

    def at(self, name: str, path: str, x: Dom) -> Dom:
        """Where a value of domain `x` lives when it is seen from the set `name` through `path`."""
        end = self.codomain(name, path)
        if x.set == UNIT:
            return ONE
        if x.set != end:
            raise VerifyException(
                f"map {path} of {name} goes to {end}, but the operand lives on {x}: read it "
                f"through a map to {x.set}"
            )
        return self.norm(name, [f"{path}.{k}" for k in x.keys] or [path])

    def along(self, name: str, keys: Sequence[str]) -> Dom:
        """The groups of a reduction as a class of the rows of the set `name`."""
        return self.norm(name, keys, False) if keys else ONE

    def reduced(self, over: Dom, keys: Sequence[str]) -> Dom:
        """Where the result of a reduction lives: no key gives `unit`, one map its codomain, several
        the pairs."""
        if not keys:
            return ONE
        if len(keys) > 1 and (bad := [k for k in keys if self.is_partial(over.set, k)]):
            raise VerifyException(
                f"map {bad[0]} of {over.set} is partial: reduce along it alone, or filter first"
            )
        d = self.along(over.set, keys)
        if not self.le(d, over):
            raise VerifyException(
                f"along ({', '.join(keys)}) is not determined by a row of {over}: `along` must be "
                "coarser than `over`"
            )
        if len(keys) == 1:
            return Dom(self.codomain(over.set, keys[0]))
        if len(d.keys) > 1 and not self.has_pair(d.set, d.keys):
            raise VerifyException(
                f"set {over.set} declares no pairs ({', '.join(d.keys)}): add them to its type, "
                "or reduce along one map"
            )
        return d

    def readable(self, x: Dom, at: Dom, what: str = "the operand") -> None:
        """Raises VerifyException where `what`, on `x`, cannot be read at the rows of `at`."""
        if not self.le(x, at):
            raise VerifyException(f"{what} lives on {x} and cannot be read at the rows of {at}")

    # ------------------------------------------------------------ checks

    def check_type(self, t: RowsType) -> None:
        """Raises VerifyException where a type names unknown sets or is not in normal form."""
        d = t.dom
        if d.set == UNIT:
            return
        self.info(d.set)
        if d.keys and (n := self.norm(d.set, d.keys)) != d:
            exact = self.norm(d.set, d.keys, False)
            hint = f"; declare `pairs ({', '.join(d.keys)})` to keep it" if exact == d else ""
            raise VerifyException(
                f"rows<{d}, ..> is not in normal form: it means rows<{n}, ..>{hint}"
            )

    def verify_names(self) -> None:
        """Raises VerifyException where a set's type names sets or paths that do not exist."""
        for name, info in self.sets.items():
            for label, m in info.maps.items():
                if m.codomain not in self.sets:
                    raise VerifyException(
                        f"map {label} of set {name} goes to {m.codomain}, which is never born in "
                        f"this function: add an argument of type !inter.set<{m.codomain}>"
                    )
        for name, info in self.sets.items():
            for keys in info.pairs:
                for k in keys:
                    if self.is_partial(name, k):
                        raise VerifyException(
                            f"pairs of set {name} name {k}, which is partial: filter first"
                        )
            for a, b in info.equations:
                end_a, end_b = self.codomain(name, a), self.codomain(name, b)
                if end_a != end_b:
                    raise VerifyException(
                        f"set {name}: {a} goes to {end_a} and {b} to {end_b}, they cannot be equal"
                    )
            for part in info.type.part_names:
                self.info(part)
