/* tile_map.h - applies a macro to every param of a tile.def row.
 *
 *     TILE_LIST(P_, (S0, V0))  ->  P_S0, P_V0        TILE_EACH(L_, (S0, V0))  ->  L_S0 L_V0
 */
#ifndef CODEGEN_TILE_TILE_MAP_H
#define CODEGEN_TILE_TILE_MAP_H
#define TILE_CAT(a, b) TILE_CAT_(a, b)
#define TILE_CAT_(a, b) a##b
#define TILE_COUNT(...)                                                                            \
    TILE_COUNT_(__VA_ARGS__, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TILE_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, N, ...) N
#define TILE_OPEN(...) __VA_ARGS__

#define TILE_LIST(M, params) TILE_LIST_(M, TILE_OPEN params)
#define TILE_LIST_(M, ...) TILE_CAT(TILE_L, TILE_COUNT(__VA_ARGS__))(M, __VA_ARGS__)
#define TILE_L1(M, a) M##a
#define TILE_L2(M, a, ...) M##a, TILE_L1(M, __VA_ARGS__)
#define TILE_L3(M, a, ...) M##a, TILE_L2(M, __VA_ARGS__)
#define TILE_L4(M, a, ...) M##a, TILE_L3(M, __VA_ARGS__)
#define TILE_L5(M, a, ...) M##a, TILE_L4(M, __VA_ARGS__)
#define TILE_L6(M, a, ...) M##a, TILE_L5(M, __VA_ARGS__)
#define TILE_L7(M, a, ...) M##a, TILE_L6(M, __VA_ARGS__)
#define TILE_L8(M, a, ...) M##a, TILE_L7(M, __VA_ARGS__)
#define TILE_L9(M, a, ...) M##a, TILE_L8(M, __VA_ARGS__)
#define TILE_L10(M, a, ...) M##a, TILE_L9(M, __VA_ARGS__)
#define TILE_L11(M, a, ...) M##a, TILE_L10(M, __VA_ARGS__)
#define TILE_L12(M, a, ...) M##a, TILE_L11(M, __VA_ARGS__)
#define TILE_L13(M, a, ...) M##a, TILE_L12(M, __VA_ARGS__)
#define TILE_L14(M, a, ...) M##a, TILE_L13(M, __VA_ARGS__)
#define TILE_L15(M, a, ...) M##a, TILE_L14(M, __VA_ARGS__)
#define TILE_L16(M, a, ...) M##a, TILE_L15(M, __VA_ARGS__)
#define TILE_L17(M, a, ...) M##a, TILE_L16(M, __VA_ARGS__)
#define TILE_L18(M, a, ...) M##a, TILE_L17(M, __VA_ARGS__)

#define TILE_EACH(M, params) TILE_EACH_(M, TILE_OPEN params)
#define TILE_EACH_(M, ...) TILE_CAT(TILE_E, TILE_COUNT(__VA_ARGS__))(M, __VA_ARGS__)
#define TILE_E1(M, a) M##a
#define TILE_E2(M, a, ...) M##a TILE_E1(M, __VA_ARGS__)
#define TILE_E3(M, a, ...) M##a TILE_E2(M, __VA_ARGS__)
#define TILE_E4(M, a, ...) M##a TILE_E3(M, __VA_ARGS__)
#define TILE_E5(M, a, ...) M##a TILE_E4(M, __VA_ARGS__)
#define TILE_E6(M, a, ...) M##a TILE_E5(M, __VA_ARGS__)
#define TILE_E7(M, a, ...) M##a TILE_E6(M, __VA_ARGS__)
#define TILE_E8(M, a, ...) M##a TILE_E7(M, __VA_ARGS__)
#define TILE_E9(M, a, ...) M##a TILE_E8(M, __VA_ARGS__)
#define TILE_E10(M, a, ...) M##a TILE_E9(M, __VA_ARGS__)
#define TILE_E11(M, a, ...) M##a TILE_E10(M, __VA_ARGS__)
#define TILE_E12(M, a, ...) M##a TILE_E11(M, __VA_ARGS__)
#define TILE_E13(M, a, ...) M##a TILE_E12(M, __VA_ARGS__)
#define TILE_E14(M, a, ...) M##a TILE_E13(M, __VA_ARGS__)
#define TILE_E15(M, a, ...) M##a TILE_E14(M, __VA_ARGS__)
#define TILE_E16(M, a, ...) M##a TILE_E15(M, __VA_ARGS__)
#define TILE_E17(M, a, ...) M##a TILE_E16(M, __VA_ARGS__)
#define TILE_E18(M, a, ...) M##a TILE_E17(M, __VA_ARGS__)
#endif
