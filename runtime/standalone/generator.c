/* MT19937: M. Matsumoto, T. Nishimura, Mersenne Twister, ACM TOMACS 8(1), 1998; torch's layout of its
 * state is that of aten/src/ATen/core/MT19937RNGEngine.h. */
#include "generator.h"

enum { MIDDLE = 397 };

static uint32_t block[TWISTED];
static int64_t left, next;

void generator_from(const Array *state)
{
    const int64_t *x = state->data;
    left = x[0];
    next = x[1];
    if (left < 1 || left > TWISTED || next < 0 || next > TWISTED) fail("%s is no state of a generator", state->name);
    for (int i = 0; i < TWISTED; i++) block[i] = (uint32_t)x[2 + i];
}

void generator_to(Array *state)
{
    int64_t *x = state->data;
    x[0] = left;
    x[1] = next;
    for (int i = 0; i < TWISTED; i++) x[2 + i] = block[i];
}

static uint32_t twisted(uint32_t far, uint32_t u, uint32_t v)
{
    const uint32_t mixed = (u & 0x80000000u) | (v & 0x7fffffffu);
    return far ^ (mixed >> 1) ^ (v & 1 ? 0x9908b0dfu : 0);
}

static void next_block(void)
{
    for (int i = 0; i < TWISTED; i++)
        block[i] = twisted(block[(i + MIDDLE) % TWISTED], block[i], block[(i + 1) % TWISTED]);
    left = TWISTED;
    next = 0;
}

static uint64_t draw(void)
{
    if (--left == 0) next_block();
    uint32_t y = block[next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

int64_t draw_key(void)
{
    const uint64_t high = draw(), number = high << 32 | draw();
    return (int64_t)(number % UINT64_MAX + (uint64_t)INT64_MIN);
}
