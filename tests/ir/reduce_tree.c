/* The fixed tree against its definition, written down a second time: recursively, lane by lane. */
#include "tree_ref.h"

static uint64_t seed = 12345;
static double random_value(void)
{
    check_random(&seed);
    double u = (double)(seed >> 11) * 0x1p-53 - 0.5;
    return u * pow(2, (double)((seed >> 3) % 40)); /* magnitudes differ, so that order shows */
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, 8) == 0 || (a != a && b != b);
}

static void check_op(ReduceOp op, const double *x, const double *y, size_t n,
                     const unsigned char *present)
{
    double got = reduce_tree(op, x, n, 1, present), want = tree(op, x, n, present);
    CHECK(same(got, want), "%s tree of %zu: %a, not %a", reduce_info[op].name, n, got, want);
    double chunks[8], first = 0;
    size_t nchunks = (n + 4095) / 4096;
    for (size_t c = 0; c < nchunks; c++) {
        size_t at = c * 4096, count = n - at < 4096 ? n - at : 4096;
        chunks[c] = chunk(op, x + at, y + at, count, present ? present + at : NULL);
        if (c == 0) first = reduce_chunk(op, x, y, count, present);
    }
    if (nchunks) CHECK(same(first, chunks[0]), "%s chunk of %zu", reduce_info[op].name, n);
    got = reduce_vector(op, x, y, n, present);
    want = tree(op, chunks, nchunks, NULL);
    CHECK(same(got, want), "%s vector of %zu: %a, not %a", reduce_info[op].name, n, got, want);
}

int main(void)
{
    enum { MAX = 20000 };
    static double x[MAX], y[MAX], truth[MAX];
    static unsigned char present[MAX];
    for (size_t i = 0; i < MAX; i++) {
        x[i] = random_value();
        y[i] = random_value();
        truth[i] = x[i] > -1e8;
        present[i] = (seed >> 40) % 3 != 0;
    }
    static const size_t sizes[] = {4095, 4096, 4097, 8192, 8193, 12288, 12289, 16384, 19999};
    size_t nsizes = sizeof sizes / sizeof *sizes;
    for (size_t k = 0; k < 300 + nsizes; k++) {
        size_t n = k < 300 ? k : sizes[k - 300];
        for (int op = 0; op < RED_COUNT_; op++) {
            bool logic = reduce_info[op].types == LOGIC;
            check_op((ReduceOp)op, logic ? truth : x, logic ? truth : y, n, NULL);
            check_op((ReduceOp)op, logic ? truth : x, logic ? truth : y, n, present);
        }
    }
    /* The order does show: a plain sum has other bits. */
    double plain = 0;
    for (size_t i = 0; i < 19999; i++) plain += x[i];
    CHECK(plain != reduce_vector(RED_SUM, x, NULL, 19999, NULL),
          "the values do not tell orders apart");

    /* Stride, nothing at all, nothing present, NaN, zeros. */
    double pairs[] = {1, 9, 2, 9, 4, 9};
    CHECK(reduce_tree(RED_SUM, pairs, 3, 2, NULL) == 7, "stride");
    CHECK(reduce_tree(RED_RMAX, NULL, 0, 1, NULL) == -(double)INFINITY &&
              reduce_vector(RED_ALL, NULL, NULL, 0, NULL) == 1,
          "empty");
    CHECK(reduce_tree(RED_RMIN, pairs, 3, 2, (unsigned char[3]){0}) == (double)INFINITY,
          "none present");
    double nans[] = {1, NAN, 3};
    CHECK(isnan(reduce_vector(RED_RMAX, nans, NULL, 3, NULL)) &&
              isnan(reduce_vector(RED_RMIN, nans, NULL, 3, NULL)),
          "NaN");
    double zero[] = {-0.0, -0.0};
    CHECK(!signbit(reduce_vector(RED_SUM, zero, NULL, 2, NULL)), "lanes start at +0");
    CHECK(reduce_step(RED_DOT, 1, 2, 3) == 7 && reduce_merge(RED_DOT, 1, 2) == 3 &&
              reduce_identity(RED_ALL) == 1,
          "rows");
    return check_done();
}
