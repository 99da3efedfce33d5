# Compiler flags of the whole project.
#
# Floating point means what is written: nothing is contracted or reassociated, so the fast-math
# family never appears here. -fno-math-errno only lets sqrt be an instruction. GCC 12's vectoriser
# of straight-line code loses roundings: g[0] = (float)x; g[1] = (float)y stores two doubles x and y.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo or Release" FORCE)
endif()

add_compile_options(-Wall -Wextra -ffp-contract=off -fno-math-errno -fno-omit-frame-pointer)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fno-tree-slp-vectorize)
endif()
if(DSOPT_WERROR)
    add_compile_options(-Werror)
endif()

# libFuzzer comes with clang; what it finds is seen by the sanitizers, and its targets alone get its
# main (tests/fuzz).
if(DSOPT_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "DSOPT_FUZZ needs clang: -DCMAKE_C_COMPILER=clang")
    endif()
    set(DSOPT_SANITIZE "address;undefined")
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# Assertions live in Debug and sanitizer builds only, whatever CMake's own defaults are.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2")
if(NOT DSOPT_SANITIZE AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_compile_definitions(NDEBUG)
endif()

if(DSOPT_SANITIZE)
    list(JOIN DSOPT_SANITIZE "," sanitizers)
    add_compile_options(-fsanitize=${sanitizers} -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${sanitizers})
    add_compile_definitions(DSOPT_SANITIZED=1)
endif()

# Generated headers (parser, lexer, embedded texts) are included by path, like all others.
set(DSOPT_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
include_directories("${PROJECT_SOURCE_DIR}" "${DSOPT_GENERATED_DIR}")

# Adds an object library for one layer; with no sources yet it adds nothing.
function(dsopt_layer name)
    if(NOT ARGN)
        return()
    endif()
    add_library(${name} OBJECT ${ARGN})
    set_property(GLOBAL APPEND PROPERTY DSOPT_OBJECTS "$<TARGET_OBJECTS:${name}>")
endfunction()
