/* torch's generator of random numbers for the CPU, gone on with from a state of it. */
#ifndef GNNC_GENERATOR_H
#define GNNC_GENERATOR_H
#include "npy.h"

enum { TWISTED = 624, STATE = 2 + TWISTED };

/* `state` has what is left of the block, the next number of it, and the block. */
void generator_from(const Array *state);
/* Writes the state that it is in now over that array. */
void generator_to(Array *state);
/* What torch.randint(-2**63, 2**63 - 1, (1,)) draws. */
int64_t draw_key(void);
#endif
