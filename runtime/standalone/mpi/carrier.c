/* Messages of phases, by MPI: see ranks.h and comm.h. What is reduced is gathered on every rank and
 * combined in the order of ranks, so that all have the same bits, in every run. */
#define _GNU_SOURCE
#include <limits.h>
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ranks.h"

#include "combine.h"

#ifndef PIECE
#define PIECE (1 << 28) /* bytes: longer messages go in pieces, whose lengths MPI counts in ints */
#endif
enum { ITEMS = 1024, TAG = 0, WORD = 8 };

typedef struct {
    int64_t *sends, *receives; /* bytes for and from each rank */
    MPI_Request *requests;
    int under_way;
} Move;

typedef struct {
    Kind kind;
    int n;
    Block *blocks;
    int64_t words;
    char *mine, *of_all;
} Reduction;

struct Carrier {
    gnnc_comm comm;
    int moves, reductions, rank, size;
    Move move[ITEMS];
    Reduction reduction[ITEMS];
};

static MPI_Comm of_moves = MPI_COMM_NULL, of_reductions;

/* ---------------------------------------------------------------- waiting */

/* Asks for half a millisecond without a pause, then sleeps for a sixteenth of what it has waited, up to a
 * millisecond: ranks may share cores. */
static void wait_for(int n, MPI_Request *requests)
{
    const double start = omp_get_wtime();
    for (;;) {
        int done;
        MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
        if (done) return;
        const double waited = omp_get_wtime() - start;
        if (waited < 0.5e-3) continue;
        const double pause = waited / 16 < 1e-3 ? waited / 16 : 1e-3;
        nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * pause)}, NULL);
    }
}

/* ---------------------------------------------------------------- moves */

static int pieces_of(int64_t bytes) { return (int)((bytes + PIECE - 1) / PIECE); }

static int64_t piece(int64_t bytes, int64_t at) { return bytes - at < PIECE ? bytes - at : PIECE; }

static void start_move(gnnc_comm *comm, int64_t k, const void *from, void *to)
{
    const Carrier *c = comm->state;
    Move *m = &((Carrier *)comm->state)->move[k];
    const char *source = from;
    char *target = to;
    int n = 0;
    for (int r = 0; r < c->size; target += m->receives[r++])
        for (int64_t at = 0; r != c->rank && at < m->receives[r]; at += PIECE)
            MPI_Irecv(target + at, (int)piece(m->receives[r], at), MPI_BYTE, r, TAG, of_moves, &m->requests[n++]);
    target = to;
    for (int r = 0; r < c->rank; r++) target += m->receives[r];
    for (int r = 0; r < c->size; source += m->sends[r++]) {
        if (r == c->rank && m->sends[r]) memcpy(target, source, (size_t)m->sends[r]);
        for (int64_t at = 0; r != c->rank && at < m->sends[r]; at += PIECE)
            MPI_Isend(source + at, (int)piece(m->sends[r], at), MPI_BYTE, r, TAG, of_moves, &m->requests[n++]);
    }
    m->under_way = n;
}

static void wait_for_move(gnnc_comm *comm, int64_t k)
{
    Move *m = &((Carrier *)comm->state)->move[k];
    wait_for(m->under_way, m->requests);
    m->under_way = 0;
}

/* Messages go on while the rank computes. */
static void poll_moves(gnnc_comm *comm)
{
    Carrier *c = comm->state;
    for (int k = 0; k < c->moves; k++) {
        Move *m = &c->move[k];
        int done = 0;
        if (m->under_way) MPI_Testall(m->under_way, m->requests, &done, MPI_STATUSES_IGNORE);
        if (done) m->under_way = 0;
    }
}

/* How many rows of a set are for each rank, or of it. */
static int64_t *rows_by_peer(const Carrier *c, const Set *set)
{
    const Map *peer = map_of(set, "peer");
    int64_t *counts = reserve_items(c->size, sizeof *counts);
    if (peer->codomain != c->size) fail("%s: its map peer is not one to %d ranks", set->name, c->size);
    for (int64_t i = 0; i < peer->size; i++) {
        if (i && peer->at[i] < peer->at[i - 1]) fail("%s: its rows do not lie by rank", set->name);
        counts[peer->at[i]]++;
    }
    return counts;
}

static void check_counts(const Carrier *c, const Set *from, const Set *to, const int64_t *sends, const int64_t *receives)
{
    int64_t *expected = reserve_items(c->size, sizeof *expected);
    MPI_Alltoall(sends, 1, MPI_INT64_T, expected, 1, MPI_INT64_T, of_moves);
    for (int r = 0; r < c->size; r++)
        if (expected[r] != receives[r])
            fail("rank %d sends %lld rows of %s, and %lld of %s are from it", r, (long long)expected[r], from->name,
                 (long long)receives[r], to->name);
    drop(expected, c->size * (int64_t)sizeof *expected);
}

void add_move(Carrier *c, const Set *from, const Set *to, int64_t bytes)
{
    if (c->moves == ITEMS) fail("a phase has more than %d messages", ITEMS);
    Move *m = &c->move[c->moves++];
    m->sends = rows_by_peer(c, from);
    m->receives = rows_by_peer(c, to);
    check_counts(c, from, to, m->sends, m->receives);
    int requests = 0;
    for (int r = 0; r < c->size; r++) {
        m->sends[r] *= bytes;
        m->receives[r] *= bytes;
        requests += pieces_of(m->sends[r]) + pieces_of(m->receives[r]);
    }
    m->requests = reserve_items(requests, sizeof *m->requests);
}

/* ---------------------------------------------------------------- reductions */

static int64_t words_of(const Block *b) { return (b->count * bytes_of(b->type) + WORD - 1) / WORD; }

static void reduce_all(gnnc_comm *comm, int64_t k, void *const *buffers)
{
    const Carrier *c = comm->state;
    const Reduction *r = &c->reduction[k];
    char *mine = r->mine;
    for (int i = 0; i < r->n; mine += words_of(&r->blocks[i++]) * WORD)
        memcpy(mine, buffers[i], (size_t)(r->blocks[i].count * bytes_of(r->blocks[i].type)));
    MPI_Request request;
    MPI_Iallgather(r->mine, (int)r->words, MPI_INT64_T, r->of_all, (int)r->words, MPI_INT64_T, of_reductions, &request);
    wait_for(1, &request);
    const char *first = r->of_all;
    for (int i = 0; i < r->n; first += words_of(&r->blocks[i++]) * WORD) {
        const Block *b = &r->blocks[i];
        memcpy(buffers[i], first, (size_t)(b->count * bytes_of(b->type)));
        for (int p = 1; p < c->size; p++)
            combine(r->kind, b->type, buffers[i], first + p * r->words * WORD, b->count);
    }
}

void add_reduction(Carrier *c, Kind kind, int n, const Block *blocks)
{
    if (c->reductions == ITEMS) fail("a phase has more than %d reductions", ITEMS);
    Reduction *r = &c->reduction[c->reductions++];
    *r = (Reduction){.kind = kind, .n = n};
    r->blocks = reserve_items(n, sizeof *blocks);
    memcpy(r->blocks, blocks, (size_t)n * sizeof *blocks);
    for (int i = 0; i < n; i++) r->words += words_of(&blocks[i]);
    if (r->words > INT_MAX) fail("%lld numbers are too many for one message", (long long)r->words);
    r->mine = reserve_items(r->words, WORD);
    r->of_all = reserve_items(r->words * c->size, WORD);
}

/* ---------------------------------------------------------------- */

Carrier *new_carrier(void)
{
    if (of_moves == MPI_COMM_NULL) {
        MPI_Comm_dup(MPI_COMM_WORLD, &of_moves);
        MPI_Comm_dup(MPI_COMM_WORLD, &of_reductions);
    }
    Carrier *c = reserve(sizeof *c);
    MPI_Comm_rank(of_moves, &c->rank);
    MPI_Comm_size(of_moves, &c->size);
    c->comm.start = start_move;
    c->comm.wait = wait_for_move;
    c->comm.all_reduce = reduce_all;
    c->comm.poll = poll_moves;
    c->comm.state = c;
    return c;
}

gnnc_comm *comm_of(Carrier *c) { return &c->comm; }
