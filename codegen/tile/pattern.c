/* pattern.c - reads the patterns of tile.def's rows: see pattern.h.
 *
 * Requires: rows that are well formed (tests/tile/test_select.c checks each). Ensures: trees of
 * static storage, made once, by whichever thread comes first.
 *
 *     "SQ(V1)" -> PAT_SQUARE of leaf;  "O1(x)" -> x with output 1;  "DIVS(x, D0)" -> DIV;
 *     "WITH(x, y)" -> both
 */
#include "codegen/tile/pattern.h"
#include <pthread.h>
#include <string.h>

enum { MAX_NODES = 6000 };

static Pat nodes[MAX_NODES];
static int nnodes;
static TileRow rows[TILE_OP_COUNT];
static int16_t by_op[OP_COUNT_][TILE_OP_COUNT / 2], by_reduce[RED_COUNT_][16];

static const char *const op_names[OP_COUNT_] = {
#define OP(E, name, spelling, arity, types, expr) #E,
#include "frontend/ops.def"
};

typedef struct Reader {
    const char *p;
    TileRow *row;
    const char *params;
} Reader;

static size_t word(const char *s)
{
    size_t n = 0;
    while ((s[n] >= 'A' && s[n] <= 'Z') || (s[n] >= '0' && s[n] <= '9')) n++;
    return n;
}

static void read_params(TileRow *row, const char *s)
{
    for (; *s; s++) {
        if (*s < 'A' || *s > 'Z') continue;
        row->kind[row->nparams] = *s;
        row->index[row->nparams++] = (uint8_t)(s[1] - '0');
        row->several |= *s == 'O';
        s++;
    }
}

static int find_param(const TileRow *row, const char *s)
{
    for (int i = 0; i < row->nparams; i++) {
        if (row->kind[i] == s[0] && row->index[i] == s[1] - '0') return i;
    }
    return 0;
}

static bool is_word(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(s, name, n) == 0;
}

static void name_operation(Pat *p, const char *s, size_t n)
{
    p->kind = PAT_OP;
    if (is_word(s, n, "SQ"))
        p->kind = PAT_SQUARE;
    else if (is_word(s, n, "WITH"))
        p->kind = PAT_WITH;
    else if (is_word(s, n, "DIVS"))
        p->op = OP_DIV;
    for (int k = 0; k < OP_COUNT_; k++) {
        if (is_word(s, n, op_names[k])) p->op = (uint8_t)k;
    }
    if (p->kind == PAT_SQUARE) p->op = OP_MUL;
}

static const Pat *read_pattern(Reader *r)
{
    const char *s = r->p;
    size_t n = word(s);
    r->p += n;
    bool output = n == 2 && s[0] == 'O' && s[1] >= '1' && s[1] <= '9';
    if (output) {
        r->p++;
        Pat *x = (Pat *)read_pattern(r);
        r->p++;
        x->output = (uint8_t)(s[1] - '0');
        return x;
    }
    Pat *p = &nodes[nnodes++];
    if (*r->p != '(') {
        p->kind = PAT_LEAF;
        p->param = (uint8_t)find_param(r->row, s);
        return p;
    }
    name_operation(p, s, n);
    r->row->ops += p->kind != PAT_WITH;
    while (*r->p != ')') {
        r->p += strspn(r->p, "(, ");
        p->kid[p->nkids++] = read_pattern(r);
    }
    r->p++;
    return p;
}

/* Puts a row into a list that is sorted by how much its rows cover. */
static void add_sorted(int16_t *list, int op)
{
    int at = 0, n = 0;
    while (list[n] >= 0) n++;
    while (at < n && rows[list[at]].ops >= rows[op].ops) at++;
    memmove(list + at + 1, list + at, (size_t)(n - at + 1) * sizeof *list);
    list[at] = (int16_t)op;
}

static void read_row(int op)
{
    const TileInfo *info = &tile_info[op];
    TileRow *row = &rows[op];
    Reader r = {info->pattern, row, info->params};
    read_params(row, info->params);
    row->pattern = read_pattern(&r);
    if (info->second && strcmp(info->second, "0") != 0) {
        r.p = info->second;
        row->second = read_pattern(&r);
    }
}

static void read_rows(void)
{
    memset(by_op, -1, sizeof by_op);
    memset(by_reduce, -1, sizeof by_reduce);
    for (int op = 0; op < TILE_OP_COUNT && tile_info[op].name; op++) {
        read_row(op);
        const Pat *root = rows[op].pattern;
        while (root->kind == PAT_WITH) root = root->kid[1];
        if (tile_info[op].reduce >= 0)
            add_sorted(by_reduce[tile_info[op].reduce], op);
        else if (root->kind != PAT_LEAF)
            add_sorted(by_op[root->op], op);
    }
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const TileRow *tile_rows(void)
{
    pthread_once(&once, read_rows);
    return rows;
}

const int16_t *tile_rows_of(Op op)
{
    pthread_once(&once, read_rows);
    return by_op[op];
}

const int16_t *tile_rows_of_reduce(ReduceOp op)
{
    pthread_once(&once, read_rows);
    return by_reduce[op];
}
