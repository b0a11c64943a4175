"""The index tables and sizes that the phases of a program name, as C: what runtime/sets/tables.py
finds, by calls of the library.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .description import NoProgram
from .names import keys, literal

Domain = Sequence[Any]


class TableCode:
    """Prints tables. `sets` has the C variables of sets by name, `codomains` where their maps lead.
    What has to be done before goes to `lines`."""

    def __init__(
        self,
        sets: Mapping[str, str],
        codomains: Mapping[str, Mapping[str, str]],
        lines: list[str],
    ) -> None:
        self.sets, self.codomains, self.lines = sets, codomains, lines

    def size(self, domain: Domain | None) -> str:
        """The number of stored rows; None: the single row."""
        if domain is None:
            return "INT64_C(1)"
        name, names = domain
        if len(names) == 1:
            return f"{self.path([name, []], names[0])}->codomain"
        return f"{self.set_of(domain)}->size"

    def table(self, spec: Mapping[str, Any]) -> tuple[str, str]:
        """The array that a buffer of this description is, and its bytes.

        Raises:
            NoProgram: there is no such kind of table.
        """
        domain: Domain = spec["domain"]
        kind = spec["kind"]
        if kind == "index_map":
            size = f"{self.set_of(domain)}->size"
            return f"{self.path(domain, spec['path'])}->at", _bytes(size, 4)
        if kind == "pair_index":
            row_map = f"{self.pairs(domain[0], domain[1])}->row_map"
            return f"{row_map}.at", _bytes(f"{row_map}.size", 4)
        group = self.group(domain, spec["along"])
        members = _bytes(f"{group}->kept", 4)
        match kind:
            case "offsets":
                return f"{group}->ptr", _bytes(f"({group}->count + 1)", 8)
            case "members":
                return f"{group}->rows", members
            case "witness":
                return f"witness({group})", _bytes(f"{group}->count", 4)
            case "member_map":
                return self._of_members(self.path(domain, spec["path"]), group), members
            case "member_pair":
                row_map = f"&{self.pairs(domain[0], spec['keys'])}->row_map"
                return self._of_members(row_map, group), members
            case _:
                raise NoProgram(f"a program without Python has no table {kind!r}")

    def shares(self, spec: Mapping[str, Any]) -> str:
        """How the rows of groups are shared among the blocks of a device."""
        group = self.group(spec["domain"], spec["along"])
        if spec["kind"] == "pieces":
            return f"pieces_of({group}, {spec['piece']})"
        return f"cuts_of({group}, {spec['row_cost']}, {spec['grain']}, {spec['chunks']})"

    @staticmethod
    def _of_members(path: str, group: str) -> str:
        return f"map_of_rows({path}, {group}->rows, {group}->kept)->at"

    def set_of(self, domain: Domain) -> str:
        name, names = domain
        return f"{self.pairs(name, names)}->set" if names else self.sets[name]

    def pairs(self, name: str, names: Sequence[str]) -> str:
        for key in names:
            self.know(name, key)
        return f"pairs_of({self.sets[name]}, {keys(names)})"

    def know(self, name: str, path: str) -> None:
        """Gives a set the composed map of a dotted path."""
        if "." in path:
            self._give(self.sets[name], path, self.path([name, []], path))

    def _give(self, owner: str, path: str, value: str) -> None:
        key = literal(path)
        line = f"if (!has({owner}, {key})) give({owner}, {key}, {value});"
        if line not in self.lines:
            self.lines.append(line)

    def path(self, domain: Domain, path: str) -> str:
        """Where `path` leads from the stored rows of a domain."""
        name, names = domain
        owner = self.set_of(domain)
        found = [k for k in names if path == k or path.startswith(f"{k}.")]
        first: str = max(found, key=len) if found else path.split(".")[0]
        text = f"map_of({owner}, {literal(first)})"
        for step in first.split("."):
            name = self.codomains[name][step]
        for step in path[len(first) + 1 :].split("."):
            if step:
                text = f"then({text}, map_of({self.sets[name]}, {literal(step)}))"
                name = self.codomains[name][step]
        return text

    def group(self, domain: Domain, along: Sequence[str]) -> str:
        """Rows grouped by one path, or by the distinct tuples of several."""
        name, names = domain
        if len(along) > 1:
            if names:
                raise NoProgram(f"rows of {name}[{', '.join(names)}] cannot be grouped by {along}")
            return f"(&{self.pairs(name, along)}->group)"
        if names:
            owner = self.set_of(domain)
            if along[0] not in names:
                self._give(owner, along[0], self.path(domain, along[0]))
        else:
            self.know(name, along[0])
            owner = self.sets[name]
        return f"group_by({owner}, {literal(along[0])})"


def _bytes(count: str, size: int) -> str:
    return f"{count} * INT64_C({size})"
