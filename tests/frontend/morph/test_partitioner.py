import pytest

from gnnc.frontend.morph.partitioner import Feedback, Partitioner, initial, predicted
from gnnc.frontend.morph.plan import Split, Times


@pytest.mark.parametrize("workers", [1, 2, 4, 16])
@pytest.mark.parametrize("ratio", [0.05, 0.3, 1.0, 3.0, 40.0])
def test_initial_split_is_the_best_of_all_by_the_formula(ratio, workers):
    times = Times(0.012 * ratio * workers, 0.006, 0.012, 0.008, workers)
    n = 200
    least = min(predicted(times, Split(p, n - p)) for p in range(n + 1))
    assert predicted(times, initial(times, n)) <= 1.03 * least


def test_one_side_may_get_everything():
    assert initial(Times(0.0, 0.0, 1.0, 1.0), 10) == Split(10, 0)
    assert initial(Times(100.0, 1.0, 0.1, 0.1), 10) == Split(0, 10)
    assert initial(Times(1.0, 1.0, 1.0, 1.0), 1).batches == 1
    with pytest.raises(ValueError, match="batches"):
        initial(Times(1, 1, 1, 1), 0)


def measured_with(true: Times):
    """Runs of a machine whose times are not those that were profiled."""

    def run(split: Split) -> Feedback:
        cpu = split.cpu * true.cpu_interval
        there = split.accelerator * true.accelerator + split.batches * true.train
        return Feedback(max(cpu, there), max(0.0, cpu - there), max(0.0, there - cpu))

    return run


@pytest.mark.parametrize("slower", [0.8, 1.25])
def test_feedback_moves_batches_from_the_side_that_blocks(slower):
    profiled = Times(0.02, 0.001, 0.012, 0.008)
    true = Times(0.02 * slower, 0.001, 0.012, 0.008)
    partitioner = Partitioner(profiled)
    first = partitioner.initial(40)
    split, tried = partitioner.refine(first, measured_with(true))
    assert 1 < len(tried) <= 4
    assert (split.cpu > first.cpu) == (slower < 1)
    assert min(f.seconds for _, f in tried) < tried[0][1].seconds
    assert split.batches == 40


def test_feedback_ends_when_both_sides_are_even():
    times = Times(0.02, 0.001, 0.012, 0.008)
    partitioner = Partitioner(times)
    first = partitioner.initial(40)
    split, tried = partitioner.refine(first, measured_with(times))
    assert split == first and len(tried) == 1


def test_a_side_without_batches_gives_none():
    partitioner = Partitioner(Times(1, 1, 1, 1))
    split, tried = partitioner.refine(Split(0, 5), lambda split: Feedback(5.0, 5.0, 0.0))
    assert split == Split(0, 5) and len(tried) == 1
    with pytest.raises(ValueError, match="rounds"):
        partitioner.refine(split, lambda split: Feedback(1, 0, 0), rounds=0)
