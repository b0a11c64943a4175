/* The numbers of one step of an optimizer after so many, in the order that the rules of
 * passes/inter/optimizers.py have them. */
#ifndef GNNC_OPTIMIZERS_H
#define GNNC_OPTIMIZERS_H
#include "base.h"

/* The options of a group of parameters; each rule reads those that it has. */
typedef struct {
    double lr, weight_decay, sign, momentum, dampening, beta1, beta2, eps, lr_decay, alpha;
    int decoupled;
} Options;

typedef enum { SGD, MOMENTUM, ADAM, ADAGRAD, RMSPROP, RMSPROP_MOMENTUM } Numbers;

/* Writes the numbers of type F32 or F64; `first`: nothing is kept of an earlier step. */
void numbers_of(Numbers kind, const Options *options, double steps, int first, Type type, void *out);
#endif
