/* What a program calls to exchange rows with other ranks; printed where a phase has such steps. The caller fills it in
   (runtime/cpu/comm.py) and says of each message of the phase, by its number, what it is. */
typedef struct gnnc_comm gnnc_comm;
struct gnnc_comm {
    void (*start)(gnnc_comm *, int64_t move, const void *from, void *to);
    void (*wait)(gnnc_comm *, int64_t move);
    void (*all_reduce)(gnnc_comm *, int64_t reduction, void *const *buffers);
    /* NULL, or gives messages that are under way a processor; needs no lock, and is called often. */
    void (*poll)(gnnc_comm *);
    void *state;
    /* Set by a function that cannot go on. An exception does not cross C: steps that are left exchange nothing, and the
       caller raises it after the phase. */
    int32_t failed;
};

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
