/* Where temporaries lie. */
#ifndef GNNC_PLACES_H
#define GNNC_PLACES_H
#include <stdint.h>

/* Places `count` buffers in one block, whose bytes are returned. Each is three numbers of `uses`: its
 * bytes, and the steps from which to which it is in use; `offsets` gets where it begins. */
int64_t laid_out(int64_t count, const int64_t *uses, int64_t *offsets);

/* How many chunks rows are cut into at most, of `grain` units of work or more: a row is `row_cost`,
 * and one more for each of the `members` of its group. */
int64_t most_chunks(int64_t rows, int64_t members, int64_t row_cost, int64_t grain, int64_t most);

#endif
