/* Messages that are under way while threads compute. */

/* By the thread that runs the phase alone, so that a message library needs to know of no other. */
INLINE void poll_comm(gnnc_comm *comm)
{
    if (omp_get_thread_num() == 0 && comm->poll && !comm->failed) comm->poll(comm);
}

#ifdef GNNC_PROFILE
#define SKIP_LAP start_ = omp_get_wtime()
#else
#define SKIP_LAP (void)0
#endif
