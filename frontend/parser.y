/* parser.y - the grammar of .opt files (docs/grammar.md is the same as EBNF).
 *
 * Requires tokens through recover_next, statement ends put in. Ensures: every construct of the
 * language is parsed, whether it has a meaning yet or not; no conflicts; after a mistake the parse
 * goes on behind the statement. Mistakes are worded in mistake.c.
 *
 *     p -= lr * u SEP   ->   Stmt WRITE p "-=" (lr * u)
 */
%code requires {
#include "frontend/parse.h"
}
%code {
#include <stdlib.h>
#include <string.h>
/* The stack is on the C stack and does not grow: nothing is left to free when an arena jumps. */
#define YYINITDEPTH 4000
#define YYMAXDEPTH 4000
#define YYLLOC_DEFAULT(cur, rhs, n)                                                                \
    ((cur) = (n) ? (Span){YYRHSLOC(rhs, 1).begin, YYRHSLOC(rhs, n).end}                            \
                 : (Span){YYRHSLOC(rhs, 0).end, YYRHSLOC(rhs, 0).end})
}

%define api.pure full
%define api.prefix {frontend_yy}
%define api.token.prefix {TK_}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%expect 0
%param { Parser *p }
%initial-action { @$ = (Span){p->source->base, p->source->base}; }

%union {
    double num;
    const char *text;
    Name name;
    int code;
    Expr *expr;
    ExprList *list;
    NameList *names;
    Decl *decl;
    DeclList *decls;
    RateAst *rate;
    Range *range;
    Stmt *stmt;
    Block *block;
    App *app;
    Item *item;
    RecipeStmt *recipe;
    StoreEntry *entry;
}

%code {
static int frontend_yylex(FRONTEND_YYSTYPE *value, Span *at, Parser *p);
static void frontend_yyerror(Span *at, Parser *p, const char *message);
static Item *item(Parser *p, ItemKind kind, Span at, Name name, DeclList *params, Block *body);
static Item *function(Parser *p, ItemKind kind, Span at, Name name, DeclList *params, Block *lets,
                      Expr *value);
static Stage stage(Parser *p, Name name);
static Decl *declare(Parser *p, Name name, Expr *array, RateAst *rate, Expr *init, Range *range);
static DeclList *decl_list(Parser *p, DeclList *l, const Decl *d);
static ExprList *expr_list(Parser *p, ExprList *l, Name name, Expr *e);
static NameList *name_list(Parser *p, NameList *l, Name name, Name alias);
static RateAst *rate(Parser *p, Span at, Name name, Expr *size);
static Stmt *declaration(Parser *p, StmtKind kind, Span at, DeclList *l, bool is_const);
static Stmt *with_names(Stmt *s, const NameList *l);
static Stmt *with_body(Stmt *s, Expr *cond, Block *body, Block *other);
static Stmt *use(Parser *p, Span at, App *app, Name label);
static Block *block_of(Parser *p, Stmt *s);
static RecipeStmt *recipe(Parser *p, RecipeKind kind, Span at, App *app);
static RecipeStmt *recipe_body(RecipeStmt *s, RecipeStmt *first);
static RecipeStmt *recipe_append(RecipeStmt *first, RecipeStmt *s);
static Name path_join(Parser *p, Name a, Name b, Span at);
static Name written(Parser *p, Span at);
static void check_all(Parser *p, const NameList *l, bool gradient);
static const Name no_name;
}

%token END 0 "end of file"
%token APPLICATION "application" /* made: the text is --rule's */
%token <num> NUM "number"
%token <text> STRING "string"
%token <name> IDENT "name"
%token SEP "end of statement"
%token <name> BAD "mistake"
%token <name> IMPORT "import" OPTIMIZER "optimizer" TRANSFORM "transform" SCALER "scaler"
  ACCUMULATOR "accumulator"
  SCHEDULE "schedule" FN "fn" RECIPE "recipe"
%token <name> HYPER "hyper" CONST "const" STATE "state" INIT "init" ON "on" WHEN "when"
  ELSE "else" SKIP "skip" FAIL "fail"
  REPEAT "repeat" USE "use" AS "as" SHAPE "shape" EXPORT "export" INPUT "input"
  DIRECTION "direction"
%token <name> IN "in" AND "and" OR "or" NOT "not" BLOCK "block" RETURN "return"
%token <name> GROUP "group" DEFAULT "default" STORE "store" SHARD "shard" ACCUMULATE "accumulate"
  SCALE "scale"
  MASTER "master" STOCHASTIC "stochastic" UNSIGNED "unsigned" UNLESS "unless"
%token DEF ":=" ADDA "+=" SUBA "-=" MULA "*=" DIVA "/=" EQ "==" NE "!=" LE "<=" GE ">="
  ARROW "->" NMATCH "!~" DOTS ".."

%type <name> name word pseg path label_opt alias_opt dim
%type <expr> expr tern orx andx notx cmp add mul unary pow postfix arr_opt cond_opt unless_opt
%type <list> arglist exprs args
%type <names> namelist exlist dims dimlist
%type <decl> param hyp st
%type <decls> params params_opt plist hlist statelist
%type <rate> rate_opt rate
%type <range> range_opt
%type <stmt> simple bstmt when shape let
%type <block> block stmts lets fbody
%type <app> app
%type <item> sitem bitem
%type <recipe> rstmts rstmt
%type <entry> sentries sentry fmt
%type <code> wop relop lo hi const_opt
%type <expr> def_opt

%%

file: %empty
    | file SEP
    | file sitem SEP { item_add(p, $2); }
    | file bitem { item_add(p, $2); }
    | file APPLICATION app SEP { p->app = $3; }
    | file APPLICATION app block { p->app = $3; p->app_uses = $4; }
    | file error SEP { yyerrok; p->broken = p->ninject > 0; /* a repaired head follows */ } ;

sitem: IMPORT STRING { $$ = item(p, IT_IMPORT, @$, (Name){$2, @2}, NULL, NULL); $$->text = $2; }
    | SCHEDULE name params '=' expr { $$ = function(p, IT_SCHEDULE, @$, $2, $3, NULL, $5); }
    | FN name params '=' expr { $$ = function(p, IT_FN, @$, $2, $3, NULL, $5); } ;

bitem: OPTIMIZER name params_opt block { $$ = item(p, IT_OPTIMIZER, @$, $2, $3, $4); }
    | TRANSFORM name params_opt ':' name block
      { $$ = item(p, IT_TRANSFORM, @$, $2, $3, $6); $$->stage = stage(p, $5); }
    | SCALER name params_opt block { $$ = item(p, IT_SCALER, @$, $2, $3, $4); }
    | ACCUMULATOR name params_opt block { $$ = item(p, IT_ACCUMULATOR, @$, $2, $3, $4); }
    | SCHEDULE name params '{' fbody '}' { $$ = function(p, IT_SCHEDULE, @$, $2, $3, $5, NULL); }
    | FN name params '{' fbody '}' { $$ = function(p, IT_FN, @$, $2, $3, $5, NULL); }
    | RECIPE name params_opt '{' rstmts '}'
      { $$ = item(p, IT_RECIPE, @$, $2, $3, NULL); $$->recipe = $5; } ;

/* the result of a longer fn or schedule travels as a last statement without a name */
fbody: lets
    | lets RETURN expr seps
      { $$ = $1; Stmt *s = build_stmt(p, ST_LET, @3); s->value = $3; block_add(p, $$, s); } ;
lets: %empty { $$ = ARENA_NEW(p->arena, Block); $$->span = @$; }
    | lets SEP
    | lets let SEP { $$ = $1; block_add(p, $$, $2); }
    | lets error SEP { $$ = $1; yyerrok; } ;
seps: SEP | seps SEP ;
let: name '=' expr { $$ = build_stmt(p, ST_LET, @$); $$->name = $1; $$->value = $3; } ;

params_opt: %empty { $$ = NULL; } | params ;
params: '(' ')' { $$ = decl_list(p, NULL, NULL); } | '(' plist ')' { $$ = $2; } ;
plist: param { $$ = decl_list(p, NULL, $1); } | plist ',' param { $$ = decl_list(p, $1, $3); } ;
param: const_opt name rate_opt def_opt range_opt
      { $$ = declare(p, $2, NULL, $3, $4, $5); $$->is_const = $1; } ;
const_opt: %empty { $$ = 0; } | CONST { $$ = 1; } ;
def_opt: %empty { $$ = NULL; } | '=' expr { $$ = $2; } ;

block: '{' stmts '}' { $$ = $2; $$->span = @$; } ;
/* simple statements need a SEP after them (the filter puts one before every '}'), others do not */
stmts: %empty { $$ = ARENA_NEW(p->arena, Block); $$->span = @$; }
    | stmts SEP
    | stmts simple SEP { $$ = $1; block_add(p, $$, $2); }
    | stmts bstmt { $$ = $1; block_add(p, $$, $2); }
    | stmts error SEP { $$ = $1; yyerrok; } ;

simple: HYPER hlist { $$ = declaration(p, ST_HYPER, @$, $2, false); }
    | CONST HYPER hlist { $$ = declaration(p, ST_HYPER, @$, $3, true); }
    | STATE statelist { $$ = declaration(p, ST_STATE, @$, $2, false); }
    | INPUT namelist
      { $$ = with_names(build_stmt(p, ST_INPUT, @$), $2); check_all(p, $2, false); }
    | EXPORT exlist { $$ = with_names(build_stmt(p, ST_EXPORT, @$), $2); }
    | USE app label_opt { $$ = use(p, @$, $2, $3); }
    | SKIP { $$ = build_stmt(p, ST_SKIP, @$); }
    | FAIL STRING { $$ = build_stmt(p, ST_FAIL, @$); $$->text = $2; }
    | DIRECTION name '=' expr
      { $$ = build_stmt(p, ST_DIRECTION, @$); $$->name = $2; $$->value = $4; }
    | let
    | name wop expr
      { $$ = build_stmt(p, ST_WRITE, @$); $$->name = $1; $$->wop = (WriteOp)$2; $$->value = $3; }
    | name '[' expr ']' wop expr
      { $$ = build_stmt(p, ST_WRITE, @$); $$->name = $1; $$->index = $3; $$->wop = (WriteOp)$5;
        $$->value = $6; } ;
label_opt: %empty { $$ = no_name; } | AS name { $$ = $2; } ;
wop: ":=" { $$ = W_SET; }
    | "+=" { $$ = W_ADD; }
    | "-=" { $$ = W_SUB; }
    | "*=" { $$ = W_MUL; }
    | "/=" { $$ = W_DIV; } ;

bstmt: INIT block { $$ = with_body(build_stmt(p, ST_INIT, @$), NULL, $2, NULL); }
    | ON name block { $$ = with_body(build_stmt(p, ST_ON, @$), NULL, $3, NULL); $$->name = $2; }
    | ON name '(' namelist ')' block
      { $$ = with_names(with_body(build_stmt(p, ST_ON, @$), NULL, $6, NULL), $4); $$->name = $2;
        check_all(p, $4, true); }
    | when
    | REPEAT expr block { $$ = with_body(build_stmt(p, ST_REPEAT, @$), $2, $3, NULL); }
    | REPEAT name IN expr ".." expr block
      { $$ = with_body(build_stmt(p, ST_REPEAT, @$), $4, $7, NULL); $$->name = $2; $$->hi = $6;
        check_declared(p, $2, false); }
    | shape ;
when: WHEN expr block { $$ = with_body(build_stmt(p, ST_WHEN, @$), $2, $3, NULL); }
    | WHEN expr block ELSE block { $$ = with_body(build_stmt(p, ST_WHEN, @$), $2, $3, $5); }
    | WHEN expr block ELSE when
      { $$ = with_body(build_stmt(p, ST_WHEN, @$), $2, $3, block_of(p, $5)); } ;
shape: SHAPE dims cond_opt block
      { $$ = with_names(with_body(build_stmt(p, ST_SHAPE, @$), $3, $4, NULL), $2); }
    | SHAPE dims cond_opt block ELSE block
      { $$ = with_names(with_body(build_stmt(p, ST_SHAPE, @$), $3, $4, $6), $2); }
    | SHAPE dims cond_opt block ELSE shape
      { $$ = with_names(with_body(build_stmt(p, ST_SHAPE, @$), $3, $4, block_of(p, $6)), $2); } ;
cond_opt: %empty { $$ = NULL; } | WHEN expr { $$ = $2; } ;
dims: '[' dimlist ']' { $$ = $2; } ;
dimlist: dim { $$ = name_list(p, NULL, $1, no_name); }
    | dimlist ',' dim { $$ = name_list(p, $1, $3, no_name); } ;
dim: ".." { $$ = (Name){"..", @1}; }
    | name { $$ = $1; check_declared(p, $1, false); }
    | NUM { $$ = written(p, @1); } ;

namelist: name { $$ = name_list(p, NULL, $1, no_name); }
    | namelist ',' name { $$ = name_list(p, $1, $3, no_name); } ;
exlist: name alias_opt { $$ = name_list(p, NULL, $1, $2); }
    | exlist ',' name alias_opt { $$ = name_list(p, $1, $3, $4); } ;
alias_opt: %empty { $$ = no_name; } | AS name { $$ = $2; } ;
hlist: hyp { $$ = decl_list(p, NULL, $1); } | hlist ',' hyp { $$ = decl_list(p, $1, $3); } ;
hyp: name arr_opt rate_opt def_opt range_opt { $$ = declare(p, $1, $2, $3, $4, $5); } ;
range_opt: %empty { $$ = NULL; }
    | IN lo expr ',' expr hi
      { $$ = ARENA_NEW(p->arena, Range);
        *$$ = (Range){true, $2 == '(', $6 == ')', $3, $5, {@2.begin, @6.end}}; } ;
lo: '[' { $$ = '['; } | '(' { $$ = '('; } ;
hi: ']' { $$ = ']'; } | ')' { $$ = ')'; } ;
statelist: st { $$ = decl_list(p, NULL, $1); } | statelist ',' st { $$ = decl_list(p, $1, $3); } ;
st: name arr_opt rate_opt def_opt { $$ = declare(p, $1, $2, $3, $4, NULL); } ;
arr_opt: %empty { $$ = NULL; } | '[' expr ']' { $$ = $2; } ;
rate_opt: %empty { $$ = NULL; }
    | ':' rate { $$ = $2; }
    | ':' rate name { $$ = $2; $$->format = $3; $$->span.end = @3.end; } ;
rate: name { $$ = rate(p, @1, $1, NULL); } | BLOCK postfix { $$ = rate(p, @$, $1, $2); } ;

app: name args { $$ = build_app(p, @$, $1, $2); } | name { $$ = build_app(p, @$, $1, NULL); } ;
args: '(' ')' { $$ = expr_list(p, NULL, no_name, NULL); } | '(' arglist ')' { $$ = $2; } ;
arglist: expr { $$ = expr_list(p, NULL, no_name, $1); }
    | name '=' expr { $$ = expr_list(p, NULL, $1, $3); }
    | arglist ',' expr { $$ = expr_list(p, $1, no_name, $3); }
    | arglist ',' name '=' expr { $$ = expr_list(p, $1, $3, $5); } ;

/* recipes */
rstmts: %empty { $$ = NULL; }
    | rstmts SEP
    | rstmts rstmt { $$ = recipe_append($1, $2); }
    | rstmts error SEP { $$ = $1; yyerrok; } ;
rstmt: ACCUMULATE app SEP { $$ = recipe(p, RECIPE_ACCUMULATE, @$, $2); }
    | SCALE app SEP { $$ = recipe(p, RECIPE_SCALE, @$, $2); }
    | USE app label_opt SEP { $$ = recipe(p, RECIPE_USE, @$, $2); $$->label = $3; }
    | GROUP name ':' expr "->" app SEP
      { $$ = recipe(p, RECIPE_GROUP, @$, $6); $$->name = $2; $$->cond = $4; }
    | GROUP name ':' expr "->" app '{' rstmts '}'
      { $$ = recipe_body(recipe(p, RECIPE_GROUP, @$, $6), $8); $$->name = $2; $$->cond = $4; }
    | DEFAULT "->" app SEP { $$ = recipe(p, RECIPE_DEFAULT, @$, $3); }
    | DEFAULT "->" app '{' rstmts '}' { $$ = recipe_body(recipe(p, RECIPE_DEFAULT, @$, $3), $5); }
    | STORE sentries SEP { $$ = recipe(p, RECIPE_STORE, @$, NULL); $$->entries = $2; }
    | SHARD STATE name SEP
      { $$ = recipe(p, RECIPE_SHARD, @$, NULL); $$->name = $2; $$->strategy = $3; }
    | SHARD name name SEP
      { $$ = recipe(p, RECIPE_SHARD, @$, NULL); $$->name = $2; $$->strategy = $3; }
    | name '=' expr SEP { $$ = recipe(p, RECIPE_LET, @$, NULL); $$->name = $1; $$->cond = $3; } ;
sentries: sentry
    | sentries ',' sentry
      { $$ = $1; StoreEntry **tail = &$1->next; while (*tail) tail = &(*tail)->next; *tail = $3; } ;
sentry: path ':' fmt unless_opt { $$ = $3; $$->path = $1; $$->unless = $4; } ;
unless_opt: %empty { $$ = NULL; } | UNLESS expr { $$ = $2; } ;
path: pseg | path '.' pseg { $$ = path_join(p, $1, $3, @$); } ;
pseg: name | '*' { $$ = (Name){"*", @1}; } ;
fmt: name { $$ = ARENA_NEW(p->arena, StoreEntry); $$->format = $1; }
    | fmt STOCHASTIC { $$ = $1; $$->is_stochastic = true; }
    | fmt UNSIGNED { $$ = $1; $$->is_unsigned = true; }
    | fmt BLOCK NUM { $$ = $1; $$->block = $3; }
    | fmt MASTER name { $$ = $1; $$->master = $3; } ;

/* expressions */
expr: tern ;
tern: orx | orx '?' expr ':' tern { $$ = build_node(p, EX_COND, @$, $1, $3, $5); } ;
orx: andx | orx OR andx { $$ = build_op(p, OP_OR, @$, $1, $3); } ;
andx: notx | andx AND notx { $$ = build_op(p, OP_AND, @$, $1, $3); } ;
notx: cmp | NOT notx { $$ = build_op(p, OP_NOT, @$, $2, NULL); } ;
cmp: add
    | add relop add { $$ = build_op(p, (Op)$2, @$, $1, $3); }
    | add '~' STRING { $$ = build_match(p, @$, $1, (Name){$3, @3}, false); }
    | add "!~" STRING { $$ = build_match(p, @$, $1, (Name){$3, @3}, true); } ;
relop: '<' { $$ = OP_LT; }
    | '>' { $$ = OP_GT; }
    | "<=" { $$ = OP_LE; }
    | ">=" { $$ = OP_GE; }
    | "==" { $$ = OP_EQ; }
    | "!=" { $$ = OP_NE; } ;
add: mul
    | add '+' mul { $$ = build_op(p, OP_ADD, @$, $1, $3); }
    | add '-' mul { $$ = build_op(p, OP_SUB, @$, $1, $3); } ;
mul: unary
    | mul '*' unary { $$ = build_op(p, OP_MUL, @$, $1, $3); }
    | mul '/' unary { $$ = build_op(p, OP_DIV, @$, $1, $3); }
    | mul '%' unary { $$ = build_op(p, OP_MOD, @$, $1, $3); }
    | mul '@' unary { $$ = build_node(p, EX_MATMUL, @$, $1, $3, NULL); } ;
unary: pow | '-' unary { $$ = build_op(p, OP_NEG, @$, $2, NULL); } ;
pow: postfix | postfix '^' unary { $$ = build_op(p, OP_POW, @$, $1, $3); } ;
postfix: NUM { $$ = build_number(p, @1, $1); }
    | STRING { $$ = build_expr(p, EX_STRING, @1); $$->text = $1; }
    | name { $$ = build_name(p, $1); }
    | '(' expr ')' { $$ = $2; $$->span = @$; }
    | '[' exprs ']' { $$ = build_list(p, @$, $2); }
    | name args { $$ = build_call(p, @$, $1, $2); }
    | name '[' expr ']' { $$ = build_node(p, EX_INDEX, @$, $3, NULL, NULL); $$->name = $1; }
    | name '[' BLOCK postfix ']' { $$ = build_reduce(p, @$, $1, $4, true, NULL); }
    | name '[' expr ']' args { $$ = build_reduce(p, @$, $1, $3, false, $5); }
    | name '[' BLOCK postfix ']' args { $$ = build_reduce(p, @$, $1, $4, true, $6); } ;
exprs: expr { $$ = expr_list(p, NULL, no_name, $1); }
    | exprs ',' expr { $$ = expr_list(p, $1, no_name, $3); } ;

/* words that are names where a name is wanted */
name: IDENT | BAD | word ;
word: INIT | INPUT | EXPORT | USE | AS | FAIL | ON | SKIP | GROUP | DEFAULT | STORE | SHARD
    | ACCUMULATE | SCALE | MASTER | STOCHASTIC | UNSIGNED | UNLESS | DIRECTION ;

%%


static int frontend_yylex(FRONTEND_YYSTYPE *value, Span *at, Parser *p)
{
    if (p->application && !p->begun) {
        p->begun = true;
        *at = (Span){p->source->base, p->source->base};
        return TK_APPLICATION;
    }
    Token t = recover_next(p);
    *at = t.span;
    if (t.kind == TK_NUM)
        value->num = t.value.num;
    else if (t.kind == TK_STRING)
        value->text = t.value.text;
    else
        value->name = (Name){t.value.text, t.span};
    return t.kind;
}

static void frontend_yyerror(Span *at, Parser *p, const char *message)
{
    (void)message; /* bison calls this when its stack is full, and else never */
    recover_too_deep(p, *at);
}

static int yyreport_syntax_error(const yypcontext_t *context, Parser *p)
{
    enum { MOST = YYNTOKENS };
    yysymbol_kind_t kinds[MOST];
    const char *names[MOST];
    int n = yypcontext_expected_tokens(context, kinds, MOST);
    for (int i = 0; i < n; i++) names[i] = yysymbol_name(kinds[i]);
    mistake_report(p, names, n > 0 ? n : 0);
    return 0;
}

void parse_tokens(Parser *p)
{
    frontend_yyparse(p);
}

/* ---- what the actions build ------------------------------------------------------------------ */

static Item *item(Parser *p, ItemKind kind, Span at, Name name, DeclList *params, Block *body)
{
    Item *i = ARENA_NEW(p->arena, Item);
    i->kind = kind;
    i->span = at;
    i->name = name;
    i->body = body;
    if (params) {
        i->params = params->items;
        i->nparams = params->n;
    }
    return i;
}

static Item *function(Parser *p, ItemKind kind, Span at, Name name, DeclList *params, Block *lets,
                      Expr *value)
{
    Item *i = item(p, kind, at, name, params, lets);
    i->value = value;
    if (lets && lets->n > 0 && lets->stmts[lets->n - 1]->name.text == NULL)
        i->value = lets->stmts[--lets->n]->value;
    if (!i->value) {
        i->value = build_expr(p, EX_BAD, name.span);
        if (!p->broken) diag_report(p->diags, DIAG_NO_RETURN, name.span, name.text);
        p->broken = true;
    }
    return i;
}

static Stage stage(Parser *p, Name name)
{
    static const char *const names[] = {"gradient", "direction", "apply"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name.text, names[i]) == 0) return (Stage)(STAGE_GRADIENT + i);
    }
    if (strcmp(name.text, BAD_NAME) == 0) return STAGE_NONE;
    Diag *diag = diag_report(p->diags, DIAG_STAGE_UNKNOWN, name.span, name.text);
    const char *close = diag_suggest(name.text, names, 3);
    if (close)
        diag_hint(p->diags, diag, "did you mean '%s'?", close);
    else
        diag_hint(p->diags, diag, "the stages are gradient, direction and apply");
    p->broken = true;
    return STAGE_NONE;
}

static Decl *declare(Parser *p, Name name, Expr *array, RateAst *rate, Expr *init, Range *range)
{
    Decl *d = ARENA_NEW(p->arena, Decl);
    check_declared(p, name, false);
    *d = (Decl){.name = name, .array = array, .init = init};
    if (rate) d->rate = *rate;
    if (range) d->range = *range;
    return d;
}

static DeclList *decl_list(Parser *p, DeclList *l, const Decl *d)
{
    if (!l) l = ARENA_NEW(p->arena, DeclList);
    if (d) decls_add(p, l, *d);
    return l;
}

static ExprList *expr_list(Parser *p, ExprList *l, Name name, Expr *e)
{
    if (!l) l = ARENA_NEW(p->arena, ExprList);
    if (e) list_add(p, l, name, e);
    return l;
}

static NameList *name_list(Parser *p, NameList *l, Name name, Name alias)
{
    if (!l) l = ARENA_NEW(p->arena, NameList);
    names_add(p, l, name, alias);
    return l;
}

static RateAst *rate(Parser *p, Span at, Name name, Expr *size)
{
    RateAst *r = ARENA_NEW(p->arena, RateAst);
    *r = (RateAst){.given = true, .rate = name, .block_size = size, .span = at};
    return r;
}

static Stmt *declaration(Parser *p, StmtKind kind, Span at, DeclList *l, bool is_const)
{
    Stmt *s = build_stmt(p, kind, at);
    s->decls = l->items;
    s->ndecls = l->n;
    for (size_t i = 0; i < l->n; i++) l->items[i].is_const = is_const;
    return s;
}

static Stmt *with_names(Stmt *s, const NameList *l)
{
    s->names = l->items;
    s->aliases = l->aliases;
    s->nnames = l->n;
    return s;
}

static Stmt *with_body(Stmt *s, Expr *cond, Block *body, Block *other)
{
    s->cond = cond;
    s->body = body;
    s->else_body = other;
    return s;
}

static Stmt *use(Parser *p, Span at, App *app, Name label)
{
    Stmt *s = build_stmt(p, ST_USE, at);
    s->app = app;
    s->name = label;
    return s;
}

static Block *block_of(Parser *p, Stmt *s)
{
    Block *b = ARENA_NEW(p->arena, Block);
    b->span = s->span;
    block_add(p, b, s);
    return b;
}

static RecipeStmt *recipe(Parser *p, RecipeKind kind, Span at, App *app)
{
    RecipeStmt *s = ARENA_NEW(p->arena, RecipeStmt);
    s->kind = kind;
    s->span = at;
    s->app = app;
    return s;
}

static RecipeStmt *recipe_body(RecipeStmt *s, RecipeStmt *first)
{
    s->body = first;
    return s;
}

static RecipeStmt *recipe_append(RecipeStmt *first, RecipeStmt *s)
{
    if (!first) {
        s->last = s;
        return s;
    }
    first->last->next = s;
    first->last = s;
    return first;
}

static Name path_join(Parser *p, Name a, Name b, Span at)
{
    return (Name){arena_printf(p->arena, "%s.%s", a.text, b.text), at};
}

/* A dimension's number, as it stands there. */
static Name written(Parser *p, Span at)
{
    const char *text = p->source->text + (at.begin - p->source->base);
    return (Name){arena_strndup(p->arena, text, at.end - at.begin), at};
}

static void check_all(Parser *p, const NameList *l, bool gradient)
{
    for (size_t i = 0; i < l->n; i++) check_declared(p, l->items[i], gradient);
}
