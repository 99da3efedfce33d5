/* recipe.h - the tree of `recipe` blocks as parsed; they have no meaning yet.
 *
 *     store *.m : bf16, *.v : q8 block 256 unless numel < 4096
 *  -> RecipeStmt STORE, entries {path "*.m", formats bf16}, {path "*.v", formats q8, block 256,
 * unless …}
 */
#ifndef FRONTEND_RECIPE_H
#define FRONTEND_RECIPE_H
#include "ast.h"

typedef enum RecipeKind {
    RECIPE_ACCUMULATE, /* app */
    RECIPE_SCALE,      /* app */
    RECIPE_USE,        /* app, label */
    RECIPE_GROUP,      /* name, cond, app, body */
    RECIPE_DEFAULT,    /* app, body */
    RECIPE_STORE,      /* entries */
    RECIPE_SHARD,      /* name (or "state"), strategy */
    RECIPE_LET,        /* name = cond */
} RecipeKind;

typedef struct StoreEntry {
    Name path;           /* with its dots and stars: "*.m" */
    Name format, master; /* master: text NULL if none */
    bool is_stochastic, is_unsigned;
    double block; /* 0: none */
    Expr *unless;
    struct StoreEntry *next;
} StoreEntry;

struct RecipeStmt {
    RecipeKind kind;
    Span span;
    Name name, label, strategy;
    App *app;
    Expr *cond;
    StoreEntry *entries;
    RecipeStmt *body; /* the first statement of `{ … }` */
    RecipeStmt *next;
    RecipeStmt *last; /* of the list that begins here: appending takes no walk */
};
#endif
