/* tensors.c - every tensor that an optimizer is not created for, and those that look odd but are
 * legal.
 *
 *   in:  {.name = "w", .shape = {3, -1}}
 *   out: DSOPT_INVALID_TENSOR, a message with 'w' and -1, and *out NULL
 */
#include "rt.h"

static Rt rt;
static dsopt_program *sgd;
static float a[64], b[64], ga[64], gb[64];

static dsopt_tensor good(const char *name, float *p, float *g)
{
    static const int64_t shape[] = {4, 5};
    return rt_tensor(name, NULL, DSOPT_F32, p, g, 2, shape);
}

static void refused_as(const dsopt_tensor *t, size_t n, dsopt_status status, const char *text)
{
    dsopt_optimizer *o = (dsopt_optimizer *)&rt;
    RT_FAILS(rt.ctx, dsopt_optimizer_create(rt.ctx, sgd, t, n, &o), status, text);
    CHECK(o == NULL, "out is not NULL after '%s'", text);
}

static void refused(const dsopt_tensor *t, size_t n, const char *text)
{
    refused_as(t, n, DSOPT_INVALID_TENSOR, text);
}

static void accepted(const dsopt_tensor *t, size_t n, const char *what)
{
    dsopt_optimizer *o;
    dsopt_status st = dsopt_optimizer_create(rt.ctx, sgd, t, n, &o);
    CHECK(st == DSOPT_OK, "%s: %s", what, dsopt_error_message(rt.ctx));
    dsopt_optimizer_destroy(o);
}

static void names(void)
{
    dsopt_tensor t[2] = {good("w", a, ga), good("w", b, gb)};
    refused(t, 2, "tensors[0] and tensors[1] are both named 'w'");
    t[1].name = NULL;
    refused(t, 2, "tensors[1] has no name");
    t[1].name = "";
    refused(t, 2, "tensors[1] has no name");
    t[1].name = "v";
    t[1].group = "";
    refused(t, 2, "tensor 'v': its group's name is empty");
}

static void shapes(void)
{
    dsopt_tensor t = good("w", a, ga);
    t.shape = (int64_t[]){3, -1};
    refused(&t, 1, "tensor 'w': dimension 1 of its shape [3, -1] is negative");
    t.shape = (int64_t[]){INT64_MAX, 3};
    refused(&t, 1, "more elements than can be counted");
    t.shape = (int64_t[]){1ll << 31, 1ll << 31};
    refused(&t, 1, "more elements than can be counted");
    t.shape = (int64_t[]){1ll << 32, 1ll << 32}; /* 2^64: 0 in 64 bits */
    refused(&t, 1, "more elements than can be counted");
    t.shape = (int64_t[]){INT64_MAX, 3, 0};
    t.ndim = 3;
    accepted(&t, 1, "empty, though its other lengths overflow");
    t.shape = NULL;
    refused(&t, 1, "shape is NULL");
    t.ndim = -1;
    refused(&t, 1, "ndim = -1");
    t.ndim = 65;
    refused(&t, 1, "ndim = 65");
    t.ndim = 0;
    accepted(&t, 1, "0-d");
}

static void strides(void)
{
    dsopt_tensor t = good("w", a, ga);
    t.strides = (int64_t[]){5, 1};
    accepted(&t, 1, "contiguous strides");
    t.strides = (int64_t[]){1, 4};
    refused(&t, 1, "tensor 'w': stride 4 of dimension 1 (contiguous: 1)");
    t.strides = (int64_t[]){6, 1};
    refused(&t, 1, "stride 6 of dimension 0 (contiguous: 5)");
    t.shape = (int64_t[]){1, 5};
    accepted(&t, 1, "the stride of a length of 1 does not matter");
    t.shape = (int64_t[]){0, 5};
    accepted(&t, 1, "nor do strides of an empty tensor");
}

static void dtypes(void)
{
    dsopt_tensor t = good("w", a, ga);
    t.dtype = DSOPT_F64;
    refused(&t, 1, "tensor 'w': parameter dtype f64 is not supported");
    t.dtype = DSOPT_F32;
    t.grad_dtype = DSOPT_F64;
    refused(&t, 1, "tensor 'w': gradient dtype f64 is not supported");
    t.grad_dtype = (dsopt_dtype)77;
    refused(&t, 1, "gradient dtype 77");
    t.grad_dtype = (dsopt_dtype)-1;
    refused(&t, 1, "gradient dtype -1");
    t.grad_dtype = DSOPT_BF16;
    accepted(&t, 1, "f32 with bf16 gradients");
}

static void pointers(void)
{
    dsopt_tensor t = good("w", NULL, ga);
    refused(&t, 1, "tensor 'w': param is NULL, but it has 20 elements");
    t.param = a;
    t.grad = NULL;
    accepted(&t, 1, "no gradient yet");
    t = rt_tensor("w", NULL, DSOPT_F32, NULL, NULL, 1, (int64_t[]){0});
    accepted(&t, 1, "empty, without memory");
    t = rt_tensor("w", NULL, DSOPT_F32, (void *)(UINTPTR_MAX - 8), NULL, 1, (int64_t[]){64});
    refused(&t, 1, "reaches past the end of memory");
    accepted(NULL, 0, "no tensors");
    refused_as(NULL, 1, DSOPT_INVALID_ARGUMENT, "tensors is NULL");
}

static void overlaps(void)
{
    dsopt_tensor t[3] = {good("w", a, ga), good("v", a + 19, gb), good("u", b, NULL)};
    refused(t, 2, "the parameter of tensor 'w' and the parameter of tensor 'v' share memory");
    t[1].param = a + 20;
    accepted(t, 3, "side by side");
    t[2].param = a + 10;
    refused(t, 3, "the parameter of tensor 'w' and the parameter of tensor 'u' share memory");
    t[2].param = ga + 3;
    refused(t, 3, "the gradient of tensor 'w' and the parameter of tensor 'u' share memory");
    t[0].grad = a;
    refused(t, 1, "the parameter of tensor 'w' and the gradient of tensor 'w' share memory");
    t[0].grad = ga;
    t[1].grad = ga + 4;
    refused(t, 2, "the gradient of tensor 'w' and the gradient of tensor 'v' share memory");
    /* A short one inside of a long one, with others in between by address. */
    dsopt_tensor u[3] = {rt_tensor("long", NULL, DSOPT_F32, a, NULL, 1, (int64_t[]){60}),
                         rt_tensor("empty", NULL, DSOPT_F32, a + 1, NULL, 1, (int64_t[]){0}),
                         rt_tensor("short", NULL, DSOPT_F32, a + 50, NULL, 0, NULL)};
    refused(u, 3,
            "the parameter of tensor 'long' and the parameter of tensor 'short' share memory");
    accepted(u, 2, "an empty tensor overlaps nothing");
}

/* Later overlaps are found by the step after the rebinding, which then changes nothing. */
static void rebinding(void)
{
    dsopt_tensor t[2] = {good("w", a, ga), good("v", b, gb)};
    dsopt_optimizer *o;
    REQUIRE(dsopt_optimizer_create(rt.ctx, sgd, t, 2, &o) == DSOPT_OK, "%s",
            dsopt_error_message(rt.ctx));
    for (int i = 0; i < 20; i++) ga[i] = gb[i] = 1;
    a[0] = b[0] = 5;
    REQUIRE(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    CHECK(dsopt_bind_gradient(o, 0, gb) == DSOPT_OK, "exchange, first half");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_INVALID_TENSOR,
             "the gradient of tensor 'w' and the gradient of tensor 'v' share memory");
    CHECK(a[0] == 5 && b[0] == 5, "a refused step moved something");
    CHECK(dsopt_bind_gradient(o, 1, ga) == DSOPT_OK, "exchange, second half");
    CHECK(dsopt_step(o) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(a[0] != 5 && b[0] != 5, "the step after it did not move");
    CHECK(dsopt_bind_gradient(o, 1, a + 2) == DSOPT_OK, "a parameter as gradient");
    CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_INVALID_TENSOR,
             "the parameter of tensor 'w' and the gradient of tensor 'v' share memory");
    RT_FAILS(rt.ctx, dsopt_bind_gradient(o, 2, ga), DSOPT_INVALID_ARGUMENT,
             "no tensor number 2 (there are 2)");
    dsopt_optimizer_destroy(o);
}

static void structs(void)
{
    dsopt_tensor t[2] = {good("w", a, ga), good("v", b, gb)};
    t[0].size = 0;
    refused_as(t, 2, DSOPT_INVALID_ARGUMENT,
               "dsopt_tensor.size is 0: set it to sizeof(dsopt_tensor)");
    t[0].size = 16;
    refused_as(t, 2, DSOPT_VERSION_MISMATCH, "dsopt_tensor.size is 16");
    /* Arrays of a later version's struct, whose new members are 0, are walked with their own
     * stride. */
    struct {
        dsopt_tensor t;
        int64_t later;
    } big[2] = {{t[0], 0}, {t[1], 0}};
    big[0].t.size = big[1].t.size = sizeof big[0];
    accepted(&big[0].t, 2, "a later version's struct");
    big[1].later = 1;
    refused_as(&big[0].t, 2, DSOPT_VERSION_MISMATCH, "dsopt_tensor has members set that version");
    big[1].later = 0;
    big[1].t.size = sizeof t[0];
    refused_as(&big[0].t, 2, DSOPT_INVALID_ARGUMENT, "tensors[1].size");
}

static void storage_option(void)
{
    dsopt_program *p;
    dsopt_program_options opts = {.size = sizeof opts, .storage = "p=bf16,m=bf16"};
    REQUIRE(dsopt_program_load(rt.ctx, "adamw", &opts, &p) == DSOPT_OK, "%s",
            dsopt_error_message(rt.ctx));
    dsopt_tensor t = good("w", a, ga);
    dsopt_optimizer *o;
    RT_FAILS(rt.ctx, dsopt_optimizer_create(rt.ctx, p, &t, 1, &o), DSOPT_INVALID_TENSOR,
             "tensor 'w': its parameter is f32, but the program was loaded with storage p=bf16");
    t.dtype = DSOPT_BF16;
    CHECK(dsopt_optimizer_create(rt.ctx, p, &t, 1, &o) == DSOPT_OK, "%s",
          dsopt_error_message(rt.ctx));
    dsopt_state_info info = {.size = sizeof info};
    size_t i;
    CHECK(dsopt_state_find(o, "w", "m", &i) == DSOPT_OK &&
              dsopt_state_info_read(o, i, &info) == DSOPT_OK,
          "m");
    CHECK(info.dtype == DSOPT_BF16 && info.count == 20, "m is %s", dsopt_dtype_name(info.dtype));
    CHECK(dsopt_state_find(o, "w", "v", &i) == DSOPT_OK &&
              dsopt_state_info_read(o, i, &info) == DSOPT_OK,
          "v");
    CHECK(info.dtype == DSOPT_F32, "v is %s", dsopt_dtype_name(info.dtype));
    dsopt_optimizer_destroy(o);
    dsopt_program_release(p);
    opts.storage = "n=bf16";
    RT_FAILS(rt.ctx, dsopt_program_load(rt.ctx, "adamw", &opts, &p), DSOPT_INVALID_ARGUMENT,
             "no state 'n'");
    CHECK(p == NULL, "out is not NULL");
}

int main(void)
{
    rt_open(&rt, 1);
    sgd = rt_program(&rt, "sgd", NULL);
    names();
    shapes();
    strides();
    dtypes();
    pointers();
    overlaps();
    rebinding();
    structs();
    storage_option();
    dsopt_program_release(sgd);
    rt_close(&rt);
    return check_done();
}
