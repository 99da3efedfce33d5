/* api.c - the calls in right and in wrong order: contexts, programs, hyperparameters, steps,
 * states, reports.
 *
 *   in:  dsopt_step without dsopt_accumulate
 *   out: DSOPT_NO_NEW_GRADS, and p, t and the states have their bits
 */
#include "rt.h"
#include <stdio.h>
#include <unistd.h>

static Rt rt;

/* ---- contexts -------------------------------------------------------------------------------- */

static void context_fails(dsopt_config c, dsopt_status status, const char *text)
{
    dsopt_context *ctx = (dsopt_context *)&rt;
    if (c.size == 0) c.size = sizeof c;
    RT_FAILS(NULL, dsopt_context_create(&c, &ctx), status, text);
    CHECK(ctx == NULL, "out is not NULL");
}

static void contexts(void)
{
    CHECK(dsopt_version() == DSOPT_VERSION, "%d", dsopt_version());
    CHECK(strcmp(dsopt_version_string(), "0.1.0") == 0, "%s", dsopt_version_string());
    context_fails((dsopt_config){.device = "cuda:0"}, DSOPT_NOT_SUPPORTED,
                  "running on CUDA is not supported yet");
    context_fails((dsopt_config){.device = "tpu"}, DSOPT_INVALID_ARGUMENT,
                  "unknown device \"tpu\"");
    context_fails((dsopt_config){.threads = -1}, DSOPT_INVALID_ARGUMENT, "threads = -1");
    context_fails((dsopt_config){.threads = 100000}, DSOPT_INVALID_ARGUMENT, "threads = 100000");
    context_fails((dsopt_config){.backend = "llvm"}, DSOPT_INVALID_ARGUMENT, "no backend \"llvm\"");
    context_fails((dsopt_config){.backend = "cuda"}, DSOPT_INVALID_ARGUMENT,
                  "no backend \"cuda\" that runs on the cpu");
    context_fails((dsopt_config){.isa = "sse9"}, DSOPT_NOT_SUPPORTED, "sse9");
    context_fails((dsopt_config){.size = 8}, DSOPT_VERSION_MISMATCH, "dsopt_config.size is 8");
    dsopt_context *ctx;
    RT_FAILS(NULL, dsopt_context_create_checked(DSOPT_VERSION + 100, NULL, &ctx),
             DSOPT_VERSION_MISMATCH, "compiled with dsopt.h 0.2.0, but the library is 0.1.0");
    CHECK(dsopt_context_create_checked(DSOPT_VERSION + 1, NULL, &ctx) == DSOPT_OK,
          "a patch version fits");
    dsopt_context_destroy(ctx);
    CHECK((dsopt_context_create)(NULL, &ctx) == DSOPT_OK, "the function behind the macro");
    CHECK(strcmp(dsopt_error_message(ctx), "") == 0, "'%s'", dsopt_error_message(ctx));
    dsopt_context_destroy(ctx);
    RT_FAILS(NULL, dsopt_context_create(NULL, NULL), DSOPT_INVALID_ARGUMENT, "out is NULL");
    dsopt_context_destroy(NULL);
    dsopt_program_release(NULL);
    dsopt_optimizer_destroy(NULL);
    CHECK(strcmp(dsopt_status_name(DSOPT_OUT_OF_MEMORY), "DSOPT_OUT_OF_MEMORY") == 0, "name");
    CHECK(strcmp(dsopt_status_name((dsopt_status)999), "DSOPT_?") == 0, "unknown name");
    CHECK(strstr(dsopt_status_text(DSOPT_NO_NEW_GRADS), "dsopt_accumulate") != NULL, "text");
    CHECK(strcmp(dsopt_result_name(DSOPT_STEP_LR_ZERO), "LR_ZERO") == 0, "result");
}

/* ---- programs -------------------------------------------------------------------------------- */

static void load_fails(const char *path, const dsopt_program_options *o, dsopt_status status,
                       const char *text)
{
    dsopt_program *p = (dsopt_program *)&rt;
    RT_FAILS(rt.ctx, dsopt_program_load(rt.ctx, path, o, &p), status, text);
    CHECK(p == NULL, "out is not NULL");
}

static void options_fail(dsopt_program_options o, dsopt_status status, const char *text)
{
    o.size = sizeof o;
    load_fails("adamw", &o, status, text);
}

static void write_file(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    REQUIRE(f && fwrite(text, 1, n, f) == n && fclose(f) == 0, "cannot write %s", path);
}

static void programs(void)
{
    load_fails("adamww", NULL, DSOPT_FILE_ERROR, "did you mean 'adamw'?");
    load_fails("none/such.opt", NULL, DSOPT_FILE_ERROR, "none/such.opt");
    load_fails("/", NULL, DSOPT_FILE_ERROR, "directory");
    load_fails("", NULL, DSOPT_INVALID_ARGUMENT, "no path or name");
    load_fails(NULL, NULL, DSOPT_INVALID_ARGUMENT, "no path or name");
    char dir[] = "/tmp/dsopt_api_XXXXXX", path[64];
    REQUIRE(mkdtemp(dir), "mkdtemp");
    snprintf(path, sizeof path, "%s/x.opt", dir);
    write_file(path, "", 0);
    load_fails(path, NULL, DSOPT_FILE_ERROR, "x.opt' is empty");
    write_file(path, "\0\1\2\377ELF", 7);
    load_fails(path, NULL, DSOPT_FILE_ERROR, "x.opt");
    write_file(path, "optimizer a { hyper lr = 1\n p -= lr * gg }\n", 43);
    load_fails(path, NULL, DSOPT_INVALID_PROGRAM, ":2:12: error: ");
    write_file(path, "optimizer a { hyper lr = 1\n p -= lr * g }\n", 42);
    dsopt_program *p;
    CHECK(dsopt_program_load(rt.ctx, path, NULL, &p) == DSOPT_OK, "%s",
          dsopt_error_message(rt.ctx));
    CHECK(strcmp(dsopt_program_name(p), "a") == 0, "%s", dsopt_program_name(p));
    dsopt_program_retain(p);
    dsopt_program_release(p);
    CHECK(strcmp(dsopt_program_name(p), "a") == 0, "a reference is left");
    dsopt_program_release(p);
    unlink(path);
    rmdir(dir);
    CHECK(dsopt_program_load(rt.ctx, "adamw.opt", NULL, &p) == DSOPT_OK, "stdlib by file name: %s",
          dsopt_error_message(rt.ctx));
    dsopt_program_release(p);

    options_fail((dsopt_program_options){.compute = "f16"}, DSOPT_INVALID_ARGUMENT,
                 "compute \"f16\"");
    options_fail((dsopt_program_options){.defines = "nesterov"}, DSOPT_INVALID_ARGUMENT,
                 "'nesterov' is not of the form");
    options_fail((dsopt_program_options){.defines = "no_such=1"}, DSOPT_INVALID_PROGRAM, "no_such");
    options_fail((dsopt_program_options){.rule = "lion"}, DSOPT_INVALID_PROGRAM, "lion");
    options_fail((dsopt_program_options){.storage = "m=f99"}, DSOPT_INVALID_ARGUMENT, "f99");
    RT_FAILS(rt.ctx, dsopt_program_compile(rt.ctx, NULL, NULL, NULL, &p), DSOPT_INVALID_ARGUMENT,
             "text is NULL");
    RT_FAILS(rt.ctx, dsopt_program_compile(rt.ctx, "optimizer {", NULL, NULL, &p),
             DSOPT_INVALID_PROGRAM, "<text>:1:");
    CHECK(dsopt_program_load(NULL, "adamw", NULL, &p) == DSOPT_INVALID_ARGUMENT, "ctx NULL");
}

/* compute "f64" needs the interpreter, and takes f64 tensors. */
static void oracle(void)
{
    double p[2] = {1, 2}, g[2] = {0.5, -0.25};
    dsopt_program_options o = {.size = sizeof o, .compute = "f64"};
    dsopt_program *prog;
    dsopt_optimizer *opt;
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_DTYPE_DEFAULT, p, g, 1, (int64_t[]){2});
    REQUIRE(dsopt_program_load(rt.ctx, "sgd", &o, &prog) == DSOPT_OK, "%s",
            dsopt_error_message(rt.ctx));
    if (strcmp(rt_backend(), "interp") != 0)
        RT_FAILS(rt.ctx, dsopt_optimizer_create(rt.ctx, prog, &t, 1, &opt), DSOPT_NOT_SUPPORTED,
                 "runs on backend \"interp\" only");
    Rt in;
    rt_open_with(&in, "interp", NULL, 1);
    REQUIRE(dsopt_optimizer_create(in.ctx, prog, &t, 1, &opt) == DSOPT_OK, "%s",
            dsopt_error_message(in.ctx));
    rt_set(&in, opt, NULL, "lr", 0.1);
    rt_step(&in, opt);
    CHECK(p[0] == 1 - 0.1 * 0.5 && p[1] == 2 + 0.1 * 0.25, "%.17g %.17g", p[0], p[1]);
    dsopt_optimizer_destroy(opt);
    rt_close(&in);
    dsopt_program_release(prog);
}

/* ---- hyperparameters ------------------------------------------------------------------------- */

static void hyperparameters(void)
{
    float a[3] = {0}, b[2] = {0}, ga[3] = {0}, gb[2] = {0};
    dsopt_tensor t[2] = {rt_tensor("a", "first", DSOPT_F32, a, ga, 1, (int64_t[]){3}),
                         rt_tensor("b", "second", DSOPT_F32, b, gb, 1, (int64_t[]){2})};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "lamb", NULL), t, 2);
    double v;
    CHECK(dsopt_get(o, NULL, "lr", &v) == DSOPT_OK && v == 1e-3, "default lr %g", v);
    CHECK(dsopt_set(o, "first", "lr", 0.5) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(dsopt_get(o, "first", "lamb.lr", &v) == DSOPT_OK && v == 0.5, "by full path %g", v);
    CHECK(dsopt_get(o, "second", "lr", &v) == DSOPT_OK && v == 1e-3, "the other group has %g", v);
    RT_FAILS(rt.ctx, dsopt_get(o, NULL, "lr", &v), DSOPT_INVALID_ARGUMENT,
             "differs between the groups 'first' and 'second'");
    CHECK(dsopt_set(o, NULL, "clip_global_norm.limit", 2) == DSOPT_OK, "%s",
          dsopt_error_message(rt.ctx));
    CHECK(dsopt_get(o, NULL, "limit", &v) == DSOPT_OK && v == 2, "by its last name %g", v);
    /* lamb.eps and lamb.clip_global_norm.eps: the rule's own goes first. */
    CHECK(dsopt_set(o, NULL, "eps", 1e-5) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(dsopt_get(o, NULL, "lamb.eps", &v) == DSOPT_OK && v == 1e-5, "%g", v);
    CHECK(dsopt_get(o, NULL, "clip_global_norm.eps", &v) == DSOPT_OK && v == 0, "%g", v);

    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "b3", 0.5), DSOPT_UNKNOWN_NAME,
             "'lamb' has no hyperparameter 'b3' (it has lr, b1, b2, eps, wd");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "lamb.limt", 1), DSOPT_UNKNOWN_NAME,
             "no hyperparameter 'lamb.limt'");
    RT_FAILS(rt.ctx, dsopt_set(o, "secnd", "lr", 1), DSOPT_UNKNOWN_NAME,
             "group 'secnd'; did you mean 'second'?");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "b1", 1), DSOPT_OUT_OF_RANGE,
             "lamb.b1 = 1 is outside of [0, 1)");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "b1", -0.1), DSOPT_OUT_OF_RANGE, "outside of [0, 1)");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "lr", NAN), DSOPT_OUT_OF_RANGE, "lamb.lr = NaN");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "lr", INFINITY), DSOPT_OUT_OF_RANGE, "outside of [0, inf)");
    CHECK(dsopt_get(o, NULL, "b1", &v) == DSOPT_OK && v == 0.9, "a refused value was stored: %g",
          v);
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, NULL, 1), DSOPT_INVALID_ARGUMENT, "path is NULL");
    RT_FAILS(rt.ctx, dsopt_get(o, NULL, "wd", NULL), DSOPT_INVALID_ARGUMENT, "value is NULL");

    rt.log[0] = 0;
    CHECK(dsopt_set(o, NULL, "eps", 1e-60) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(strstr(rt.log, "lamb.eps = 1e-60 becomes 0 in f32"), "log: %s", rt.log);
    rt.log[0] = 0;
    CHECK(dsopt_set(o, NULL, "eps", 0) == DSOPT_OK && !rt.log[0], "an exact 0 is no warning: %s",
          rt.log);

    dsopt_handle h;
    CHECK(dsopt_handle_find(o, "second", "lr", &h) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
    CHECK(dsopt_handle_set(o, h, 0.25) == DSOPT_OK && dsopt_handle_get(o, h, &v) == DSOPT_OK &&
              v == 0.25,
          "%g", v);
    CHECK(dsopt_get(o, "first", "lr", &v) == DSOPT_OK && v == 0.5, "%g", v);
    RT_FAILS(rt.ctx, dsopt_handle_set(o, h, -1), DSOPT_OUT_OF_RANGE, "lamb.lr = -1");
    RT_FAILS(rt.ctx, dsopt_handle_set(o, (dsopt_handle){9999, 0}, 1), DSOPT_INVALID_ARGUMENT,
             "handle");

    size_t n = dsopt_hyper_count(o), lrs = 0;
    CHECK(n % 2 == 0 && n >= 12, "%zu hyperparameters", n);
    for (size_t i = 0; i < n; i++) {
        dsopt_hyper_info info = {.size = sizeof info};
        CHECK(dsopt_hyper_info_read(o, i, &info) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
        if (strcmp(info.path, "lamb.lr") != 0) continue;
        lrs++;
        CHECK(info.is_set && info.value == (strcmp(info.group, "first") ? 0.25 : 0.5) &&
                  info.lo == 0 && info.hi == INFINITY && info.hi_open,
              "%s %s %g", info.path, info.group, info.value);
    }
    CHECK(lrs == 2, "%zu", lrs);
    RT_FAILS(rt.ctx,
             dsopt_hyper_info_read(o, n, &(dsopt_hyper_info){.size = sizeof(dsopt_hyper_info)}),
             DSOPT_INVALID_ARGUMENT, "no hyperparameter number");
    dsopt_optimizer_destroy(o);
}

static void global_and_unset(void)
{
    float p[1] = {1}, g[1] = {1};
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 0, NULL);
    dsopt_optimizer *o =
        rt_optimizer(&rt,
                     rt_text(&rt, "optimizer x {\n hyper lr in [0, inf)\n hyper k: global = 1 in "
                                  "(0, inf]\n p -= lr * g / k\n}\n"),
                     &t, 1);
    double v;
    RT_FAILS(rt.ctx, dsopt_get(o, NULL, "lr", &v), DSOPT_NOT_SET, "x.lr has no value yet");
    REQUIRE(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_NOT_SET,
             "x.lr has no default and was not set for group 'default'");
    CHECK(p[0] == 1, "%g", (double)p[0]);
    rt_set(&rt, o, NULL, "lr", 0.5);
    CHECK(dsopt_step(o) == DSOPT_OK && p[0] == 0.5f,
          "the gradients announced before are used: %s, p %g", dsopt_error_message(rt.ctx),
          (double)p[0]);
    RT_FAILS(rt.ctx, dsopt_set(o, "default", "k", 2), DSOPT_INVALID_ARGUMENT,
             "'x.k' has one value for all groups");
    RT_FAILS(rt.ctx, dsopt_set(o, NULL, "k", 0), DSOPT_OUT_OF_RANGE,
             "x.k = 0 is outside of (0, inf]");
    CHECK(dsopt_set(o, NULL, "k", INFINITY) == DSOPT_OK, "a closed infinite bound admits it: %s",
          dsopt_error_message(rt.ctx));
    rt_step(&rt, o);
    CHECK(p[0] == 0.5f, "%g", (double)p[0]);
    dsopt_optimizer_destroy(o);
}

/* Defaults that use others: what the next step uses, until a value is set. */
static void following(void)
{
    float p[2] = {0}, g[2] = {1, 1};
    dsopt_tensor t[2] = {rt_tensor("a", "x", DSOPT_F32, p, g, 1, (int64_t[]){1}),
                         rt_tensor("b", "y", DSOPT_F32, p + 1, g + 1, 1, (int64_t[]){1})};
    dsopt_optimizer *o = rt_optimizer(
        &rt,
        rt_text(&rt, "schedule fall(top, n) = s < n ? top * exp(-s / n) : 0\n"
                     "optimizer x {\n hyper lr = fall(0.5, n = 3), wd = lr / 10, base, k = base + 1\n"
                     " hyper many: global = count[all](base > 0)\n"
                     " rate = lr + wd\n export rate\n p -= rate * g * k * many\n}\n"),
        t, 2);
    double v, rates[2];
    RT_FAILS(rt.ctx, dsopt_get(o, NULL, "k", &v), DSOPT_NOT_SET,
             "x.base has no value yet, which is needed for x.k");
    RT_FAILS(rt.ctx, dsopt_get(o, NULL, "many", &v), DSOPT_NOT_SET, "known only inside of a step");
    rt_set(&rt, o, NULL, "base", 2);
    CHECK(dsopt_get(o, NULL, "k", &v) == DSOPT_OK && v == 3, "%g", v);
    rt_set(&rt, o, "y", "lr.top", 0.25);
    RT_FAILS(rt.ctx, dsopt_get(o, NULL, "lr", &v), DSOPT_INVALID_ARGUMENT, "differs between");
    for (int s = 0; s < 5; s++) {
        double lr[2], wd[2];
        for (int k = 0; k < 2; k++)
            CHECK(dsopt_get(o, k ? "y" : "x", "lr", &lr[k]) == DSOPT_OK &&
                      dsopt_get(o, k ? "y" : "x", "wd", &wd[k]) == DSOPT_OK,
                  "%s", dsopt_error_message(rt.ctx));
        rt_step(&rt, o);
        REQUIRE(dsopt_export_read(o, 0, rates, 2) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
        for (int k = 0; k < 2; k++)
            CHECK(rates[k] == lr[k] + wd[k], "step %d: %a and %a, a step has %a", s, lr[k], wd[k],
                  rates[k]);
        CHECK((lr[0] == 0) == (s >= 3) && lr[0] == 2 * lr[1], "%g %g", lr[0], lr[1]);
    }
    for (size_t i = 0; i < dsopt_hyper_count(o); i++) {
        dsopt_hyper_info info = {.size = sizeof info};
        CHECK(dsopt_hyper_info_read(o, i, &info) == DSOPT_OK, "%s", dsopt_error_message(rt.ctx));
        if (!strcmp(info.path, "x.k")) CHECK(!info.is_set && info.value == 3, "%g", info.value);
        if (!strcmp(info.path, "x.many")) CHECK(!info.is_set && isnan(info.value), "%g", info.value);
    }
    rt_set(&rt, o, NULL, "lr", 0.75);
    CHECK(dsopt_get(o, NULL, "lr", &v) == DSOPT_OK && v == 0.75, "set: %g", v);
    CHECK(dsopt_get(o, "y", "wd", &v) == DSOPT_OK && v == 0.75 / 10, "follows what was set: %g", v);
    dsopt_optimizer_destroy(o);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Setting what follows a schedule is told, once in each group. */
static void schedule_replaced(void)
{
    Rt rt;
    float p[2] = {0, 0}, g[2] = {1, 1};
    rt_open(&rt, 1);
    dsopt_program *prog = rt_text(&rt, "schedule ramp(peak, n = 4) = peak * (s + 1) / n\n"
                                       "optimizer x {\n  hyper lr = ramp(2), half = lr / 2\n"
                                       "  p -= lr * g + half\n}\n");
    dsopt_tensor t[2] = {rt_tensor("a", "one", DSOPT_F32, &p[0], &g[0], 1, (int64_t[]){1}),
                         rt_tensor("b", "two", DSOPT_F32, &p[1], &g[1], 1, (int64_t[]){1})};
    dsopt_optimizer *o = rt_optimizer(&rt, prog, t, 2);
    CHECK(dsopt_set(o, "two", "lr.peak", 8) == DSOPT_OK && dsopt_set(o, NULL, "half", 1) == DSOPT_OK &&
              !rt.log[0],
          "what is no schedule is not told: %s", rt.log);
    CHECK(dsopt_set(o, "one", "lr", 3) == DSOPT_OK &&
              !strcmp(rt.log, "x.lr = 3 replaces its schedule in group 'one'\n"),
          "log: %s", rt.log);
    rt_step(&rt, o);
    CHECK(p[0] == -4 && p[1] == -3, "step: %g %g", (double)p[0], (double)p[1]);
    rt.log[0] = 0;
    CHECK(dsopt_set(o, "one", "lr", 4) == DSOPT_OK && !rt.log[0], "twice: %s", rt.log);
    CHECK(dsopt_set(o, NULL, "lr.peak", 8) == DSOPT_OK && dsopt_set(o, NULL, "half", 1) == DSOPT_OK &&
              !rt.log[0],
          "in one group it has an effect: %s", rt.log);
    CHECK(dsopt_set(o, "one", "lr.peak", 6) == DSOPT_OK &&
              !strcmp(rt.log, "x.lr.peak = 6 has no effect in group 'one': x.lr was set, and follows "
                              "its schedule no longer\n"),
          "log: %s", rt.log);
    rt.log[0] = 0;
    CHECK(dsopt_set(o, NULL, "lr", 5) == DSOPT_OK &&
              !strcmp(rt.log, "x.lr = 5 replaces its schedule\n"),
          "log: %s", rt.log);
    rt.log[0] = 0;
    CHECK(dsopt_set(o, NULL, "lr.peak", 7) == DSOPT_OK &&
              !strcmp(rt.log, "x.lr.peak = 7 has no effect: x.lr was set, and follows its schedule "
                              "no longer\n"),
          "log: %s", rt.log);
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

static void steps(void)
{
    float p[2] = {1, 2}, g[2] = {1, 1};
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2});
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), &t, 1);
    dsopt_report r = {.size = sizeof r};
    CHECK(dsopt_report_read(o, &r, DSOPT_LATEST) == DSOPT_OK && r.result == DSOPT_STEP_NONE &&
              r.step == 0,
          "%d", (int)r.result);
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_NO_NEW_GRADS, "dsopt_accumulate");
    CHECK(p[0] == 1 && p[1] == 2 && rt_state(&rt, o, "w", "t") == 0, "something moved");
    r = rt_step(&rt, o);
    CHECK(r.result == DSOPT_STEP_APPLIED && r.step == 1 && r.micro == 1 && r.tensors == 1 &&
              r.loss_scale == 1 && r.divisor == 1 && r.bad_tensor == -1 && r.bad_index == -1 &&
              isnan(r.grad_norm) && !r.reason[0],
          "%s %lld", dsopt_result_name(r.result), (long long)r.step);
    float p0 = p[0];
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_NO_NEW_GRADS, "dsopt_accumulate");
    CHECK(dsopt_report_read(o, &r, DSOPT_WAIT) == DSOPT_OK && r.result == DSOPT_STEP_NO_NEW_GRADS &&
              r.step == 1 && r.reason[0],
          "%s", dsopt_result_name(r.result));
    CHECK(p[0] == p0 && rt_state(&rt, o, "w", "t") == 1 && rt_state(&rt, o, NULL, "s") == 1,
          "a step without gradients moved");

    RT_FAILS(rt.ctx, dsopt_accumulate(o, 65536), DSOPT_SCALE_MISMATCH, "scale 65536");
    RT_FAILS(rt.ctx, dsopt_accumulate(o, NAN), DSOPT_SCALE_MISMATCH, "scale");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_NO_NEW_GRADS, "dsopt_accumulate");
    CHECK(dsopt_bind_gradient(o, 0, NULL) == DSOPT_OK, "unbind");
    RT_FAILS(rt.ctx, dsopt_step(o), DSOPT_NO_NEW_GRADS,
             "dsopt_accumulate"); /* binding marks no generation */
    r = rt_step(&rt, o);
    CHECK(r.result == DSOPT_STEP_NO_GRADS && r.step == 1 && r.tensors == 0 && p[0] == p0, "%s",
          dsopt_result_name(r.result));
    CHECK(dsopt_bind_gradient(o, 0, g) == DSOPT_OK, "bind");
    rt_set(&rt, o, NULL, "lr", 0);
    r = rt_step(&rt, o);
    CHECK(r.result == DSOPT_STEP_LR_ZERO && r.step == 2 && p[0] == p0 && r.reason[0], "%s",
          dsopt_result_name(r.result));
    CHECK(rt_state(&rt, o, "w", "t") == 2, "applied all the same");
    RT_FAILS(rt.ctx, dsopt_report_read(o, &r, 7), DSOPT_INVALID_ARGUMENT, "mode");
    RT_FAILS(rt.ctx, dsopt_report_read(o, NULL, DSOPT_LATEST), DSOPT_INVALID_ARGUMENT,
             "report is NULL");
    r.size = 4;
    RT_FAILS(rt.ctx, dsopt_report_read(o, &r, DSOPT_LATEST), DSOPT_VERSION_MISMATCH,
             "dsopt_report.size is 4");
    CHECK(dsopt_step(NULL) == DSOPT_INVALID_ARGUMENT &&
              dsopt_accumulate(NULL, 1) == DSOPT_INVALID_ARGUMENT,
          "NULL");
    dsopt_optimizer_destroy(o);
}

static void watchdog(void)
{
    float p[1] = {1}, g[1] = {1};
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 0, NULL);
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "sgd", NULL), &t, 1);
    rt.log[0] = 0;
    rt.lines = 0;
    for (int i = 0; i < 2; i++) CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    CHECK(rt.lines == 0, "too early: %s", rt.log);
    for (int i = 0; i < 5; i++) CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    CHECK(rt.lines == 1 && strstr(rt.log, "'sgd' is not updating: 2 generations") &&
              strstr(rt.log, "dsopt_step was not called"),
          "%s", rt.log);
    CHECK(dsopt_step(o) == DSOPT_OK, "step");
    dsopt_report r = {.size = sizeof r};
    CHECK(dsopt_report_read(o, &r, DSOPT_LATEST) == DSOPT_OK && r.micro == 7 &&
              r.result == DSOPT_STEP_APPLIED,
          "%lld", (long long)r.micro);
    CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    rt.log[0] = 0;
    dsopt_optimizer_destroy(o);
    CHECK(strstr(rt.log, "destroyed with gradients that no step has used"), "%s", rt.log);
}

/* A step that was called and failed is told as such, one that was not called after it as before. */
static void watchdog_of_failed_steps(void)
{
    Rt rt;
    float p[1] = {1}, g[1] = {1};
    rt_open(&rt, 1);
    dsopt_program *prog = rt_text(&rt, "optimizer x {\n  hyper lr\n  p -= lr * g\n}\n");
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 0, NULL);
    dsopt_optimizer *o = rt_optimizer(&rt, prog, &t, 1);
    for (int i = 0; i < 3; i++)
        CHECK(dsopt_accumulate(o, 1) == DSOPT_OK && dsopt_step(o) == DSOPT_NOT_SET, "not set");
    CHECK(strstr(rt.log, "without an applied step (dsopt_step failed: x.lr has no default"), "%s",
          rt.log);
    rt.log[0] = 0;
    rt_set(&rt, o, NULL, "lr", 1);
    CHECK(dsopt_step(o) == DSOPT_OK && dsopt_step(o) == DSOPT_NO_NEW_GRADS, "%s",
          dsopt_error_message(rt.ctx));
    for (int i = 0; i < 3; i++) CHECK(dsopt_accumulate(o, 1) == DSOPT_OK, "accumulate");
    CHECK(strstr(rt.log, "(dsopt_step was not called since)"), "%s", rt.log);
    dsopt_optimizer_destroy(o);
    rt_close(&rt);
}

static void exports(void)
{
    float p[2] = {1, 2}, g[2] = {3, 4};
    dsopt_tensor t = rt_tensor("w", NULL, DSOPT_F32, p, g, 1, (int64_t[]){2});
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "lamb", NULL), &t, 1);
    double v = 0;
    CHECK(dsopt_report_export(o, "grad_norm", &v) == DSOPT_OK && isnan(v),
          "before the first step: %g", v);
    dsopt_report r = rt_step(&rt, o);
    CHECK(r.grad_norm == 5, "%g", r.grad_norm);
    CHECK(dsopt_report_export(o, "grad_norm", &v) == DSOPT_OK && v == 5, "%g", v);
    RT_FAILS(rt.ctx, dsopt_report_export(o, "gradnorm", &v), DSOPT_UNKNOWN_NAME,
             "did you mean 'grad_norm'?");
    dsopt_export_info e = {.size = sizeof e};
    CHECK(dsopt_export_count(o) == 1 && dsopt_export_info_read(o, 0, &e) == DSOPT_OK &&
              strcmp(e.name, "grad_norm") == 0 && e.count == 1,
          "%s", e.name);
    CHECK(dsopt_export_read(o, 0, &v, 1) == DSOPT_OK && v == 5, "%g", v);
    RT_FAILS(rt.ctx, dsopt_export_read(o, 0, &v, 2), DSOPT_INVALID_ARGUMENT, "has 1 values, not 2");
    RT_FAILS(rt.ctx, dsopt_export_read(o, 0, NULL, 1), DSOPT_INVALID_ARGUMENT, "values is NULL");
    RT_FAILS(rt.ctx, dsopt_export_read(o, 1, &v, 1), DSOPT_INVALID_ARGUMENT, "no export number 1");
    dsopt_optimizer_destroy(o);
}

/* ---- states ---------------------------------------------------------------------------------- */

static dsopt_optimizer *adamw(float *a, float *b, float *ga, float *gb)
{
    dsopt_tensor t[3] = {rt_tensor("a", NULL, DSOPT_F32, a, ga, 1, (int64_t[]){5}),
                         rt_tensor("none", NULL, DSOPT_F32, NULL, NULL, 1, (int64_t[]){0}),
                         rt_tensor("b", "other", DSOPT_F32, b, gb, 2, (int64_t[]){2, 2})};
    return rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), t, 3);
}

static void states(void)
{
    float a[5] = {1, 2, 3, 4, 5}, b[4] = {1, 2, 3, 4}, ga[5] = {1, -1, 0.5f, 2, 0},
          gb[4] = {1, 1, 1, 1};
    dsopt_optimizer *o = adamw(a, b, ga, gb);
    for (int i = 0; i < 3; i++) rt_step(&rt, o);
    size_t n = dsopt_state_count(o), i;
    CHECK(n == 10, "3 tensors with m, v and t, and s: %zu", n);
    dsopt_state_info info = {.size = sizeof info};
    CHECK(dsopt_state_find(o, "b", "m", &i) == DSOPT_OK &&
              dsopt_state_info_read(o, i, &info) == DSOPT_OK,
          "%s", dsopt_error_message(rt.ctx));
    CHECK(strcmp(info.path, "other.adamw.m") == 0 && strcmp(info.name, "m") == 0 &&
              strcmp(info.rate, "element") == 0 && info.tensor == 2 &&
              strcmp(info.group, "other") == 0 && info.dtype == DSOPT_F32 && info.count == 4,
          "%s %s %s %lld", info.path, info.name, info.rate, (long long)info.count);
    size_t same;
    CHECK(dsopt_state_find(o, "b", "other.adamw.m", &same) == DSOPT_OK && same == i, "by path");
    CHECK(dsopt_state_find(o, "b", "adamw.m", &same) == DSOPT_OK && same == i,
          "by path without group");
    RT_FAILS(rt.ctx, dsopt_state_find(o, "b", "mm", &i), DSOPT_UNKNOWN_NAME,
             "no state 'mm' of tensor 'b' (there are m, v, t)");
    RT_FAILS(rt.ctx, dsopt_state_find(o, "c", "m", &i), DSOPT_UNKNOWN_NAME, "no tensor named 'c'");
    RT_FAILS(rt.ctx, dsopt_state_find(o, NULL, "m", &i), DSOPT_UNKNOWN_NAME,
             "no state 'm' of groups or of all");
    CHECK(dsopt_state_find(o, NULL, "s", &i) == DSOPT_OK &&
              dsopt_state_info_read(o, i, &info) == DSOPT_OK && strcmp(info.path, "adamw.s") == 0 &&
              info.tensor == -1 && !info.group && info.dtype == DSOPT_F64,
          "%s", info.path);
    CHECK(rt_state(&rt, o, NULL, "s") == 3 && rt_state(&rt, o, "a", "t") == 3 &&
              rt_state(&rt, o, "none", "t") == 0,
          "clocks");
    CHECK(dsopt_state_find(o, "none", "m", &i) == DSOPT_OK &&
              dsopt_state_read(o, i, DSOPT_F32, NULL, 0) == DSOPT_OK,
          "empty");

    float m[5];
    CHECK(dsopt_state_find(o, "a", "m", &i) == DSOPT_OK &&
              dsopt_state_read(o, i, DSOPT_F32, m, 5) == DSOPT_OK,
          "read m");
    CHECK(m[0] != 0 && m[4] == 0, "%g %g", (double)m[0], (double)m[4]);
    RT_FAILS(rt.ctx, dsopt_state_read(o, i, DSOPT_F32, m, 4), DSOPT_INVALID_ARGUMENT,
             "has 5 values, not 4");
    RT_FAILS(rt.ctx, dsopt_state_read(o, i, DSOPT_F32, NULL, 5), DSOPT_INVALID_ARGUMENT,
             "values is NULL");
    RT_FAILS(rt.ctx, dsopt_state_read(o, i, (dsopt_dtype)9, m, 5), DSOPT_INVALID_ARGUMENT,
             "dtype 9");
    RT_FAILS(rt.ctx, dsopt_state_read(o, n, DSOPT_F32, m, 5), DSOPT_INVALID_ARGUMENT,
             "no state number 10");
    uint16_t half[5];
    CHECK(dsopt_state_read(o, i, DSOPT_BF16, half, 5) == DSOPT_OK && half[0] == rt_bf16(m[0]),
          "as bf16");
    CHECK(dsopt_state_find(o, "a", "t", &i) == DSOPT_OK, "t");
    RT_FAILS(rt.ctx, dsopt_state_write(o, i, DSOPT_F64, &(double){1.5}, 1), DSOPT_OUT_OF_RANGE,
             "default.adamw.t = 1.5");
    RT_FAILS(rt.ctx, dsopt_state_write(o, i, DSOPT_F64, &(double){-1}, 1), DSOPT_OUT_OF_RANGE,
             "it counts steps");
    dsopt_optimizer_destroy(o);
}

/* Everything read from one optimizer and written into a fresh one: the same bits from there on. */
static void states_travel(void)
{
    float a[2][5] = {{1, 2, 3, 4, 5}}, b[2][4] = {{1, 2, 3, 4}}, ga[2][5] = {{0}}, gb[2][4] = {{0}};
    dsopt_optimizer *o[2];
    o[0] = adamw(a[0], b[0], ga[0], gb[0]);
    uint64_t seed = 1;
    for (int step = 0; step < 8; step++) {
        if (step == 4) { /* b has missed a step: t differs between the tensors */
            memcpy(a[1], a[0], sizeof a[0]);
            memcpy(b[1], b[0], sizeof b[0]);
            o[1] = adamw(a[1], b[1], ga[1], gb[1]);
            for (size_t i = 0; i < dsopt_state_count(o[0]); i++) {
                double v[5];
                dsopt_state_info info = {.size = sizeof info};
                CHECK(dsopt_state_info_read(o[0], i, &info) == DSOPT_OK, "info");
                CHECK(dsopt_state_read(o[0], i, DSOPT_DTYPE_DEFAULT, v, info.count) == DSOPT_OK,
                      "read");
                CHECK(dsopt_state_write(o[1], i, DSOPT_DTYPE_DEFAULT, v, info.count) == DSOPT_OK,
                      "write");
            }
        }
        for (int i = 0; i < 5; i++) ga[0][i] = ga[1][i] = rt_random(&seed);
        for (int i = 0; i < 4; i++) gb[0][i] = gb[1][i] = rt_random(&seed);
        for (int k = 0; k < (step < 4 ? 1 : 2); k++) {
            CHECK(dsopt_bind_gradient(o[k], 2, step == 1 ? NULL : gb[k]) == DSOPT_OK, "bind");
            rt_step(&rt, o[k]);
        }
    }
    CHECK(rt_state(&rt, o[1], "a", "t") == 8 && rt_state(&rt, o[1], "b", "t") == 7 &&
              rt_state(&rt, o[1], NULL, "s") == 8,
          "clocks");
    CHECK(memcmp(a[0], a[1], sizeof a[0]) == 0 && memcmp(b[0], b[1], sizeof b[0]) == 0,
          "the trajectories part");
    for (int k = 0; k < 2; k++) dsopt_optimizer_destroy(o[k]);
}

/* Tensors of equal t share scalars, and a t set from outside is taken up. */
static void clocks_differ(void)
{
    float p[2][1] = {{1}, {1}}, g[1] = {0.5f};
    float q[1] = {1}, gq[1] = {0.5f};
    dsopt_tensor t[2] = {rt_tensor("x", NULL, DSOPT_F32, p[0], g, 0, NULL),
                         rt_tensor("y", NULL, DSOPT_F32, q, gq, 0, NULL)};
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "adamw", NULL), t, 2);
    size_t i;
    CHECK(dsopt_state_find(o, "y", "t", &i) == DSOPT_OK &&
              dsopt_state_write(o, i, DSOPT_F64, &(double){99}, 1) == DSOPT_OK,
          "t");
    rt_step(&rt, o);
    CHECK(rt_state(&rt, o, "x", "t") == 1 && rt_state(&rt, o, "y", "t") == 100, "clocks");
    CHECK(p[0][0] != q[0], "bias correction ignores t");
    dsopt_optimizer_destroy(o);
}

static void names_of_tensors(void)
{
    float p[1] = {1};
    dsopt_tensor t = rt_tensor("x", NULL, DSOPT_F32, p, NULL, 0, NULL);
    dsopt_optimizer *o = rt_optimizer(&rt, rt_program(&rt, "sgd", NULL), &t, 1);
    size_t i = 9;
    CHECK(dsopt_tensor_count(o) == 1 && strcmp(dsopt_tensor_name(o, 0), "x") == 0 &&
              !dsopt_tensor_name(o, 1),
          "names");
    CHECK(dsopt_tensor_find(o, "x", &i) == DSOPT_OK && i == 0, "%zu", i);
    RT_FAILS(rt.ctx, dsopt_tensor_find(o, "X", &i), DSOPT_UNKNOWN_NAME, "no tensor named 'X'");
    dsopt_optimizer_destroy(o);
}

int main(void)
{
    rt_open(&rt, 1);
    contexts();
    programs();
    oracle();
    hyperparameters();
    global_and_unset();
    following();
    schedule_replaced();
    steps();
    watchdog();
    watchdog_of_failed_steps();
    exports();
    states();
    states_travel();
    clocks_differ();
    names_of_tensors();
    rt_close(&rt);
    return check_done();
}
