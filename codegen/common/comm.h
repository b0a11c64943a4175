/* What a program calls to exchange rows with other ranks; printed where a phase has such steps. The caller fills it in
   (runtime/comm.py) and says of each message of the phase, by its number, what it is. */
typedef struct gnnc_comm gnnc_comm;
struct gnnc_comm {
    void (*start)(gnnc_comm *, int64_t move, const void *from, void *to);
    void (*wait)(gnnc_comm *, int64_t move);
    void (*all_reduce)(gnnc_comm *, int64_t reduction, void *const *buffers);
    /* Tells other ranks where buffers lie: each of `peers` has then where that of each rank does. `places` is where in
       these a row is, the rank in the upper 16 bits, or NULL where ranks have the same rows. Goes on when all ranks
       have. */
    void (*publish)(gnnc_comm *, int64_t publication, const void *const *from, void **const *peers, uint64_t *places);
    /* Goes on when no rank reads them any more. */
    void (*retire)(gnnc_comm *, int64_t publication);
    /* NULL, or gives messages that are under way a processor; needs no lock, and is called often. */
    void (*poll)(gnnc_comm *);
    void *state;
    /* Set by a function that cannot go on. An exception does not cross C: steps that are left exchange nothing, and the
       caller raises it after the phase. */
    int32_t failed;
};
