
/* A training step of nets that are one layer after the other: behind the text of a program that defines `net`, what
   fills it (net_of, unpack) and what each layer does. */

/* The loss; `given` are the parameters and `made` their gradients, in torch's shapes. */
float step(
    int64_t nodes, int chunks, int threads, const void *const *tables, const float *x, const int64_t *labels,
    const float *const *given, float *const *made, float *workspace)
{
    net g = net_of(nodes, chunks, threads, tables, x, labels, given, workspace);
    double loss = 0;
#pragma omp parallel num_threads(threads) reduction(+ : loss)
    {
        const unsigned mode = flush_denormals();
        float *total = thread_sums(g.sums, PARAMETERS), *chunk = total + PADDED(PARAMETERS);
        first_product(&g);
        first_sum(&g);
        for (int l = 1; l < LAYERS - 1; ++l) later_layer(&g, l);
        loss += last_layer(&g, total, chunk);
        below_last(&g, total, chunk);
        float *from = g.two, *to = g.one;
        for (int l = LAYERS - 2; l > 0; --l) {
            backward_layer(&g, l, from, to, total, chunk);
            float *swap = from;
            from = to, to = swap;
        }
        first_backward(&g, from, total, chunk);
        restore_denormals(mode);
    }
    unpack(&g, made);
    return (float)(loss / nodes);
}
