"""What CUDA leaves undefined is a fault that names threads and lines, in every order."""

import re

import numpy as np
import pytest

from gnnc.runtime.emulator import EmulatedFault

from .launching import ORDERS, frozen, line, run


def kernel(body: str, declared: str = "const float *x, float *y, int n") -> str:
    """A kernel `k` of a body, with `t`, its thread, and `m`, shared memory as floats."""
    return (
        f"__global__ void k({declared}) {{\n"
        "GNNC_SHARED(memory);\n"
        "float *m = (float *)memory;\n"
        "int t = threadIdx.x;\n"
        f"{body}\n"
        "}\n"
        "GNNC_EXPORT(k)\n"
    )


def faults(text: str, **how) -> list[str]:
    """The messages of a kernel with x (64 floats to read), y (64 floats) and n = 64, one an
    order.
    """
    messages: list[str] = []
    for order in ORDERS:
        x, y = frozen(np.arange(64, dtype=np.float32)), np.zeros(64, np.float32)
        with pytest.raises(EmulatedFault) as caught:
            run(text, x, y, np.int32(64), order=order, **how)
        messages.append(str(caught.value))
        assert messages[-1].startswith("kernel k, block (")
        assert "thread (" in messages[-1]
    return messages


def check(body: str, *words: str, **how) -> None:
    """Each message has all words, and the lines of all marks that the body has."""
    text = kernel(body)
    marks = {part.strip() for part in "ABC" if f"// {part}" in body}
    for message in faults(text, **how):
        for word in (*words, *(f"line {line(text, mark)}" for mark in marks)):
            assert word in message, message


# barriers


def test_barrier_that_a_thread_never_reaches():
    body = "if (t == 5) return;\n__syncthreads(); // A"
    check(body, "thread (5, 0, 0) has returned", "waits at the barrier")


def test_barrier_that_a_warp_never_reaches():
    body = "if (t < 32) return;\n__syncthreads(); // A"
    check(body, "has returned", "waits at the barrier", block=64)


def test_barriers_at_two_lines():
    body = """if (t < 32) {
        __syncthreads(); // A
    } else {
        __syncthreads(); // B
    }"""
    check(body, "is at the barrier", "waits at the barrier", block=64)


def test_barrier_in_a_loop_of_different_lengths():
    body = """for (int i = 0; i < 2 + t / 32; ++i)
        __syncthreads(); // A"""
    check(body, "has returned", block=64)


def test_barrier_and_operation_of_a_warp():
    body = """if (t == 3)
        __syncthreads(); // A
    else
        __syncwarp(); // B"""
    check(body, "waits at the __syncwarp", "for thread (3, 0, 0)", "waits at the barrier")


# masks


def test_shuffle_in_a_branch():
    body = """float v = x[t];
    if (v < 20.0f)
        v += __shfl_xor_sync(0xffffffffu, v, 1); // A
    y[t] = v;"""
    check(body, "__shfl_xor_sync", "mask 0xffffffff", "for thread (20, 0, 0)", "has returned")


def test_shuffle_before_a_barrier_that_others_wait_at():
    body = """if (t < 8)
        y[t] = __shfl_sync(0xffffffffu, x[t], 0); // A
    __syncthreads(); // B"""
    check(body, "for thread (8, 0, 0)", "waits at the barrier")


def test_operations_that_wait_for_each_other():
    body = """if (t < 16)
        __syncwarp(0xffffffffu); // A
    else
        __syncwarp(0xffff0001u); // B"""
    check(body, "mask 0xffffffff for thread (16, 0, 0)", "mask 0xffff0001")


def test_mask_without_the_calling_lane():
    body = "y[t] = __shfl_sync(0x0000ffffu, x[t], 0); // A"
    for message in faults(kernel(body)):
        assert "does not name its lane" in message and "at line" not in message
        assert f"line {line(kernel(body), 'A')} with mask 0x0000ffff" in message


def test_one_mask_at_two_lines():
    body = """float v = x[t];
    if (t % 2)
        v += __shfl_xor_sync(0xffffffffu, v, 2); // A
    else
        v += __shfl_xor_sync(0xffffffffu, v, 2); // B
    y[t] = v;"""
    check(body, "is at the __shfl_xor_sync", "waits at the __shfl_xor_sync")


def test_lanes_that_the_block_does_not_have():
    check("__syncwarp(); // A", "names lane 8", "block ends before", block=40)


def test_source_lane_outside_of_the_mask():
    body = """if (t < 16)
        y[t] = __shfl_down_sync(0xffffu, x[t], 4); // A"""
    check(body, "reads lane 16 in the __shfl_down_sync", "mask 0x0000ffff", "(12, 0, 0)")


def test_width_that_is_no_power_of_two():
    check("y[t] = __shfl_sync(0xffffffffu, x[t], 0, 12); // A", "with a width of 12")


def test_vote_that_a_lane_misses():
    body = "if (t == 31) return;\ny[t] = __any_sync(0xffffffffu, t); // A"
    check(body, "__any_sync", "for thread (31, 0, 0)", "has returned")


# memory


@pytest.mark.parametrize(
    "access, words",
    [
        ("y[t] = x[t + 33];", "reads 4 bytes|0 bytes behind the last byte of buffer 0 (256 bytes)"),
        ("y[t] = x[t - 1];", "reads 4 bytes|4 bytes before the first byte of buffer"),
        ("y[t + 33] = 1.0f;", "writes 4 bytes|behind the last byte of buffer 1"),
        ("y[t] = *(const float *)(uintptr_t)(n - 64);", "reads 4 bytes outside of all memory"),
        ("y[t] = ((const float4 *)x)[t].x;", "outside of all memory|behind the last byte"),
        ("memcpy(y + t, x + 62, n);", "reads 56 bytes outside of all memory"),
        ("memset(y + t, 0, 8 * n);", "outside of all memory"),
        ("atomicAdd(&y[t + 64], 1.0f);", "changes by an atomic 4 bytes outside of all memory"),
        ("((float *)x)[t] = 1.0f;", "writes 4 bytes at byte|of buffer 0|only to be read"),
        ("atomicAdd((float *)x, 1.0f);", "changes by an atomic|of buffer 0|only to be read"),
        ("m[t + 33] = 1.0f;", "writes 4 bytes|behind the last byte of the shared memory (256"),
        ("m[t - 1] = 1.0f;", "writes 4 bytes|before the first byte of the shared memory"),
        ("y[t] = *(const float *)((const char *)x + 2);", "reads 4 bytes|no multiple"),
    ],
)
def test_wrong_address(access, words):
    check(f"{access} // A", *words.split("|"), shared=256)


def test_shared_memory_that_was_not_launched_with():
    check("m[t] = 1.0f; // A", "outside of all memory")


def test_vector_of_a_wrong_address():
    body = """const float4 *v = (const float4 *)(x + 1);
    ((float4 *)y)[t % 2] = v[t % 2]; // A"""
    check(body, "16 bytes", "no multiple")


def test_write_to_static_data():
    text = "static float table[64];\n" + kernel("table[t] = x[t]; // A\ny[t] = table[n - 1 - t];")
    for message in faults(text):
        assert f"writes 4 bytes of static data at line {line(text, 'A')}" in message


def test_shared_memory_that_nobody_has_written():
    body = """if (t < 31) m[t] = x[t];
    __syncthreads();
    y[t] = m[t]; // A"""
    check(body, "thread (31, 0, 0) reads byte 124 of", "no thread of the block has", shared=128)


def test_shared_memory_of_an_earlier_block():
    body = """if (blockIdx.x == gridDim.x / 2) m[t] = x[t];
    __syncthreads();
    if (m[t] > 100.0f) y[t] = 0.0f; // A"""
    check(body, "no thread of the block has written", grid=3, shared=128)


def test_line_of_an_inlined_function():
    """The line that accesses, not the one that calls. Behind x may lie y: then it is a race."""
    first = "__device__ __forceinline__ float far(const float *p) {\nreturn p[64]; // A\n}\n"
    text = first + kernel("y[t] = far(x + t); // B")
    for message in faults(text):
        assert re.search(rf"at line {line(text, 'A')}\b", message), message


def test_line_of_a_function_of_the_header():
    """The line of the text, not one of the emulator's header."""
    text = kernel("y[t] = 1.0f;\ny[t] = __ldg(x + t + n); // A")
    for message in faults(text):
        assert re.search(rf"at line {line(text, 'A')}\b", message), message


# races


def test_race_of_warps_in_shared_memory():
    body = """m[t] = x[t]; // A
    y[t] = m[63 - t]; // B"""
    check(body, "race", block=64, shared=256)


def test_race_of_lanes_in_shared_memory():
    body = """m[t] = x[t]; // A
    y[t] = m[31 - t]; // B"""
    check(body, "race", shared=128)


def test_shuffles_order_no_accesses():
    body = """m[t] = x[t]; // A
    float v = __shfl_sync(0xffffffffu, x[t], 0);
    y[t] = m[31 - t] + v; // B"""
    check(body, "race", shared=128)


def test_syncwarp_orders_its_lanes_alone():
    body = """m[t] = x[t]; // A
    __syncwarp(t < 16 ? 0xffffu : 0xffff0000u);
    y[t] = m[t ^ 16]; // B"""
    check(body, "race", shared=128)


def test_syncwarp_orders_no_warps():
    body = """m[t] = x[t]; // A
    __syncwarp();
    y[t] = m[t ^ 32]; // B"""
    check(body, "race", block=64, shared=256)


def test_missing_second_barrier_of_a_loop():
    body = """float sum = 0.0f;
    for (int i = 0; i < 3; ++i) {
        m[t] = x[t + i]; // A
        __syncthreads();
        sum += m[(t + 7) % 32]; // B
    }
    y[t] = sum;"""
    check(body, "race", "writes", "reads", shared=128)


@pytest.mark.parametrize("writer", [0, 5, 31, 40])
def test_write_of_a_word_that_many_lanes_have_read(writer):
    """Whoever writes: all readers but one are other threads."""
    body = f"""if (t == 0) m[0] = 1.0f;
    __syncthreads();
    y[t] = m[0]; // A
    if (t == {writer}) m[0] = 2.0f; // B"""
    check(body, "race", block=64, shared=4)


def test_write_after_a_barrier_of_some_of_the_readers():
    body = """if (t == 0) m[0] = 1.0f;
    __syncwarp();
    float v = m[0]; // A
    if (t < 31) __syncwarp(0x7fffffffu);
    if (t == 3) m[0] = v; // B
    y[t] = v;"""
    check(body, "race", "thread (31, 0, 0)", "thread (3, 0, 0)", shared=4)


def test_two_writes_of_one_word_in_a_block():
    body = "y[t / 2] = x[t]; // A"
    check(body, "race", "no barrier orders")


def test_two_writes_of_equal_values():
    """The same value does not make it defined."""
    check("y[0] = 1.0f; // A", "race")


def test_blocks_that_write_one_word():
    body = "if (t == 0) y[0] = float(blockIdx.x); // A"
    check(body, "race", "of block (", "blocks are not ordered", grid=3)


def test_block_that_reads_what_another_writes():
    body = """if (blockIdx.x == 1) y[t] = x[t]; // A
    else if (y[63 - t - 32] > 70.0f) y[t + 32] = 0.0f; // B"""
    check(body, "race", "blocks are not ordered", grid=2)


def test_block_that_writes_what_many_have_read():
    """Barriers order nothing between blocks."""
    body = """float v = y[0]; // A
    __syncthreads();
    if (blockIdx.x == 2 && t == 0) y[0] = v; // B"""
    check(body, "race", "blocks are not ordered", grid=4, block=64)


def test_atomic_and_read_of_another_thread():
    body = """atomicAdd(&y[0], 1.0f); // A
    if (t == 9 && y[0] > 100.0f) y[1] = 0.0f; // B"""
    check(body, "race", "changes by an atomic", "reads")


def test_atomic_and_write_of_another_block():
    body = """if (blockIdx.x == 1) y[t] = 0.0f; // A
    else atomicAdd(&y[t], 1.0f); // B"""
    check(body, "race", "changes by an atomic", "writes", "blocks are not ordered", grid=2)


def test_write_of_a_byte_in_a_word_of_another_thread():
    body = """y[t] = x[t]; // A
    if (t > 0) ((char *)y)[4 * t - 1] = 0; // B"""
    check(body, "race")


def test_word_that_holds_a_byte_of_another_thread():
    body = """((char *)y)[4 * t + 3] = 0; // A
    if (t > 0) y[t - 1] = x[t]; // B"""
    check(body, "race")


def test_copy_of_what_another_thread_writes():
    body = """y[t] = 1.0f; // A
    if (t == 4) memcpy(y + 32, y, n); // B"""
    check(body, "race")
