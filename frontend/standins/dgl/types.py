"""Names of node and edge types, and how many there are of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .base import DGLError
from .schemes import Scheme, schemes
from .topology import EType, Topology

if TYPE_CHECKING:
    from .graph import DGLGraph


class Types:
    """Methods of a graph that are about its types."""

    _topology: Topology

    @property
    def canonical_etypes(self) -> list[EType]:
        """All edge types, `(source type, name, target type)`."""
        return list(self._topology.relations)

    @property
    def etypes(self) -> list[str]:
        """The names of the edge types, in the order of `canonical_etypes`."""
        return [name for _, name, _ in self._topology.relations]

    @property
    def ntypes(self) -> list[str]:
        """The node types; of a block, those of sources and then those of targets."""
        topology = self._topology
        if topology.is_block:
            return [*topology.sources, *topology.targets]
        return list(topology.sources)

    @property
    def srctypes(self) -> list[str]:
        """The types of sources: all types, unless no type is both source and target."""
        return self._topology.side_types()[0]

    @property
    def dsttypes(self) -> list[str]:
        """The types of targets: all types, unless no type is both source and target."""
        return self._topology.side_types()[1]

    @property
    def is_block(self) -> bool:
        """Whether sources and targets are counted apart, as for a step of sampled neighbours."""
        return self._topology.is_block

    @property
    def is_unibipartite(self) -> bool:
        """Whether no type is both source and target."""
        sources, targets = self._topology.side_types()
        return self.is_block or sources is not targets

    @property
    def is_homogeneous(self) -> bool:
        """Whether there is one node type and one edge type."""
        return len(self.ntypes) == 1 and len(self.etypes) == 1

    def _find_ntype(self, ntype: str | None, side: str) -> tuple[str, bool]:
        """The name of a type on a side (`any`, `src` or `dst`), and whether it is a target's."""
        sources, targets = self._topology.side_types()
        if self.is_block and side == "any" and ntype is not None and ntype[:4] in _SIDES:
            side, ntype = _SIDES[ntype[:4]], ntype[4:]
        if side == "any":
            names = list(dict.fromkeys([*sources, *targets]))
            if ntype is None and self.is_block:
                names = []
        else:
            names = sources if side == "src" else targets
        if ntype is None:
            if len(names) != 1:
                raise DGLError(
                    "Node type name must be specified if there are more than one node types."
                )
            ntype = names[0]
        if ntype not in names:
            raise DGLError(f'Node type "{ntype}" does not exist.')
        return ntype, side == "dst" or (side == "any" and ntype not in sources)

    def to_canonical_etype(self, etype: str | EType | None) -> EType:
        """The canonical type of a name; of None, the only one.

        Raises `DGLError` where there is none, or more than one.
        """
        relations = self._topology.relations
        if etype is None:
            if len(relations) != 1:
                raise DGLError(
                    "Edge type name must be specified if there are more than one edge types."
                )
            return next(iter(relations))
        if isinstance(etype, tuple):
            return etype
        found = [canonical for canonical in relations if canonical[1] == etype]
        if not found:
            raise DGLError(f'Edge type "{etype}" does not exist.')
        if len(found) > 1:
            raise DGLError(
                f'Edge type "{etype}" is ambiguous. Please use canonical edge type in the form of '
                "(srctype, etype, dsttype)"
            )
        return found[0]

    def _find_etype(self, etype: str | EType | None) -> EType:
        found = self.to_canonical_etype(etype)
        if found not in self._topology.relations:
            raise DGLError(f'Edge type "{etype}" does not exist.')
        return found

    def _one_etype(self, key: Any) -> EType:
        """The only type that a key of `g[key]` fits."""
        if not isinstance(key, tuple):
            return self._find_etype(key)
        if len(key) != 3:
            raise DGLError(
                f"g[..] takes an edge type: a name or (srctype, etype, dsttype), got {key!r}"
            )
        found = [
            etype
            for etype in self._topology.relations
            if all(isinstance(k, slice) or k == e for k, e in zip(key, etype, strict=True))
        ]
        if not found:
            raise DGLError(f'Invalid key "{key}". Must be one of the edge types.')
        if len(found) > 1:
            raise NotImplementedError(
                f"g[{key!r}] fits {len(found)} edge types; joining them to one is not supported"
            )
        return found[0]

    def get_ntype_id(self, ntype: str | None) -> int:
        """The place of a node type in `ntypes`."""
        name, at_target = self._find_ntype(ntype, "any")
        if self.is_block and at_target:
            return len(self._topology.sources) + list(self._topology.targets).index(name)
        return list(self._topology.sources).index(name)

    def get_etype_id(self, etype: str | EType | None) -> int:
        """The place of an edge type in `etypes`."""
        return self.canonical_etypes.index(self._find_etype(etype))

    def num_nodes(self, ntype: str | None = None) -> int:
        """How many nodes there are of a type, or of all."""
        if ntype is not None:
            return self._nodes_of(ntype).rows
        topology = self._topology
        total = sum(topology.sources.values())
        return total + sum(topology.targets.values()) if topology.is_block else total

    def num_src_nodes(self, ntype: str | None = None) -> int:
        """How many source nodes there are of a type, or of all."""
        if ntype is not None:
            return self._nodes_of(ntype, "src").rows
        return sum(self._topology.sources[name] for name in self.srctypes)

    def num_dst_nodes(self, ntype: str | None = None) -> int:
        """How many target nodes there are of a type, or of all."""
        if ntype is not None:
            return self._nodes_of(ntype, "dst").rows
        return sum(self._topology.targets[name] for name in self.dsttypes)

    def num_edges(self, etype: str | EType | None = None) -> int:
        """How many edges there are of a type, or of all."""
        relations = self._topology.relations
        if etype is not None:
            return relations[self._find_etype(etype)].src.shape[0]
        return sum(r.src.shape[0] for r in relations.values())

    number_of_nodes = num_nodes
    number_of_src_nodes = num_src_nodes
    number_of_dst_nodes = num_dst_nodes
    number_of_edges = num_edges

    def node_attr_schemes(self: DGLGraph, ntype: str | None = None) -> dict[str, Scheme]:
        """Shapes (of one row) and dtypes of a type's features."""
        return schemes(self._nodes_of(ntype).frame)

    def edge_attr_schemes(self: DGLGraph, etype: Any = None) -> dict[str, Scheme]:
        """Shapes (of one row) and dtypes of a type's features."""
        return schemes(self._edge_frames[self._find_etype(etype)])


_SIDES = {"SRC/": "src", "DST/": "dst"}
