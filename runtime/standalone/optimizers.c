/* The numbers of a step: see optimizers.h. The formulas are those of frontend/torch/optimizers.py. */
#include "optimizers.h"

#include <math.h>

enum { MOST = 9 };

static int adam(const Options *o, double steps, double *x)
{
    const double step = steps + 1;
    x[0] = o->lr / (1 - pow(o->beta1, step));
    x[1] = o->decoupled ? 0 : o->weight_decay;
    x[2] = o->sign;
    x[3] = o->decoupled ? 1 - o->lr * o->weight_decay : 1;
    x[4] = 1 - o->beta1;
    x[5] = o->beta2;
    x[6] = 1 - o->beta2;
    x[7] = 1 / sqrt(1 - pow(o->beta2, step));
    x[8] = o->eps;
    return 9;
}

static int sgd(const Options *o, double *x)
{
    x[0] = o->lr;
    x[1] = o->weight_decay;
    x[2] = o->sign;
    return 3;
}

static int with_momentum(const Options *o, int first, double *x)
{
    const int n = sgd(o, x);
    x[n] = o->momentum;
    x[n + 1] = first ? 1 : 1 - o->dampening;
    return n + 2;
}

static int adagrad(const Options *o, double steps, double *x)
{
    sgd(o, x);
    x[0] = o->lr / (1 + steps * o->lr_decay);
    x[3] = o->eps;
    return 4;
}

static int rmsprop(const Options *o, double *x)
{
    sgd(o, x);
    x[3] = o->alpha;
    x[4] = 1 - o->alpha;
    x[5] = o->eps;
    x[6] = o->momentum;
    return 6;
}

void numbers_of(Numbers kind, const Options *o, double steps, int first, Type type, void *out)
{
    double x[MOST];
    int n = 0;
    switch (kind) {
    case SGD: n = sgd(o, x); break;
    case MOMENTUM: n = with_momentum(o, first, x); break;
    case ADAM: n = adam(o, steps, x); break;
    case ADAGRAD: n = adagrad(o, steps, x); break;
    case RMSPROP: n = rmsprop(o, x); break;
    case RMSPROP_MOMENTUM: n = rmsprop(o, x) + 1; break;
    }
    for (int i = 0; i < n; i++) put_float(out, type, i, x[i]);
}
