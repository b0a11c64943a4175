/* Reduces numbers over ranks by runtime/standalone/mpi, and prints what comes out on each. */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>

#include "ranks.h"

enum { N = 4 };
static double d[N];
static float f[N];
static int64_t l[N];
static int32_t i[N];

int main(int count, char **words)
{
    static const Kind kinds[] = {SUM, MUL, MAX, MIN};
    begin_ranks(&count, &words, 3);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Carrier *c = new_carrier();
    for (int k = 0; k < 4; k++)
        add_reduction(c, kinds[k], 4, (const Block[]){{F32, N - 1}, {F64, N}, {I32, 1}, {I64, N}});
    for (int k = 0; k < 4; k++) {
        for (int j = 0; j < N; j++) {
            d[j] = f[j] = (float)(0.1 * (j + 1) * (rank - 1) + (j == 2 ? 1e9 * (1 - rank) : 0));
            l[j] = (int64_t)(j - 1) * (rank + 2) * (j == 3 ? INT64_MAX / 8 : 1);
            i[j] = (rank + 1) * (INT32_MAX / 4);
        }
        if (rank == 1) d[1] = NAN;
        gnnc_comm *comm = comm_of(c);
        comm->all_reduce(comm, k, (void *const[]){f, d, i, l});
        printf("%d %d", rank, k);
        for (int j = 0; j < N; j++) printf(" %a %a %" PRId64, (double)f[j], d[j], l[j]);
        printf(" %" PRId32 "\n", i[0]);
    }
    end_ranks();
    return 0;
}
