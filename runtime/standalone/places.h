/* Where temporaries lie. */
#ifndef GNNC_PLACES_H
#define GNNC_PLACES_H
#include <stdint.h>

/* Places `count` buffers in one block, whose bytes are returned. Each is three numbers of `uses`: its
 * bytes, and the steps from which to which it is in use; `offsets` gets where it begins. */
int64_t laid_out(int64_t count, const int64_t *uses, int64_t *offsets);

#endif
