"""schedule decides by widths alone, within its bounds, and changes no meaning."""

import pytest
from xdsl.context import Context
from xdsl.utils.exceptions import PassFailedException

from gnnc.dialects.meaning.check import same_meaning
from gnnc.passes.intra.schedule import SchedulePass
from gnnc.passes.targets.openmp import OPENMP

from ..lowered import INFER, TRAIN, after, nests
from ..programs import PROGRAMS as LAYERS
from ..small_programs import X, program


@pytest.mark.parametrize("name", LAYERS)
def test_the_meaning_stays(name):
    module = after(LAYERS[name], f"{TRAIN},lower-to-intra,fuse-traversals")
    same_meaning(module, after(module, "schedule"), seeds=range(1))


def schedules(text, specification="schedule", phases=INFER, name="forward"):
    """The schedule of each nest as numbers."""
    module = after(text, f"{phases},lower-to-intra,fuse-traversals,{specification}")
    return [n.schedule.numbers() for n in nests(module, name)]


def linear(width):
    return program(
        f"%x : !inter.rows<N, {width}xf64> {{inter.needs_grad}}, "
        f"%W : !inter.rows<unit, {width}x{width}xf64> {{inter.needs_grad}}",
        f"%z : !inter.rows<N, {width}xf64>",
        f"""
%y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, {width}xf64>
%z = inter.relu %y : !inter.rows<N, {width}xf64>
""",
    )


def test_blocks_shrink_with_wide_rows():
    blocks = [schedules(linear(w))[0]["block"] for w in (16, 256, 4096)]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[0] > blocks[-1] >= 1


def test_blocks_are_longer_where_sums_are_large():
    """Every block loads and stores all sums of its outer products."""

    def block(width):
        text = program(
            f"%x : !inter.rows<N, {width}xf32>, "
            f"%W : !inter.rows<unit, {width}x16xf32> {{inter.needs_grad}}",
            "%y : !inter.rows<N, 16xf32>",
            '%y = inter.contract "k,kf->f" %x, %W : !inter.rows<N, 16xf32>',
        )
        return schedules(text, phases=TRAIN, name="backward")[0]["block"]

    assert OPENMP.caches.block < 4 * 16 * 2048
    assert block(2048) == 2 * block(64)


def test_large_partial_sums_mean_fewer_chunks():
    """The partial sums of all chunks of a nest stay within their bound."""
    for width in (16, 256, 1024):
        (one,) = schedules(linear(width), phases=TRAIN, name="backward")
        most = max(4, OPENMP.caches.partials // (4 * width * width))
        assert 4 <= one["chunks"] <= min(256, most)


def test_chunks_that_still_suffice_keep_partial_sums_near():
    (narrow, wide) = (
        schedules(linear(width), phases=TRAIN, name="backward")[0]["chunks"] for width in (16, 64)
    )
    assert narrow == 256
    assert wide == OPENMP.nests.enough_chunks


def test_a_chunk_works_enough_for_its_partial_sums():
    """To clear large sums and to add them up takes a small part of a chunk's time."""
    (narrow, wide) = (
        schedules(linear(width), phases=TRAIN, name="backward")[0]["grain"] for width in (16, 256)
    )
    assert narrow == 8192
    assert wide * OPENMP.caches.partials_a_unit >= 4 * 256 * 256


def test_options_are_kept():
    (one,) = schedules(
        program(X, "%y : !inter.rows<N, 3xf64>", "%y = inter.neg %x : !inter.rows<N, 3xf64>"),
        "schedule{vector-bytes=16 grain=100 prefetch=3}",
    )
    assert (one["vector_bytes"], one["grain"], one["prefetch"]) == (16, 100, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "abacus"}, "no target 'abacus'"),
        ({"vector_bytes": 48}, "vector-bytes is 16, 32 or 64, not 48"),
    ],
)
def test_wrong_options_are_refused(options, message):
    module = after(linear(4), f"{INFER},lower-to-intra")
    with pytest.raises(PassFailedException, match=message):
        SchedulePass(**options).apply(Context(), module)
