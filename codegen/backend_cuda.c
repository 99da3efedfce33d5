/* backend_cuda.c - CUDA text through NVRTC to PTX or cubin.
 *
 * Requires: for build, libnvrtc (opened at run time, nvrtc.h); no GPU and no driver. Ensures: the
 * project's meaning of arithmetic (--fmad=false --prec-div=true --prec-sqrt=true --ftz=false), no
 * warnings; PTX begins with the comment that tells how to launch it; on failure `why` says what is
 * missing or wrong.
 *
 *     cuda_build(&plan, 1, storage, "compute_75", false, &ptx, &why)
 *     ->  .version 9.0 … .visible .entry adamw_k0(
 */
#include "emit_cuda.h"
#include "nvrtc.h"
#include <string.h>

static bool cuda_probe(const BackendOptions *o, StrBuf *why)
{
    char text[512];
    (void)o;
    if (nvrtc_probe(text, sizeof text)) return true;
    sb_puts(why, text);
    return false;
}

static bool cuda_emit(const Plan *p, const Variant *v, const BackendOptions *o, StrBuf *out)
{
    (void)o;
    return emit_cuda(&p, 1, v->storage, out);
}

bool cuda_build(const Plan *const *plans, size_t n, const DType *storage, const char *arch,
                bool cubin, StrBuf *out, StrBuf *why)
{
    StrBuf text = {.arena = out->arena};
    if (!emit_cuda(plans, n, storage, &text)) {
        sb_puts(
            why,
            "CUDA text computes in f32: a module of 'compute f64' is for the interpreter alone");
        return false;
    }
    NvrtcResult r;
    const char *name = arena_printf(out->arena, "%s.cu", emit_module_name(out->arena, plans[0]));
    bool ok = nvrtc_compile(text.text, name, arch ? arch : "compute_75",
                            cubin ? NVRTC_CUBIN : NVRTC_PTX, NULL, 0, &r);
    for (size_t i = 0; ok && !cubin && i < n; i++) {
        CudaModule m = cuda_module(out->arena, plans[i], storage);
        emit_cuda_comment(out, &m, " * ");
    }
    if (ok) sb_putn(out, r.data, r.size);
    if (r.log) sb_puts(why, r.log);
    nvrtc_result_free(&r);
    return ok;
}

const Backend backend_cuda = {
    .name = "cuda",
    .what = "CUDA C++ through NVRTC, to PTX or cubin",
    .probe = cuda_probe,
    .emit = cuda_emit,
};
