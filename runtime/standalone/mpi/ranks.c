/* The start and the end of ranks, and their folders: see ranks.h. */
#define _GNU_SOURCE
#include "ranks.h"

#include <mpi.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "npy.h"

enum { LISTED = 3, GRACE = 300000 };

static int rank, size, alike = 1;

/* What goes wrong on all ranks alike is told by the first: the others are ended by it. */
static void name_rank(void)
{
    while (alike && rank != 0) usleep(GRACE);
    if (!alike) fprintf(stderr, "rank %d: ", rank);
}

/* MPI's launcher ends at once, and with it what it has not read yet of what ranks have said. */
static void end_all(int status)
{
    fflush(NULL);
    usleep(GRACE);
    MPI_Abort(MPI_COMM_WORLD, status);
}

/* Ranks on one machine, where nothing else says which cores are whose, have as many threads each. */
static void share_cores(void)
{
    if (getenv("OMP_NUM_THREADS")) return;
    MPI_Comm here;
    int ranks;
    cpu_set_t mine, all;
    CPU_ZERO(&mine);
    sched_getaffinity(0, sizeof mine, &mine);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &ranks);
    MPI_Allreduce(&mine, &all, sizeof mine, MPI_BYTE, MPI_BOR, here);
    MPI_Comm_free(&here);
    const int share = CPU_COUNT(&all) / ranks;
    omp_set_num_threads(share > 1 ? share : 1);
}

/* A line is one write, and stays whole among those of others. MPICH leaves stdout with a buffer of one
 * byte, which stays where none is given. */
static void buffer_lines(void)
{
    static char out[BUFSIZ], err[BUFSIZ];
    setvbuf(stdout, out, _IOLBF, sizeof out);
    setvbuf(stderr, err, _IOLBF, sizeof err);
}

void begin_ranks(int *count, char ***words, int ranks)
{
    int level;
    MPI_Init_thread(count, words, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    before_message = name_rank;
    before_end = end_all;
    buffer_lines();
    if (size != ranks)
        fail("the program is made for %d ranks, and MPI has started %d: mpiexec -n %d %s", ranks, size, ranks,
             (*words)[0]);
    if (level < MPI_THREAD_FUNNELED) fail("this MPI lets no process have threads");
    share_cores();
}

void begin_part(const char *data)
{
    alike = 0;
    const char *folder = part_of(data);
    const Array listed = read_array(folder, "part", I64, 1, (int64_t[]){LISTED});
    const int64_t *is = listed.data;
    if (is[0] != rank || is[1] != size)
        fail("%s has the part of rank %lld of %lld, and the program runs on %d ranks", folder, (long long)is[0],
             (long long)is[1], size);
    int64_t *of_all = reserve_items(size, sizeof *of_all);
    MPI_Allgather(&is[2], 1, MPI_INT64_T, of_all, 1, MPI_INT64_T, MPI_COMM_WORLD);
    for (int r = 0; r < size; r++)
        if (of_all[r] != of_all[0]) {
            alike = 1;
            fail("%s: the parts of ranks 0 and %d are not of one graph, cut in one way", data, r);
        }
    drop(of_all, size * (int64_t)sizeof *of_all);
}

void end_ranks(void) { MPI_Finalize(); }

int is_first_rank(void) { return rank == 0; }

const char *part_of(const char *data)
{
    static char folder[4096];
    if (snprintf(folder, sizeof folder, "%s/part-%d", data, rank) >= (int)sizeof folder)
        fail("%s: a name too long", data);
    return folder;
}
