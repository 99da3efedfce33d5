/* driver.c - a fuzz target without a fuzzer: runs it on files, and on all files of folders.
 *
 *   in:  fuzz_source corpus/source corpus/found/x.opt
 *   out: "412 inputs"; a target that finds something ends the process
 */
#include "target.h"
#include "tests/check.h"
#include <dirent.h>
#include <sys/stat.h>

static unsigned ninputs;

static void run_path(const char *path)
{
    struct stat is;
    REQUIRE(stat(path, &is) == 0, "cannot find %s", path);
    if (S_ISDIR(is.st_mode)) {
        struct dirent **list;
        int n = scandir(path, &list, NULL, alphasort);
        REQUIRE(n >= 0, "cannot read %s", path);
        for (int i = 0; i < n; i++) {
            char at[4096];
            snprintf(at, sizeof at, "%s/%s", path, list[i]->d_name);
            if (list[i]->d_name[0] != '.') run_path(at);
            free(list[i]);
        }
        free(list);
        return;
    }
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = malloc((size_t)is.st_size + 1);
    REQUIRE(f && bytes, "cannot read %s", path);
    size_t n = fread(bytes, 1, (size_t)is.st_size, f);
    fclose(f);
    fprintf(stderr, "%s\n", path); /* the last line names what a crash was about */
    LLVMFuzzerTestOneInput(bytes, n);
    free(bytes);
    ninputs++;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) run_path(argv[i]);
    CHECK(ninputs > 0, "no inputs");
    printf("%u inputs\n", ninputs);
    return check_done();
}
