/* Where temporaries lie. */
#ifndef GNNC_PLACES_H
#define GNNC_PLACES_H
#include <stdint.h>

/* Places `count` buffers in one block, whose bytes are returned. Each is three numbers of `uses`: its
 * bytes, and the steps from which to which it is in use; `offsets` gets where it begins. */
int64_t laid_out(int64_t count, const int64_t *uses, int64_t *offsets);

/* The bytes that scratch memory may take at a step: what is free there when as much is in use as at
 * any other, and a small part of that. `uses` are `count` buffers as above, without scratch memory. */
int64_t room_at(int64_t count, const int64_t *uses, int64_t step);

/* How the rows of a nest are cut (runtime/reserves.py): into chunks of `grain` units of work or more,
 * `most` at most, of `bytes` each; a row is `row_cost`, and one more for each of the `members` of its
 * group. Or into rounds of `round` blocks (0: there are none) of `block` rows, where chunks would take
 * more than `room`. */
typedef struct {
    int64_t rows, members, row_cost, grain, most, bytes, room, block, round;
} Cut;

enum { CHUNKS, SUMS, ROWS };

/* For how many of these a nest has scratch memory. */
int64_t reserved(int what, Cut cut);

#endif
