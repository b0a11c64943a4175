/* Ranks: processes that run the same program by MPI, each on its part of one graph. */
#ifndef GNNC_RANKS_H
#define GNNC_RANKS_H

#include "steps.h"
#include "comm.h"

/* Starts MPI for a program that is made for so many ranks. What goes wrong on one rank ends all; until
 * `begin_part` it goes wrong on all alike, and the first tells. Threads are an equal share of the cores
 * of a machine where OMP_NUM_THREADS says nothing. */
void begin_ranks(int *count, char ***words, int ranks);
/* Checks that the folders with the parts of all ranks, in that of the data, are of one graph. */
void begin_part(const char *data);
/* Waits for all ranks, and ends MPI. */
void end_ranks(void);
int is_first_rank(void);
/* The folder with the part of this rank. */
const char *part_of(const char *data);

/* Numbers that are reduced over ranks. */
typedef struct {
    Type type;
    int64_t count;
} Block;

/* What a phase says to other ranks: its moves and its reductions, in the order of their numbers. */
typedef struct Carrier Carrier;
Carrier *new_carrier(void);
/* Rows of so many bytes go from the one set to the other: both have a map `peer` to the rank at the other
 * end of each, ascending. */
void add_move(Carrier *c, const Set *from, const Set *to, int64_t bytes);
void add_reduction(Carrier *c, Kind kind, int n, const Block *blocks);
gnnc_comm *comm_of(Carrier *c);
#endif
