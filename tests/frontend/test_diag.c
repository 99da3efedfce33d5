/* Messages as text and as JSON, suggestions, places, options; and numbers and rates as text. */
#include "support.h"
#include <locale.h>
#include <math.h>

static void equal(const char *what, const char *got, const char *want)
{
    CHECK(got && strcmp(got, want) == 0, "%s:\n%s\nexpected:\n%s", what, got ? got : "(null)",
          want);
}

/* Renders one UNEXPECTED "x" at the part of the text between « and » (which are taken out). */
static char *render_marked(Session *s, const char *marked, bool json)
{
    session_open(s);
    const char *open = strstr(marked, "«"), *close = strstr(marked, "»");
    StrBuf text = {.arena = &s->arena};
    sb_putn(&text, marked, (size_t)(open - marked));
    sb_putn(&text, open + 2, (size_t)(close - open - 2));
    sb_puts(&text, close + 2);
    session_text(s, "a.opt", text.text, text.len);
    Span at = {(uint32_t)(open - marked) + 1, (uint32_t)(close - 2 - marked) + 1};
    diag_report(&s->diags, DIAG_UNEXPECTED, at, "x", "");
    if (json)
        diag_render_json(&s->diags, &s->out);
    else
        diag_render(&s->diags, &s->out, false);
    return s->out.text;
}

static void test_excerpts(void)
{
    static const struct {
        const char *what, *text, *shown;
    } cases[] = {
        {"a word", "m := g\n  v := «beta» + 1\n",
         "a.opt:2:8: error: unexpected x [E020]\n 2 |   v := beta + 1\n   |        ^~~~\n"},
        {"tabs", "\t\tv\t:= «b»\n",
         "a.opt:1:8: error: unexpected x [E020]\n 1 |         v   := b\n   |                ^\n"},
        {"the end of a line", "v := «\n»w := 1\n",
         "a.opt:1:6: error: unexpected x [E020]\n 1 | v := \n   |      ^\n"},
        {"the end of the file", "v := 1«»",
         "a.opt:1:7: error: unexpected x [E020]\n 1 | v := 1\n   |       ^\n"},
        {"letters of several bytes", "# übung\nß «é»\n",
         "a.opt:2:4: error: unexpected x [E020]\n 2 | ß é\n   |   ^\n"},
        {"bytes that are no text", "a \x80\x01 «b»\n",
         "a.opt:1:6: error: unexpected x [E020]\n 1 | a ?? b\n   |      ^\n"},
        {"two lines", "a «b c\n  d e» f\n",
         "a.opt:1:3: error: unexpected x [E020]\n 1 | a b c\n   |   ^~~\n 2 |   d e f\n   |   "
         "~~~\n"},
        {"more lines", "a «b\nc\nd\n  e» f\n",
         "a.opt:1:3: error: unexpected x [E020]\n 1 | a b\n   |   ^\n   | …\n 4 |   e f\n   |   "
         "~\n"},
        {"carriage returns", "a «b»\r\nc\r\n",
         "a.opt:1:3: error: unexpected x [E020]\n 1 | a b\n   |   ^\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Session s;
        equal(cases[i].what, render_marked(&s, cases[i].text, false), cases[i].shown);
        session_close(&s);
    }
    Session s; /* a long line shows what is around the mark */
    char text[1400];
    memset(text, 'a', sizeof text);
    memcpy(text + 700, "«bcd»", 7);
    text[sizeof text - 1] = 0;
    char *shown = render_marked(&s, text, false), *line = strchr(shown, '\n') + 1,
         *marks = strchr(line, '\n') + 1;
    CHECK(strstr(line, "…aaa") && strstr(line, "abcda") && marks - line < 130, "%s", shown);
    char *caret = strchr(marks, '^');
    CHECK(caret && strncmp(caret, "^~~\n", 4) == 0, "%s", shown);
    /* "…" is three bytes and one column */
    CHECK(caret && strncmp(line + (caret - marks) + 2, "bcd", 3) == 0, "%s", shown);
    session_close(&s);
}

static void test_notes_and_order(void)
{
    Session s;
    session_open(&s);
    session_text(&s, "one.opt", "a\nb\n", 4);
    session_text(&s, "two.opt", "c\n", 2);
    diag_note(&s.diags, diag_report(&s.diags, DIAG_REDEFINED, (Span){6, 7}, "c"), (Span){3, 4},
              "first %s", "here");
    diag_hint(&s.diags, diag_report(&s.diags, DIAG_HYPER_UNUSED, (Span){1, 2}, "a"), "take it %s",
              "out");
    diag_report(&s.diags, DIAG_REDEFINED, (Span){6, 7}, "again");
    diag_report(&s.diags, DIAG_FILE_EMPTY, (Span){0, 0}, "x.opt");
    diag_render(&s.diags, &s.out, false);
    equal("notes", s.out.text,
          "error: 'x.opt' is empty [E004]\n"
          "one.opt:1:1: warning: hyperparameter 'a' is never used [W102, -Wunused-hyper]\n 1 | a\n "
          "  | ^\n  hint: take it out\n"
          "two.opt:1:1: error: 'c' is defined twice [E045]\n 1 | c\n   | ^\n"
          "one.opt:2:1: note: first here\n 2 | b\n   | ^\n");
    s.out.len = 0;
    diag_render_json(&s.diags, &s.out);
    equal("JSON", s.out.text,
          "[{\"kind\": \"error\", \"message\": \"'x.opt' is empty\", \"code\": \"E004\", "
          "\"column-origin\": 1, \"locations\": [], "
          "\"children\": []},\n"
          " {\"kind\": \"warning\", \"message\": \"hyperparameter 'a' is never used\", \"code\": "
          "\"W102\", \"option\": \"-Wunused-hyper\", "
          "\"column-origin\": 1, \"locations\": [{\"caret\": {\"file\": \"one.opt\", \"line\": 1, "
          "\"column\": 1, \"byte-column\": 1}, "
          "\"finish\": {\"file\": \"one.opt\", \"line\": 1, \"column\": 1, \"byte-column\": 1}}], "
          "\"children\": [{\"kind\": \"note\", "
          "\"message\": \"take it out\", \"locations\": []}]},\n"
          " {\"kind\": \"error\", \"message\": \"'c' is defined twice\", \"code\": \"E045\", "
          "\"column-origin\": 1, \"locations\": [{\"caret\": "
          "{\"file\": \"two.opt\", \"line\": 1, \"column\": 1, \"byte-column\": 1}, \"finish\": "
          "{\"file\": \"two.opt\", \"line\": 1, "
          "\"column\": 1, \"byte-column\": 1}}], \"children\": [{\"kind\": \"note\", \"message\": "
          "\"first here\", \"locations\": [{\"caret\": "
          "{\"file\": \"one.opt\", \"line\": 2, \"column\": 1, \"byte-column\": 1}, \"finish\": "
          "{\"file\": \"one.opt\", \"line\": 2, "
          "\"column\": 1, \"byte-column\": 1}}]}]}]\n");
    session_close(&s);
}

static void test_warnings(void)
{
    Session s;
    session_open(&s);
    CHECK(!diag_set_warning(&s.diags, "no-such-warning", false), "an unknown warning");
    CHECK(!diag_set_warning(&s.diags, "", false), "errors have no name");
    CHECK(diag_set_warning(&s.diags, "unused-hyper", false), "unused-hyper");
    diag_report(&s.diags, DIAG_HYPER_UNUSED, (Span){0, 0}, "a");
    CHECK(s.diags.n == 0 && s.diags.nwarnings == 0, "a warning that is off");
    CHECK(diag_set_warning(&s.diags, "unused-hyper", true), "unused-hyper");
    diag_report(&s.diags, DIAG_HYPER_UNUSED, (Span){0, 0}, "a");
    CHECK(s.diags.nwarnings == 1 && s.diags.nerrors == 0, "a warning");
    s.diags.werror = true;
    diag_report(&s.diags, DIAG_HYPER_UNUSED, (Span){0, 0}, "b");
    CHECK(s.diags.nerrors == 1, "-Werror");
    diag_render(&s.diags, &s.out, false);
    CHECK(strstr(s.out.text, "[W102, -Werror=unused-hyper]") != NULL, "%s", s.out.text);
    session_close(&s);
}

static void test_suggestions(void)
{
    static const char *const names[] = {"beta1", "beta2",        "lr",  "m",
                                        "V",     "weight_decay", "eps", "wd"};
    static const struct {
        const char *word, *want;
    } cases[] = {
        {"betta1", "beta1"},
        {"beat1", "beta1"},
        {"bate1", NULL},
        {"weigth_decay", "weight_decay"},
        {"weight_deca", "weight_decay"},
        {"LR", "lr"},
        {"v", "V"},
        {"M", "m"},
        {"n", NULL},
        {"x", NULL},
        {"ll", NULL},
        {"lrr", "lr"},
        {"ep", "eps"},
        {"momentum", NULL},
        {"", NULL},
        {"q1", NULL},
        {"beta1", "beta2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = diag_suggest(cases[i].word, names, sizeof names / sizeof *names),
                   *want = cases[i].want;
        CHECK(got == want || (got && want && strcmp(got, want) == 0), "'%s' suggests %s",
              cases[i].word, got ? got : "nothing");
    }
}

static void test_sources(void)
{
    Session s;
    session_open(&s);
    const char *name;
    int line, col;
    CHECK(session_text(&s, "a", "x\ny", 3) == 0 && session_text(&s, "b", "", 0) == 1 &&
              session_text(&s, "c", "z", 1) == 2,
          "indices");
    source_position(&s.sources, 4, &name, &line, &col); /* behind the last character of a */
    CHECK(strcmp(name, "a") == 0 && line == 2 && col == 2, "%s:%d:%d", name, line, col);
    source_position(&s.sources, 6, &name, &line, &col);
    CHECK(strcmp(name, "c") == 0 && line == 1 && col == 1, "%s:%d:%d", name, line, col);
    source_position(&s.sources, 0, &name, &line, &col);
    CHECK(strcmp(name, "?") == 0, "%s", name);
    char *large = calloc(1, 16 << 20);
    REQUIRE(large != NULL, "no memory");
    CHECK(session_text(&s, "d", large, 16 << 20) == -1, "more than 16 MiB together");
    CHECK(session_text(&s, "d", large, (16 << 20) - 4) == 3, "16 MiB together");
    CHECK(session_text(&s, "e", "x", 1) == -1, "one byte more");
    free(large);
    session_close(&s);
}

static void test_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{1e-3, "0.001"},
                 {0.1, "0.1"},
                 {1, "1"},
                 {-2000, "-2000"},
                 {1e15, "1e+15"},
                 {1e300, "1e+300"},
                 {5e-324, "5e-324"},
                 {1.0 / 3, "0.3333333333333333"},
                 {INFINITY, "inf"},
                 {-0.0, "-0"},
                 {123456789.5, "123456789.5"}};
    char text[32];
    int error;
    bool comma = setlocale(LC_NUMERIC, "de_DE.UTF-8") != NULL; /* where it is installed */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        equal("a number", number_format(text, cases[i].value), cases[i].text);
        CHECK(number_parse(cases[i].text, NULL, &error) == cases[i].value && !error,
              "%s (comma: %d)", cases[i].text, comma);
    }
    setlocale(LC_NUMERIC, "C");
    equal("a number of f32", number_format_f32(text, 0.1f), "0.1");
    equal("a number of f32", number_format_f32(text, 0x1.fffffep127f), "3.4028235e+38");
    const char *end;
    CHECK(number_parse("0.5x", &end, &error) == 0.5 && *end == 'x', "what was not read: %s", end);
    number_parse("1e999", NULL, &error);
    CHECK(error == 1, "too large: %d", error);
    number_parse("1e-999", NULL, &error);
    CHECK(error == -1, "too small: %d", error);
    CHECK(number_parse("1e-310", NULL, &error) == 1e-310 && !error, "a subnormal number");
}

static void test_types(void)
{
    Rate rate;
    DType type;
    static const Rate rates[] = {RATE_GLOBAL, RATE_GROUP, RATE_TENSOR, RATE_MATRIX,
                                 RATE_ROW,    RATE_COL,   RATE_BLOCK,  RATE_ELEMENT};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        CHECK(rate_parse(rate_name(rates[i]), &rate) && rate == rates[i], "%s",
              rate_name(rates[i]));
    CHECK(rate_join(RATE_ROW, RATE_COL) == RATE_ELEMENT &&
              rate_join(RATE_BLOCK, RATE_MATRIX) == RATE_ELEMENT &&
              rate_join(RATE_BLOCK, RATE_TENSOR) == RATE_BLOCK,
          "joins");
    CHECK(!rate_parse("rows", &rate) && !rate_parse("", &rate), "unknown rates");
    for (int d = 0; d < DT_COUNT; d++)
        CHECK(dtype_parse(dtype_name((DType)d), &type) && (int)type == d && dtype_size(type) > 0,
              "type %d", d);
    CHECK(!dtype_parse("f8", &type), "an unknown type");
    for (int op = 0; op < OP_COUNT_; op++) {
        CHECK(op_by_name(op_info[op].name, strlen(op_info[op].name)) == op, "%s", op_info[op].name);
        size_t n = strlen(op_info[op].spelling);
        CHECK(n == 0 || op_by_spelling(op_info[op].spelling, n) == op, "%s", op_info[op].name);
        CHECK(op_info[op].arity >= 1 && op_info[op].arity <= 3, "%s", op_info[op].name);
    }
    for (int r = 0; r < RED_COUNT_; r++)
        CHECK(reduce_by_name(reduce_info[r].name, strlen(reduce_info[r].name)) == r, "%s",
              reduce_info[r].name);
    CHECK(op_by_spelling("", 0) == -1 && op_by_name("nothing", 7) == -1 &&
              reduce_by_name("su", 2) == -1,
          "unknown ops");
}

int main(void)
{
    test_excerpts();
    test_notes_and_order();
    test_warnings();
    test_suggestions();
    test_sources();
    test_numbers();
    test_types();
    return check_done();
}
