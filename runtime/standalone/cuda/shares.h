/* How the blocks of a device share the rows of groups, as runtime/sets/shares.py has it: a row of a
 * group is 1 unit of work, a group `row_cost`. */
#ifndef GNNC_SHARES_H
#define GNNC_SHARES_H
#include "sets.h"

typedef struct {
    int64_t count;
    int64_t *at;
} Shares;

/* Where each chunk of groups begins, and the end of the last: at most `chunks` of about `grain` units
 * of work, none of no groups at all. */
Shares cuts_of(const Group *group, int64_t row_cost, int64_t grain, int64_t chunks);
/* The pieces of groups of more than two times `piece` rows, in order: group, first row and end of
 * each. */
Shares pieces_of(const Group *group, int64_t piece);
#endif
