# libtcc inside the libraries: adds lib/libtcc_local.o to DSOPT_EXTRA_OBJECTS.
#
# Debian's libtcc.a is not position independent in the usual sense, but its relocations are
# PC-relative or in writable data: once `ld -r` has made it one object and its symbols are local, it
# can be part of a shared library without text relocations. What it calls outside is renamed
# (libtcc.syms) to our own host functions in codegen/tcc/tcc_host.c.
find_library(DSOPT_LIBTCC libtcc.a DOC "libtcc.a, version 0.9.27 (Debian: libtcc-dev)")
find_path(DSOPT_LIBTCC_INCLUDE libtcc.h DOC "Folder of libtcc.h")
if(NOT DSOPT_LIBTCC OR NOT DSOPT_LIBTCC_INCLUDE)
    message(FATAL_ERROR "libtcc.a or libtcc.h not found: install the package libtcc-dev, or set "
                        "DSOPT_LIBTCC and DSOPT_LIBTCC_INCLUDE")
endif()

# Later versions relocate into memory of their own, which cannot be kept write-xor-execute from
# outside: they are refused rather than half supported.
include(CheckCSourceCompiles)
set(CMAKE_REQUIRED_INCLUDES "${DSOPT_LIBTCC_INCLUDE}")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
check_c_source_compiles("#include <libtcc.h>
    int f(TCCState *s, void *p) { return tcc_relocate(s, p); }" DSOPT_LIBTCC_RELOCATES_INTO_MEMORY)
unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
unset(CMAKE_REQUIRED_INCLUDES)
if(NOT DSOPT_LIBTCC_RELOCATES_INTO_MEMORY)
    message(FATAL_ERROR "${DSOPT_LIBTCC_INCLUDE}/libtcc.h has a tcc_relocate without a memory "
                        "argument: this libtcc is newer than 0.9.27 and not supported")
endif()

set(DSOPT_TCC_DATA_MAX 4096)
set(local "${PROJECT_BINARY_DIR}/lib/libtcc_local.o")
set(script "${PROJECT_SOURCE_DIR}/cmake/libtcc_script.cmake")
set(symbols "${PROJECT_SOURCE_DIR}/cmake/libtcc.syms")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
add_custom_command(
    OUTPUT "${local}"
    COMMAND "${CMAKE_COMMAND}" "-DLIBTCC=${DSOPT_LIBTCC}" "-DOUTPUT=${local}"
            "-DSYMBOLS=${symbols}" "-DLINKER=${CMAKE_LINKER}" "-DOBJCOPY=${CMAKE_OBJCOPY}"
            "-DNM=${CMAKE_NM}" "-DREADELF=${CMAKE_READELF}" "-DDATA_MAX=${DSOPT_TCC_DATA_MAX}"
            -P "${script}"
    DEPENDS "${script}" "${symbols}" "${DSOPT_LIBTCC}"
    COMMENT "Localising libtcc"
    VERBATIM)
set_source_files_properties("${local}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
add_custom_target(dsopt_libtcc_local DEPENDS "${local}")
set_property(GLOBAL APPEND PROPERTY DSOPT_EXTRA_OBJECTS "${local}")
