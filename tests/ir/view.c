/* view.c - the tiles of every view against what they stand for: each element is in one of them, at
 * the row and column that its index says.
 *
 *   in:  MATRIX [2, 40, 5000]
 *   out: 400,000 elements, each seen once; tiles in the order matrix, rows, strip
 */
#include "../check.h"
#include "codegen/codegen.h"
#include <stdlib.h>
#include <string.h>

static void check_row(const ViewDims *d, const DsRow *r, unsigned char *seen, const char *what)
{
    CHECK(r->tensor == 7 && r->count > 0 && r->runs > 0 && r->strip == r->col / DS_CHUNK &&
              r->count * r->runs <=
                  (d->view == VIEW_FLAT || d->packs > 1 ? DS_CHUNK : 16 * DS_CHUNK),
          "%s: a tile of %lld runs of %lld", what, (long long)r->runs, (long long)r->count);
    bool right = true;
    for (int64_t i = 0; i < r->runs; i++)
        for (int64_t q = 0; q < (i + 1 < r->runs ? r->count : r->last); q++) {
            int64_t e = r->first + i * r->pitch + q;
            if (e < 0 || e >= d->numel) REQUIRE(false, "%s: element %lld", what, (long long)e);
            right &= !seen[e];
            seen[e] = 1;
            if (d->view == VIEW_FLAT) continue;
            int64_t row = r->row + i + q / r->width, col = r->col + q % r->width;
            int64_t matrix = d->packs > 1 ? r->matrix + q / (d->rows * d->cols) : r->matrix;
            right &= row == e / d->cols && col == e % d->cols && matrix == row / d->rows;
        }
    CHECK(right, "%s: the tile at %lld: elements are elsewhere, or twice there", what,
          (long long)r->first);
}

static void check_view(View view, int ndim, const int64_t *shape, int64_t block)
{
    char what[128];
    ViewDims d = view_dims(view, ndim, shape, block);
    snprintf(what, sizeof what, "view %d of %lld elements as %lld x %lld x %lld", view,
             (long long)d.numel, (long long)d.mats, (long long)d.rows, (long long)d.cols);
    size_t n = view_rows(&d, 7, NULL);
    DsRow *r = calloc(n + 1, sizeof *r);
    unsigned char *seen = calloc((size_t)d.numel + 1, 1);
    if (!r || !seen) REQUIRE(false, "memory");
    CHECK(view_rows(&d, 7, r) == n, "%s: counted %zu", what, n);
    CHECK(r[n].count == 0, "%s: more than counted", what);
    int64_t most_tile = -1;
    for (size_t k = 0; k < n; k++) {
        check_row(&d, &r[k], seen, what);
        if (r[k].tile > most_tile) most_tile = r[k].tile;
        if (k == 0 || view == VIEW_FLAT) continue;
        const DsRow *a = &r[k - 1], *b = &r[k];
        bool after = a->matrix != b->matrix ? a->matrix < b->matrix
                     : a->tile != b->tile   ? a->tile < b->tile
                                            : a->strip < b->strip;
        CHECK(after, "%s: tile %zu is out of order", what, k);
    }
    CHECK(!memchr(seen, 0, (size_t)d.numel), "%s: an element is in no tile", what);
    if (view != VIEW_FLAT && d.numel)
        CHECK(most_tile + 1 == d.tiles, "%s: %lld tiles, said to be %lld", what,
              (long long)most_tile + 1, (long long)d.tiles);
    free(r);
    free(seen);
}

static void lengths(void)
{
    ViewDims d = view_dims(VIEW_MATRIX, 3, (int64_t[]){2, 40, 5000}, 0);
    CHECK(view_length(&d, RATE_ROW) == 80 && view_length(&d, RATE_COL) == 10000 &&
              view_length(&d, RATE_MATRIX) == 2 && view_length(&d, RATE_ELEMENT) == 400000,
          "lengths");
    CHECK(view_partials(&d, RATE_ROW) == 160 && view_partials(&d, RATE_COL) == 30000 &&
              view_partials(&d, RATE_MATRIX) == 2,
          "room for partial results");
    d = view_dims(VIEW_BLOCK, 2, (int64_t[]){10, 100}, 300);
    CHECK(d.rows == 4 && d.cols == 300 && view_length(&d, RATE_BLOCK) == 4, "blocks");
    d = view_dims(VIEW_MATRIX, 2, (int64_t[]){5, 0}, 0);
    CHECK(view_length(&d, RATE_ROW) == 0 && view_rows(&d, 0, NULL) == 0, "empty");
}

/* Rows of several whole matrices: a power of two of them, as many as a chunk holds. */
static void packs(void)
{
    static const struct {
        int64_t mats, rows, cols, packs, n;
    } of[] = {{600, 3, 3, 256, 3},    {600, 1, 1, 4096, 1},  {8193, 1, 1, 4096, 3},
              {2, 3, 3, 256, 1},      {1, 3, 3, 1, 1},       {100, 16, 24, 8, 13},
              {100, 5, 77, 1, 100},   {7, 1, 384, 8, 1},     {7, 384, 1, 8, 1},
              {9, 1, 385, 1, 9},      {40, 7, 7, 64, 1},     {3, 0, 5, 1, 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        int64_t shape[] = {of[i].mats, of[i].rows, of[i].cols};
        ViewDims d = view_dims(VIEW_MATRIX, 3, shape, 0);
        check_view(VIEW_MATRIX, 3, shape, 0);
        CHECK(d.packs == of[i].packs && view_rows(&d, 0, NULL) == (size_t)of[i].n,
              "%lld matrices of %lld x %lld: %lld in a row, %zu rows", (long long)of[i].mats,
              (long long)of[i].rows, (long long)of[i].cols, (long long)d.packs,
              view_rows(&d, 0, NULL));
        DsRow r[128];
        view_rows(&d, 0, r);
        for (int64_t k = 0; d.packs > 1 && k < of[i].n; k++)
            CHECK(r[k].matrix == k * d.packs && r[k].runs == 1 && r[k].last == r[k].count,
                  "row %lld begins with matrix %lld", (long long)k, (long long)r[k].matrix);
    }
    int64_t shape[] = {600, 3, 3};
    CHECK(view_dims(VIEW_FIRST, 3, shape, 0).packs == 1 &&
              view_dims(VIEW_BLOCK, 3, shape, 9).packs == 1 &&
              view_dims(VIEW_FLAT, 3, shape, 0).packs == 1,
          "views of one matrix");
}

int main(void)
{
    static const int64_t rows[] = {1, 2, 15, 16, 17, 31, 32, 33, 49, 257},
                         cols[] = {0, 1, 2, 3, 127, 255, 256, 4095, 4096, 4097, 9000};
    lengths();
    packs();
    check_view(VIEW_FLAT, 0, NULL, 0);
    check_view(VIEW_MATRIX, 0, NULL, 0);
    check_view(VIEW_FIRST, 0, NULL, 0);
    check_view(VIEW_BLOCK, 0, NULL, 3);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof cols / sizeof *cols; k++) {
            int64_t n = rows[i] * cols[k];
            for (int view = VIEW_FLAT; view <= VIEW_FIRST; view++) {
                check_view((View)view, 2, (int64_t[]){rows[i], cols[k]}, 0);
                check_view((View)view, 3, (int64_t[]){3, rows[i], cols[k]}, 0);
                check_view((View)view, 1, (int64_t[]){n}, 0);
            }
            if (!cols[k]) continue;
            check_view(VIEW_BLOCK, 1, (int64_t[]){n}, cols[k]);
            check_view(VIEW_BLOCK, 1, (int64_t[]){n - 1}, cols[k]);
            check_view(VIEW_BLOCK, 1, (int64_t[]){n + 1 + cols[k] / 2}, cols[k]);
        }
    return check_done();
}
