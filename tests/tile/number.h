/* number.h - values for elements, of which sums show in which order they were added.
 *
 *   in:  number_random(&seed, false)
 *   out: mostly 16 bits at one of several sizes that are far apart: what they add up to does not fit
 *        into the 53 bits of a double; now and then 0
 *
 * Wild ones are also huge, infinite or NaN. */
#ifndef DSOPT_TESTS_TILE_NUMBER_H
#define DSOPT_TESTS_TILE_NUMBER_H
#include "../check.h"
#include <math.h>
#include <stdbool.h>

static inline double number_random(uint64_t *seed, bool wild)
{
    static const double sizes[] = {1, 1, 1, 1, 0x1p-12, 0x1p-23, 0x1p-34, 0x1p-60};
    uint64_t r = check_random(seed) >> 24;
    double v = (double)((int)(r >> 14 & 0xffff) - 32768) * 0x1p-14;
    if ((r & 31) == 0) return 0;
    if (wild && (r & 1023) == 2) return INFINITY;
    if (wild && (r & 1023) == 3) return NAN;
    if (wild && (r & 127) == 4) return v * 0x1p70;
    return v * sizes[r >> 30 & 7];
}
#endif
