/* The embedded texts are the files of stdlib/, codegen/text/ and codegen/math/, byte by byte.
 *
 *   in:  the source tree and the tables of frontend/embed.h
 *   out: a failed check for a file that is missing in a table, differs, or is not there any more */
#include "frontend/embed.h"
#include "tests/check.h"

#include <glob.h>

static void compare(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(length + 2);
    size_t got;

    REQUIRE(file && bytes, "%s", path);
    got = fread(bytes, 1, length + 2, file);
    CHECK(got == length && memcmp(bytes, text, length) == 0, "%s differs from what is embedded",
          path);
    CHECK(text[length] == '\0', "%s: no NUL behind the text", path);
    fclose(file);
    free(bytes);
}

/* Every file of the pattern is in the table and the table has no more than those. */
static size_t compare_folder(const char *pattern, const EmbeddedFile *table, size_t count)
{
    char path[4096];
    size_t files;
    glob_t found;

    snprintf(path, sizeof path, "%s/%s", DSOPT_SOURCE_DIR, pattern);
    if (glob(path, 0, NULL, &found) != 0) found.gl_pathc = 0;
    files = found.gl_pathc;
    CHECK(files == count, "%s: %zu files, %zu embedded", pattern, files, count);
    for (size_t i = 0; i < files && i < count; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        CHECK(strncmp(name, table[i].name, strlen(table[i].name)) == 0, "%s: %s", name,
              table[i].name);
        CHECK(embed_find(table, count, table[i].name) == &table[i], "%s", table[i].name);
        compare(found.gl_pathv[i], table[i].text, table[i].length);
    }
    CHECK(!embed_find(table, count, "no such name"), "found");
    if (files) globfree(&found);
    return files;
}

int main(void)
{
    CHECK(compare_folder("stdlib/*.opt", ds_stdlib, ds_stdlib_count) > 0, "no rule is embedded");
    compare_folder("codegen/text/*.h", ds_texts, ds_texts_count);
    compare(DSOPT_SOURCE_DIR "/codegen/math/ds_math.h", ds_math_text, ds_math_length);
    return check_done();
}
